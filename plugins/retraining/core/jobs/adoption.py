"""What a job left, before anybody believes it: it must be of this very request, and name no file but its own run's.

In: the stored request, and what lies where the job was to leave its result. Out: nothing, or a refusal by name. Jobs
run what a model brings along (packages, images, SavedModels), and where several models share the jobs' account, each
may write where the others do: a result counts only after the task has taken it over to where no job may write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from retraining.core.documents.document import Document, RequestDocument, ResultDocument, digest
from retraining.core.documents.evaluation import EvaluateRequest, Evaluation
from retraining.core.documents.export import ExportRequest, Manifest
from retraining.core.documents.multivariate import Multivariate, MultivariateRequest
from retraining.core.documents.plan import Plan, TakenFrom
from retraining.core.documents.scores import ModelScores, ScoreRequest
from retraining.core.documents.training import Report, TrainRequest
from retraining.core.errors import ContractError
from retraining.core.naming.addresses import ObjectAddress, folder_of
from retraining.core.naming.spans import FROZEN_SET, span_uri

WAY_OUT = (
    "This run's job did not leave it so: look who may write there (docs/security.md, One model must not own another), "
    "delete the object, and clear the task, which has it made again"
)
NEWER_IMAGE = (
    "Did this run's own image leave it so, then build that image anew by docs/trainer-contract.md, delete the object, "
    "and clear the task. Else look who may write there (docs/security.md, One model must not own another)"
)


def require_own_result(request: RequestDocument, request_digest: str, result: ResultDocument, where: str) -> None:
    """Refuse a result that is not what this request asks for.

    Args:
        request: As it is stored.
        request_digest: SHA-256 of its stored bytes.
        result: What lies where the job was to leave it.
        where: Its address.

    Raises:
        ContractError: It is of another model, run or table, was made for another request, or names files of somebody
            else.
    """
    for name in ("model", "run_key"):
        _require_equal(name, getattr(request, name), getattr(result, name), where)
    match request, result:
        case ExportRequest(), Manifest():
            _require_manifest(request, result, where)
        case TrainRequest(), Report():
            _require_below(folder_of(request.report_uri), [result.model_uri], where)
        case ScoreRequest(), ModelScores():
            _require_equal("model_uri", request.models[-1].model_uri, result.model_uri, where)
            _require_below(folder_of(where), (file.uri for file in result.splits.values()), where)
        case EvaluateRequest(), Evaluation():
            _require_lite(request, result, where)
        case MultivariateRequest(), Multivariate():
            _require_equal("table", request.table, result.table, where)
        case _:
            _require_equal("kind", f"the result of {request.kind_name()}", result.kind_name(), where)
    _require_digest(request, request_digest, result, where)


def require_taken_document(taken: TakenFrom, kind: type[Document], uri: str, data: bytes | None) -> None:
    """Refuse a kept document of another stage's run that is not what the plan was made by.

    Args:
        taken: What the plan says of the version.
        kind: Of the document.
        uri: Where it was kept.
        data: What is there; None: nothing.

    Raises:
        ContractError: It is another, or gone.
    """
    expected = taken.documents.get(kind.kind_name())
    found = None if data is None else digest(data)
    if found is None or found != expected:
        raise ContractError(
            uri,
            "no such document" if found is None else f"SHA-256 {found}",
            f"{expected}, as plan.json has it of run {taken.run_key} in stage {taken.stage}",
            "Delete this object, if it is there, and clear the run from plan on, which keeps it again",
        )


def require_taken_model(taken: TakenFrom, model_uri: str, found: str | None) -> None:
    """Refuse a copy that is not the model which the training's report describes.

    Args:
        taken: What the plan says of the version.
        model_uri: The copy.
        found: SHA-256 of its files; None: there are none.

    Raises:
        ContractError: It is another.
    """
    if found != taken.model_digest:
        raise ContractError(
            model_uri,
            f"a copy of {taken.model_uri} with SHA-256 {found}" if found else f"nothing: {taken.model_uri} is empty",
            f"{taken.model_digest}, as the report of run {taken.run_key} in stage {taken.stage} has it",
            "Somebody wrote one of the two after that report: look who may write there (docs/security.md, One model "
            "must not own another). Restore the model there, delete this folder, and clear train; or promote another "
            "run",
        )


def require_taken_files(taken: TakenFrom, needed: Sequence[str], existing: Collection[str]) -> None:
    """Refuse a comparison before it is paid for whose proof another stage has deleted.

    Args:
        taken: What the plan says of the version.
        needed: Shards that it was trained on, and that fingerprints do not prove free of this run's test examples.
        existing: Those that are there.

    Raises:
        ContractError: One is gone.
    """
    gone = [uri for uri in needed if uri not in existing]
    if gone:
        raise ContractError(
            gone[0],
            f"no such object, and {len(gone)} of the files are gone that run {taken.run_key} of stage {taken.stage} "
            "was trained on",
            "all of them, so that their keys can be held against this run's test examples",
            f"Promote a newer run of stage {taken.stage}, whose files are there",
        )


def taken_report(plan: Plan, report: Report, model_uri: str) -> Report:
    """Return the report of a training of another stage as this run's, whose model is the copy."""
    return report.model_copy(update={"run_key": plan.run_key, "model_uri": model_uri})


def _require_digest(request: RequestDocument, request_digest: str, result: ResultDocument, where: str) -> None:
    """Refuse a result that was made for another request; without a digest it is of an earlier release's job alone."""
    found = result.request_digest
    if found == request_digest or (found is None and not request.digest_required):
        return
    expected = f"{request_digest}, the SHA-256 of this job's request"
    if found is None:
        raise ContractError(where, "a result without request_digest", f"request_digest {expected}", NEWER_IMAGE)
    raise ContractError(where, f"the result of another request, whose SHA-256 is {found}", expected, WAY_OUT)


def _require_manifest(request: ExportRequest, manifest: Manifest, where: str) -> None:
    """Refuse a manifest of other rows: each shard must lie in its day's folder, which the fingerprint names."""
    for name in ("table", "schema_hash", "compression", "columns", "format", "layout", "images"):
        _require_equal(name, getattr(request, name), getattr(manifest, name), where)
    fingerprints = {str(span.span): span.fingerprint for span in request.spans}
    for span in manifest.spans:
        _require_equal(f"fingerprint of {span.span}", fingerprints.get(str(span.span)), span.fingerprint, where)
    if request.golden is not None:
        fingerprints[FROZEN_SET] = request.golden.fingerprint
    for split in manifest.splits.values():
        for file in split.files:
            fingerprint = fingerprints.get(str(file.span), "")
            _require_below(span_uri(request.spans_uri, file.span, fingerprint), [file.uri], where)


def _require_lite(request: EvaluateRequest, evaluation: Evaluation, where: str) -> None:
    uris = _given(uri for artifact in evaluation.lite for uri in (artifact.uri, artifact.vocabulary_uri))
    _require_below(request.lite.folder_uri if request.lite else "no folder", uris, where)


def _given(uris: Iterable[str | None]) -> Iterator[str]:
    return (uri for uri in uris if uri is not None)


def _require_equal(name: str, expected: object, found: object, where: str) -> None:
    if found != expected:
        raise ContractError(where, f"{name} {str(found)[:300]!r}", f"{str(expected)[:300]!r}, as it was asked", WAY_OUT)


def _require_below(folder_uri: str, uris: Iterable[str], where: str) -> None:
    for uri in uris:
        if not ObjectAddress.parse(uri).is_below(folder_uri):
            raise ContractError(where, f"the file {uri[:300]!r}", f"one of this run's own, in {folder_uri}", WAY_OUT)

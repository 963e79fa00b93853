"""A version of another stage that a run takes over: read and refused in `plan`, before anything is paid."""

from __future__ import annotations

from pathlib import Path

from retraining.core.data.leakage import unreadable_rows
from retraining.core.documents import Plan
from retraining.core.errors import PlanError
from retraining.core.naming import storage, vertex
from retraining.core.planning import taken_versions
from retraining.core.planning.taken_versions import WHERE, TakenVersion
from retraining.core.spec.stages import require_stages
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record


def find_taken_version(cloud: CloudPort, include: Path, model: str, text: str | None) -> TakenVersion | None:
    """Return the version that a form names, by the documents of its run; None: it names none, and the run trains.

    Args:
        cloud: The hooks.
        include: The folder with the stages' file.
        model: The DAG's own.
        text: Of the form.

    Raises:
        PlanError: There is no such version, or nobody can prove what it has seen.
        SpecError: There is no such stage.
        ContractError: The documents are not those of such a run.
    """
    if not text:
        return None
    source = taken_versions.find_source(text, model, cloud.settings.stage, require_stages(include, WHERE))
    uris = source.uris
    stored = cloud.artifacts.read_some(list(uris.values()))
    taken = taken_versions.read_source(source, {kind: stored[uri] for kind, uri in uris.items() if uri in stored})
    taken_versions.require_provable(taken, unreadable_rows(taken.manifest))
    if not cloud.artifacts.exists(taken.model_file_uri):
        raise PlanError(
            f"{WHERE}, {taken.value.name}",
            f"its model is gone: no {taken.model_file_uri}",
            "the model that its run stored",
            "Promote another run; or clear train of that run there, which stores it again",
        )
    return taken


def require_takeable(cloud: CloudPort, planned: Plan, taken: TakenVersion) -> None:
    """Refuse a version that is another model than this stage's, has seen its test days, or is older than its champion.

    Raises:
        PlanError: It is.
    """
    taken_versions.require_same_model(taken, planned)
    taken_versions.require_unseen_days(taken.value, planned)
    champion = cloud.registry.find_by_alias(planned.model, vertex.CHAMPION)
    if champion is not None and champion.run_key:
        its_record = Record(cloud.artifacts, storage.run_uri(planned.bucket, planned.model, champion.run_key))
        its_plan = its_record.find_document(Plan)
        taken_versions.require_newer(taken.value, champion.version_id, champion.run_key, its_plan)


def keep_documents(cloud: CloudPort, planned: Plan, taken: TakenVersion) -> None:
    """Copy the documents that the version was taken by to the run's own folder: nothing later reads the other stage."""
    for kind, data in taken.stored.items():
        cloud.artifacts.write_once(storage.taken_uri(planned.run_uri, kind), data)

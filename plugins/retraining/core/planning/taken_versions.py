"""Taking a version over from another stage in the place of a training: what a form names, and what the stage must say.

In: the form's text, the stages, the documents of the run there, this run's plan. Out: what the plan keeps of it, or a
refusal by name, before anything is paid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from retraining.core.documents import (
    Decision,
    Document,
    Evaluation,
    Manifest,
    Plan,
    Registration,
    Report,
    TakenFrom,
    Tuning,
)
from retraining.core.documents.document import digest, format_time
from retraining.core.errors import ContractError, PlanError
from retraining.core.leaves import leaves
from retraining.core.naming import storage, vertex
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.run_keys import RunKey
from retraining.core.naming.stage_runs import PARAM, StageRun
from retraining.core.planning.plan import deciding_spec
from retraining.core.settings import SETTINGS, mirrored_image
from retraining.core.spec.stages import FILE, OVERLAID, StageFile

WHERE = f"Param {PARAM}"
MOST_NAMED = 5
"""Differences that a message names one by one."""

FREE = (*OVERLAID, "data.validation_by")
"""Keys of a spec that two stages may have otherwise: those of stages, and what follows from `data.window_days`."""

TRAINED_ON = "trained_on"
"""Stands for the manifest that the model was trained on, where the run there took its version over, too."""
KINDS: tuple[type[Document], ...] = (Plan, Manifest, Report, Evaluation, Decision, Registration)
OPTIONAL: tuple[type[Document], ...] = (Tuning,)

_D = TypeVar("_D", bound=Document)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A run of another stage: the stage with its buckets, the model, the run's key."""

    stage: str
    bucket: str
    buckets: tuple[str, ...]
    model: str
    run_key: str

    @property
    def run_uri(self) -> str:
        """Folder of its documents."""
        return storage.run_uri(self.bucket, self.model, self.run_key)

    @property
    def uris(self) -> dict[str, str]:
        """Addresses of the documents that are read, by kind."""
        kinds = [kind.kind_name() for kind in (*KINDS, *OPTIONAL)]
        own = {kind: storage.document_uri(self.run_uri, kind) for kind in kinds}
        return {**own, TRAINED_ON: storage.taken_uri(self.run_uri, Manifest.kind_name())}


@dataclass(frozen=True, kw_only=True)
class TakenVersion:
    """What is taken over: what the plan keeps of it, the plan there, the documents' bytes by kind."""

    value: TakenFrom
    plan: Plan
    manifest: Manifest
    stored: Mapping[str, bytes]

    @property
    def model_file_uri(self) -> str:
        """The file that tells whether the model is still there."""
        own = self.plan.spec.training.runtime.scoring_image is not None
        return storage.model_file_uri(self.value.model_uri, own=own)


def find_source(text: str, model: str, here: str | None, stages: StageFile) -> Source:
    """Return the run that a form names.

    Args:
        text: `STAGE/RUN KEY`, with ` to STAGE` where it says which stage shall take it over.
        model: The DAG's own.
        here: The stage that this environment is; None: none.
        stages: Of the file.

    Raises:
        PlanError: It is no such text, or it is for another stage than this one, or of this one.
        SpecError: There is no such stage.
    """
    asked = StageRun.parse(text, WHERE)
    if here is None:
        variable = SETTINGS["stage"].variable
        raise PlanError(
            variable,
            f"not set, and {WHERE} names a run of stage {asked.stage}",
            f"the stage of {FILE} that this environment is",
            f"Set {variable}",
        )
    if asked.target and asked.target != here:
        raise PlanError(
            WHERE,
            f"a version for stage {asked.target}, and this environment is stage {here}",
            f"the Airflow of stage {asked.target}",
            "Order it there: AIRFLOW__API__BASE_URL says which Airflow is asked",
        )
    stage = stages.stage(asked.stage, WHERE)
    require_two_stages(asked.stage, here, WHERE)
    if stage.bucket is None:
        raise PlanError(
            f"{FILE}, stages.{asked.stage}",
            "no bucket, so that nobody can say where its runs are",
            "the bucket of that stage",
            f"Add bucket to stage {asked.stage}",
        )
    return Source(
        stage=asked.stage, bucket=stage.bucket, buckets=tuple(stage.buckets), model=model, run_key=asked.run_key
    )


def require_two_stages(source: str, target: str, where: str) -> None:
    """Refuse one stage as both.

    Raises:
        PlanError: They are the same.
    """
    if source == target:
        raise PlanError(
            where,
            f"stage {source} twice",
            "another stage's run: a version that this stage trained is registered here already",
            "Name the stage that the version comes from, and the one that it goes to",
        )


def read_source(source: Source, stored: Mapping[str, bytes]) -> TakenVersion:
    """Return what a stage's documents say of a version that was promoted there.

    Args:
        source: The run.
        stored: Bytes by kind, as in `Source.uris`, of those that are there.

    Raises:
        PlanError: There is no such run, or it was not promoted there.
        ContractError: A document is gone, or is not what the others say.
    """
    read = _Reading(source, stored)
    plan = read.find(Plan)
    if plan is None:
        raise PlanError(
            WHERE,
            f"no run {source.run_key} of {source.model} in stage {source.stage}: no {source.uris['plan']}",
            "the key of a run of this model there",
            f"List them with that stage's variables: retraining runs {source.model}",
        )
    _require_promoted(source, read.find(Decision))
    evaluation, decision = read.document(Evaluation), read.document(Decision)
    registration, report = read.document(Registration), read.document(Report)
    _require_own_documents(source, (plan, evaluation, decision, registration, report))
    read.require_decided_on(decision)
    _require_own_model(source, plan, report)
    earlier, tuning = plan.taken_from, read.find(Tuning)
    manifest = read.manifest(trained_on=earlier is not None)
    return TakenVersion(
        value=TakenFrom(
            stage=source.stage,
            run_uri=source.run_uri,
            run_key=source.run_key,
            version_name=registration.version_name,
            as_of=earlier.as_of if earlier else plan.as_of,
            window=earlier.window if earlier else plan.window,
            model_uri=report.model_uri,
            model_digest=report.model_digest,
            hyperparameters=report.hyperparameters,
            tuned=earlier.tuned if earlier else tuning is not None and tuning.source != "spec",
            documents={kind: digest(data) for kind, data in read.used.items()},
        ),
        plan=plan,
        manifest=manifest,
        stored=read.used,
    )


class _Reading:
    """A run's documents as they are parsed, and the bytes of those that were."""

    def __init__(self, source: Source, stored: Mapping[str, bytes]) -> None:
        self._source, self._stored = source, stored
        self.used: dict[str, bytes] = {}

    def find(self, kind: type[_D]) -> _D | None:
        """Return a document; None: it is not there."""
        name = kind.kind_name()
        if (data := self._stored.get(name)) is None:
            return None
        self.used[name] = data
        return kind.parse(data, self._source.uris[name])

    def document(self, kind: type[_D]) -> _D:
        """Return a document.

        Raises:
            ContractError: It is not there.
        """
        if (found := self.find(kind)) is None:
            raise _gone(self._source, self._source.uris[kind.kind_name()])
        return found

    def manifest(self, *, trained_on: bool) -> Manifest:
        """Return what the model was trained on: of a run that took its version over, too, the copy that it kept.

        Raises:
            ContractError: It is not there.
        """
        if not trained_on:
            return self.document(Manifest)
        uri = self._source.uris[TRAINED_ON]
        if (data := self._stored.get(TRAINED_ON)) is None:
            raise _gone(self._source, uri)
        self.used[Manifest.kind_name()] = data
        return Manifest.parse(data, uri)

    def require_decided_on(self, decision: Decision) -> None:
        """Refuse a plan or an evaluation that was written again after the decision.

        Raises:
            ContractError: One was.
        """
        for kind, expected in decision.inputs.items():
            if kind in self.used and digest(self.used[kind]) != expected:
                raise ContractError(
                    self._source.uris[kind],
                    f"SHA-256 {digest(self.used[kind])}",
                    f"{expected}, which the decision there was taken from",
                    "Look who wrote it again; promote another run",
                )


def _gone(source: Source, uri: str) -> ContractError:
    return ContractError(
        uri,
        "no such document",
        f"a whole run of stage {source.stage}, with its version registered",
        "Let that run come to its end, or promote another one",
    )


def _require_promoted(source: Source, decision: Decision | None) -> None:
    which = f"run {source.run_key} of stage {source.stage}"
    if decision is None:
        raise PlanError(
            WHERE,
            f"{which} was not evaluated: no {source.uris['decision']}",
            "a run that came to its decision",
            "Let it come to its end there, or name another one",
        )
    if decision.verdict != "promote":
        raise PlanError(
            WHERE,
            f"{which} was not promoted there. {decision.message}",
            "a run whose decision.json has the verdict promote",
            "Name another one",
        )


def _require_own_documents(source: Source, found: tuple[Document, ...]) -> None:
    """Refuse documents of another run or model that lie in the run's folder."""
    for document in found:
        of = tuple(getattr(document, name) for name in ("model", "run_key"))
        if of != (source.model, source.run_key):
            raise ContractError(
                source.uris[document.kind_name()],
                f"the document of run {of[1]} of {of[0]}",
                f"that of run {source.run_key} of {source.model}",
                "Look who wrote it; promote another run",
            )


def _require_own_model(source: Source, plan: Plan, report: Report) -> None:
    """Refuse a model that lies elsewhere than where the run's jobs write, in a bucket of the stage."""
    address, folder = ObjectAddress.parse(report.model_uri), storage.results_uri(plan)
    if address.bucket not in source.buckets or not address.is_below(folder):
        raise ContractError(
            source.uris["report"],
            f"the model {report.model_uri[:300]!r}",
            f"one in {folder}, and in a bucket that {FILE} gives stage {source.stage}: {', '.join(source.buckets)}",
            f"Look who wrote it; or add results_bucket to stage {source.stage}, where its jobs write",
        )


def require_provable(taken: TakenVersion, unreadable_rows: int) -> None:
    """Refuse a version of which nobody can prove what it has seen: the judge could take what it knows for skill.

    Args:
        taken: What is taken over.
        unreadable_rows: Training rows that no file holds the keys of.

    Raises:
        PlanError: There are some.
    """
    if unreadable_rows:
        raise PlanError(
            WHERE,
            f"run {taken.value.run_key} trained on {unreadable_rows} rows that it read from its table itself",
            "a version whose training rows lie in files, so that their keys can be held against the test rows",
            "Train it there with training.input: tfrecord; or train here",
        )


def require_same_model(taken: TakenVersion, planned: Plan) -> None:
    """Refuse a version that is another model than this stage would train: by its spec, its SQL, its images.

    Raises:
        PlanError: They differ in what no stage may change; names it.
    """
    found = list(_differences(taken.plan, planned))
    if found:
        shown = [*found[:MOST_NAMED], *([f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else [])]
        raise PlanError(
            f"{WHERE}, {taken.value.name}",
            f"another model than this stage's: {'; '.join(shown)}",
            "the same query, features, label, architecture, gates and images in both stages",
            "Bring the same files and images to both (images by digest), and promote a run that was made with them",
        )


def _differences(there: Plan, here: Plan) -> Iterator[str]:
    before, now = (_fixed(plan) for plan in (there, here))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            yield f"{key} is {before.get(key, 'not set')[:80]} there, {now.get(key, 'not set')[:80]} here"
    if there.query.sha256 != here.query.sha256:
        yield f"SQL of {here.query.path}: SHA-256 {there.query.sha256[:12]} there, {here.query.sha256[:12]} here"
    frozen = [plan.golden_query.sha256 if plan.golden_query else "none" for plan in (there, here)]
    if frozen[0] != frozen[1]:
        yield f"SQL of the frozen set: SHA-256 {frozen[0][:12]} there, {frozen[1][:12]} here"
    yield from _own_differences(there, here)
    for name in ("trainer_image", "serving_image"):
        if not _same_image(there, here, name):
            yield f"{SETTINGS[name].variable} is {getattr(there, name)} there, {getattr(here, name)} here"


def _own_differences(there: Plan, here: Plan) -> Iterator[str]:
    """Yield the checks and gates of the team's own that are not the same code in both stages."""
    for kind, before, now in (
        ("SQL of assertion", there.assertions, here.assertions),
        ("code of gate", there.gates, here.gates),
    ):
        for name in sorted(before.keys() | now.keys()):
            digests = [found[name].sha256[:12] if name in found else "none" for found in (before, now)]
            if digests[0] != digests[1]:
                yield f"{kind} {name}: SHA-256 {digests[0]} there, {digests[1]} here"


def _fixed(plan: Plan) -> dict[str, str]:
    """Return what of a spec no stage may change, by path."""
    found = leaves(deciding_spec(plan.spec))
    return {path: value for path, value in found if not any(f"{path}.".startswith(f"{key}.") for key in FREE)}


def _same_image(there: Plan, here: Plan, name: str) -> bool:
    """Return whether two stages have the same image: as it is written, by its digest, or each its project's mirror."""
    images = [getattr(plan, name) for plan in (there, here)]
    digests = {vertex.image_digest(image) for image in images}
    mirrors = [mirrored_image(plan.project, plan.region) for plan in (there, here)]
    return images[0] == images[1] or (len(digests) == 1 and digests != {None}) or images == mirrors


def require_unseen_days(taken: TakenFrom, planned: Plan) -> None:
    """Refuse a version that may have been trained on this run's test days, and a run that is no live one.

    Raises:
        PlanError: It may.
    """
    if planned.mode != "live":
        raise PlanError(WHERE, "a backfill", "a run started by hand: a promotion is of now", "Trigger the DAG instead")
    first, needed = planned.window.test_start, taken.window.test_start
    if needed > first or taken.as_of > planned.as_of:
        raise PlanError(
            f"{WHERE}, {taken.name}",
            f"trained as of {format_time(taken.as_of)} on days before {needed}, and this run's test days begin on "
            f"{first}",
            "test days of which it has seen none",
            f"Trigger with an as_of for which the test days begin on {needed} or later; or promote an older run",
        )


def require_newer(taken: TakenFrom, version_id: str, run_key: str, champion_plan: Plan | None) -> None:
    """Refuse a version that this stage's champion is, or that is older than it.

    Args:
        taken: What would be taken over.
        version_id: Of the champion here.
        run_key: Of the run here that made it.
        champion_plan: Of that run; None: it is gone.

    Raises:
        PlanError: It is.
    """
    its = champion_plan.taken_from if champion_plan else None
    trained = its.as_of if its else RunKey.parse(run_key).as_of
    if its is not None and its.model_digest == taken.model_digest and its.run_key == taken.run_key:
        raise _refused(taken, f"champion version {version_id} is that very one", "one that is not champion")
    if trained > taken.as_of:
        raise _refused(
            taken,
            f"trained as of {format_time(taken.as_of)}, and champion version {version_id} here as of "
            f"{format_time(trained)}",
            "one that is not older than this stage's champion: an older one never replaces a newer one",
        )


def _refused(taken: TakenFrom, found: str, expected: str) -> PlanError:
    return PlanError(f"{WHERE}, {taken.name}", found, expected, "Promote a newer run, or leave the champion")

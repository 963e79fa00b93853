"""What each task reads and writes, by the documents of its run: a table of steps by task id.

A document that is not there yet leaves out what would be known of it, so a failed task tells what it came to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from retraining.core.data.image_objects import folders_to_list
from retraining.core.documents import (
    Decision,
    Deployment,
    Document,
    EvaluateRequest,
    Evaluation,
    Ledger,
    Manifest,
    Multivariate,
    MultivariateRequest,
    Plan,
    Predictions,
    Registration,
    Report,
    Rollback,
    ScoringInput,
    ScoringPlan,
    ScoringResult,
    Signals,
    Snapshot,
)
from retraining.core.lineage import datasets
from retraining.core.lineage.datasets import Dataset
from retraining.core.lineage.record_facet import record_facet
from retraining.core.naming import bigquery, storage, vertex
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.untyped import JsonObject

_D = TypeVar("_D", bound=Document)


class Documents:
    """Documents of one run, by kind."""

    def __init__(self, found: Iterable[Document]) -> None:
        self._found = {type(document): document for document in found}

    def find(self, kind: type[_D]) -> _D | None:
        """Return the document of a kind; None: there is none yet, or the step does not read it."""
        document = self._found.get(kind)
        return document if isinstance(document, kind) else None


@dataclass(frozen=True, kw_only=True)
class Flow:
    """What went in, what came out, and the query in between."""

    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    sql: str | None = None


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """All that a task tells: its flow, and which run it is of; None: of none, it made no model."""

    flow: Flow
    record: JsonObject | None


@dataclass(frozen=True, kw_only=True)
class Step:
    """A task: the documents that its flow follows from, beside the plan, and how."""

    reads: tuple[type[Document], ...]
    flow: Callable[..., Flow]


_NO_FLOW = Step(reads=(), flow=lambda _plan, _found: Flow())


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The tasks of a DAG by their ids; one that is not named tells its run alone.

    `plan` is the document that says which run it is, or what was done without one.
    """

    plan: type[Plan] | type[ScoringPlan] | type[Rollback] | type[Signals]
    by_task: Mapping[str, Step]

    def kinds_read(self, task_id: str) -> tuple[type[Document], ...]:
        """Return the kinds of the documents that `describe` looks for."""
        return (self.plan, *self.by_task.get(task_id, _NO_FLOW).reads)

    def describe(self, task_id: str, found: Documents) -> Lineage | None:
        """Return what a task tells; None: its run has no plan."""
        plan = found.find(self.plan)
        if plan is None:
            return None
        flow = self.by_task.get(task_id, _NO_FLOW).flow(plan, found)
        if not isinstance(plan, Plan | ScoringPlan):
            return Lineage(flow=flow, record=None)
        return Lineage(flow=flow, record=record_facet(plan, found.find(Decision), found.find(Evaluation)))


def _snapshot(plan: Plan, found: Documents) -> Flow:
    taken, files = found.find(Snapshot), plan.spec.data.files
    folders = [*(files.uris if files else ()), *folders_to_list(plan.spec)]
    sources = [datasets.table(source.name, source.columns) for source in taken.sources] if taken else []
    written = []
    if taken:
        rows = sum(part.rows for span in taken.spans for part in span.parts)
        written = [datasets.table(taken.table, taken.columns, rows)]
    return Flow(
        inputs=tuple(dict.fromkeys([*map(datasets.objects, folders), *sources])),
        outputs=tuple(written),
        sql=plan.query.sql,
    )


def _check_data(plan: Plan, _found: Documents) -> Flow:
    return Flow(inputs=(_run_table(plan),))


def _export(plan: Plan, found: Documents) -> Flow:
    manifest = found.find(Manifest)
    if manifest is None or not _has_shards(manifest):
        return Flow(inputs=(_run_table(plan),))
    written = _shards(plan, manifest, rows=manifest.exported_rows, size_bytes=manifest.exported_bytes)
    return Flow(inputs=(_run_table(plan),), outputs=(written,))


def _tune(plan: Plan, found: Documents) -> Flow:
    return Flow(inputs=_examples(plan, found))


def _train(plan: Plan, found: Documents) -> Flow:
    if plan.taken_from:
        return Flow(inputs=(datasets.objects(plan.taken_from.model_uri),), outputs=_model(found))
    return Flow(inputs=_examples(plan, found), outputs=_model(found))


def _evaluate(plan: Plan, found: Documents) -> Flow:
    request = found.find(EvaluateRequest)
    asked = (request.challenger, request.champion) if request else ()
    models = tuple(datasets.objects(side.model_uri) for side in asked if side)
    return Flow(inputs=(*_examples(plan, found), *models), outputs=_document(plan, found, Evaluation))


def _decide(plan: Plan, found: Documents) -> Flow:
    return Flow(inputs=_document(plan, found, Evaluation), outputs=_document(plan, found, Decision))


def _register(plan: Plan, found: Documents) -> Flow:
    return Flow(inputs=(*_model(found), *_document(plan, found, Decision)), outputs=_version(found))


def _deploy(_plan: Plan, found: Documents) -> Flow:
    done = found.find(Deployment)
    endpoint = done.endpoint_name if done and done.deployed else None
    return Flow(inputs=_version(found), outputs=(datasets.endpoint(endpoint),) if endpoint else ())


def _run_table(plan: Plan) -> Dataset:
    return datasets.table(bigquery.run_table(plan))


def _has_shards(manifest: Manifest) -> bool:
    return any(split.files for split in manifest.splits.values())


def _shards(plan: Plan, manifest: Manifest, rows: int | None = None, size_bytes: int | None = None) -> Dataset:
    uri = storage.spans_uri(plan, manifest.schema_hash)
    return datasets.objects(uri, manifest.columns, rows, size_bytes)


def _examples(plan: Plan, found: Documents) -> tuple[Dataset, ...]:
    """Return what a training reads: the shards, or the run table where there are none."""
    manifest = found.find(Manifest)
    if manifest is None:
        return ()
    return (_shards(plan, manifest) if _has_shards(manifest) else _run_table(plan),)


def _model(found: Documents) -> tuple[Dataset, ...]:
    report = found.find(Report)
    return (datasets.objects(report.model_uri),) if report else ()


def _version(found: Documents) -> tuple[Dataset, ...]:
    registration = found.find(Registration)
    return (datasets.version(registration.version_name),) if registration else ()


def _document(plan: Plan, found: Documents, kind: type[Document]) -> tuple[Dataset, ...]:
    there = found.find(kind) is not None
    return (datasets.objects(storage.document_uri(plan.run_uri, kind.kind_name())),) if there else ()


def _snapshot_instances(plan: ScoringPlan, found: Documents) -> Flow:
    made, source = found.find(ScoringInput), plan.source
    name = source.table or source.files
    return Flow(
        inputs=(datasets.table_or_objects(name),) if name else (),
        outputs=(datasets.table(made.table, rows=made.rows),) if made and not source.files else (),
        sql=source.query.sql if source.query else None,
    )


def _predict(plan: ScoringPlan, found: Documents) -> Flow:
    made, answered = found.find(ScoringInput), found.find(Predictions)
    instances = (datasets.table_or_objects(made.table),) if made else ()
    return Flow(
        inputs=(*instances, datasets.version(plan.version.version_name)),
        outputs=(datasets.table_or_objects(answered.table),) if answered else (),
    )


def _write(_plan: ScoringPlan, found: Documents) -> Flow:
    answered, done = found.find(Predictions), found.find(ScoringResult)
    written = () if done is None else (replace(datasets.table_or_objects(done.destination.table), rows=done.rows),)
    return Flow(inputs=(datasets.table_or_objects(answered.table),) if answered else (), outputs=written)


def _roll_back(done: Rollback, _found: Documents) -> Flow:
    if done.version_name is None:  # a first version was stopped
        return Flow()
    model = vertex.ResourceName.parse(done.version_name)
    endpoint = done.endpoint_name or vertex.endpoint_name(model.project, model.region, done.model)
    moved = (datasets.endpoint(endpoint),) if done.endpoint else ()
    return Flow(inputs=(datasets.version(done.version_name),), outputs=moved)


def _measure(watched: Signals, _found: Documents) -> Flow:
    return Flow(inputs=_request_log(watched))


def _measure_multivariate(watched: Signals, found: Documents) -> Flow:
    """Return the log, the sample and what the job left; which table had the champion's examples is not recorded."""
    asked, done = found.find(MultivariateRequest), found.find(Multivariate)
    if asked is None:
        return Flow()
    sample = datasets.table(asked.table, rows=done.requests + done.examples if done else None)
    left = (datasets.objects(asked.multivariate_uri),) if done else ()
    return Flow(inputs=_request_log(watched), outputs=(sample, *left))


def _decide_retraining(watched: Signals, found: Documents) -> Flow:
    """Return signals and ledger; its table lies beside the request log, and without one it is not known where."""
    row = found.find(Ledger)
    if row is None or row.signals_uri is None or row.ledger_id is None:
        return Flow()
    uri = storage.ledger_uri(ObjectAddress.parse(row.signals_uri).bucket, row.model, row.ledger_id)
    tables = (datasets.table(bigquery.ledger_beside(watched.log_table), rows=1),) if watched.log_table else ()
    return Flow(inputs=(datasets.objects(row.signals_uri),), outputs=(datasets.objects(uri), *tables))


def _request_log(watched: Signals) -> tuple[Dataset, ...]:
    return (datasets.table(watched.log_table),) if watched.log_table else ()


_RUN_STEPS = Steps(
    plan=Plan,
    by_task={
        "snapshot": Step(reads=(Snapshot,), flow=_snapshot),
        "check_data": Step(reads=(), flow=_check_data),
        "export": Step(reads=(Manifest,), flow=_export),
        "tune": Step(reads=(Manifest,), flow=_tune),
        "train": Step(reads=(Manifest, Report), flow=_train),
        "evaluate": Step(reads=(Manifest, EvaluateRequest, Evaluation), flow=_evaluate),
        "decide": Step(reads=(Evaluation, Decision), flow=_decide),
        "register": Step(reads=(Report, Evaluation, Decision, Registration), flow=_register),
        "deploy": Step(reads=(Evaluation, Decision, Registration, Deployment), flow=_deploy),
    },
)
_SCORING_STEPS = Steps(
    plan=ScoringPlan,
    by_task={
        "snapshot": Step(reads=(ScoringInput,), flow=_snapshot_instances),
        "predict": Step(reads=(ScoringInput, Predictions), flow=_predict),
        "write": Step(reads=(Predictions, ScoringResult), flow=_write),
    },
)
_ROLLBACK_STEPS = Steps(plan=Rollback, by_task={"roll_back": Step(reads=(), flow=_roll_back)})
_MONITOR_STEPS = Steps(
    plan=Signals,
    by_task={
        "measure": Step(reads=(), flow=_measure),
        "multivariate": Step(reads=(MultivariateRequest, Multivariate), flow=_measure_multivariate),
        "decide": Step(reads=(Ledger,), flow=_decide_retraining),
    },
)
STEPS: Mapping[str, Steps] = {
    "run": _RUN_STEPS,
    "scoring": _SCORING_STEPS,
    "rollback": _ROLLBACK_STEPS,
    "monitor": _MONITOR_STEPS,
}
"""What the tasks of a DAG read and write, by what it does: the tasks' attribute `lineage_steps`."""

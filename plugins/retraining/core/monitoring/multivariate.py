"""Multivariate drift: can a classifier tell the requests from the champion's training examples?

In: the signals of a monitor run and the champion's plan. Out: the statement that samples both, the job that trains the
classifier, and a signal of what it left. A relation of columns that changed shows here and in no single column. It
costs a query and a job, so it is done only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from retraining.core.catalog.machines import EVALUATE_MACHINE
from retraining.core.data.snapshot import query_parameters
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.documents.document import format_time
from retraining.core.documents.monitoring import Signal, Signals
from retraining.core.documents.multivariate import ComparedColumn, Multivariate, MultivariateRequest
from retraining.core.documents.plan import Machines, Plan, Pool
from retraining.core.documents.snapshot import Snapshot
from retraining.core.errors import DataError
from retraining.core.jobs.requests import COMMAND, JobRequest
from retraining.core.monitoring.request_log import large_batch, smoke_parameters
from retraining.core.monitoring.signals import not_judged
from retraining.core.naming import bigquery, storage, vertex
from retraining.core.settings import Settings
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import ProtoJson

TASK = "multivariate"
FOLDS = 5
TIMEOUT_S = 3600
_SHOWN = 3


def machines() -> Machines:
    """Return what the job runs on: one machine, an hour at most."""
    return Machines(pools=(Pool(machine=EVALUATE_MACHINE, count=1),), spot=False, timeout_s=TIMEOUT_S)


def reason_to_skip(spec: ModelSpec, signals: Signals, *, asked: bool, lately: bool) -> str | None:
    """Return why this monitor run trains no classifier; None: it does.

    Args:
        spec: The model.
        signals: Of this monitor run.
        asked: Whether a person asked for it.
        lately: Whether one was asked for less than `every_days` ago.
    """
    if not asked and (lately or spec.monitoring.multivariate.every_days is None):
        return "nobody asked for it, and monitoring.multivariate.every_days does not either"
    if signals.champion is None or signals.log_table is None:
        return "there is no champion that was asked anything"
    if signals.requests < spec.monitoring.min_requests:
        return f"{signals.requests} instances are too few to judge (at least {spec.monitoring.min_requests})"
    if not compared_columns(spec):
        return "no feature is a number or a category"
    return None


def compared_columns(spec: ModelSpec) -> tuple[ComparedColumn, ...]:
    """Return the features that are compared, numbers and categories: no key, no label, no image, no list."""
    plain = [feature for feature in spec.features if feature.kind in ("numeric", "categorical")]
    return tuple(
        ComparedColumn(
            name=feature.name, column=f"f{place}", values="numeric" if feature.kind == "numeric" else "categorical"
        )
        for place, feature in enumerate(plain)
    )


def sample_table(plan: Plan, monitor_uri: str) -> str:
    """Return the table of both samples of a monitor run, as `project.dataset.table`."""
    name = storage.ledger_id(monitor_uri).replace("-", "_")
    return f"{plan.project}.{plan.dataset}.traffic_{plan.model}__{name}"


def render_sample_sql(
    plan: Plan,
    snapshot: Snapshot,
    signals: Signals,
    target: str,
    smoke_requests: Sequence[SmokeRequest],
    *,
    with_run_table: bool,
) -> Query:
    """Return the statement that makes the table of both samples.

    The training examples are those of the champion's run table; where it has expired, what its query gives now. Where
    one request outweighs all others, it and its like are left out, as they are of the other signals.

    Args:
        plan: Of the champion's run.
        snapshot: Of the same.
        signals: Of this monitor run.
        target: The table to make.
        smoke_requests: What deployments asked; left out.
        with_run_table: Whether the run table is still there.

    Raises:
        DataError: It is not, and the examples came from files that BigQuery no longer has.
    """
    if signals.log_table is None or (not with_run_table and plan.spec.data.files is not None):
        raise DataError(
            snapshot.table,
            "it has expired",
            "the champion's training examples",
            "Retrain, or raise data.keep_table_days",
        )
    smokes = [item for item in smoke_requests if item.end > _start(signals) and item.start < signals.as_of]
    sql = render(
        "multivariate_sample.sql.j2",
        target=target,
        columns=compared_columns(plan.spec),
        log_table=signals.log_table,
        smoke_requests=[f"smoke_{place}" for place in range(len(smokes))],
        large_batch=_has_giant(signals),
        truths=[column.name for column in snapshot.columns if column.type in ("BOOLEAN", "BOOL")],
        key=plan.spec.data.key,
        event_time=plan.spec.data.event_time,
        run_table=snapshot.table if with_run_table else None,
        query=plan.query.sql,
    )
    own = () if with_run_table else query_parameters(plan)
    days = _test_start(plan, used=with_run_table or plan.spec.data.event_time is not None)
    asked = [parameter for place, item in enumerate(smokes) for parameter in smoke_parameters(f"smoke_{place}", item)]
    return Query(sql=sql, parameters=(*own, *_drawn(plan, signals), *days, *asked))


def _start(signals: Signals) -> datetime:
    return signals.as_of - timedelta(hours=signals.window_hours)


def _has_giant(signals: Signals) -> bool:
    return any(signal.reason == "giant_batch" for signal in signals.signals)


def _drawn(plan: Plan, signals: Signals) -> tuple[Parameter, ...]:
    """Return of which hours and batches requests are drawn, and how many rows of each side."""
    drawn = (
        Parameter(name="requests_start", type="TIMESTAMP", value=format_time(_start(signals))),
        Parameter(name="requests_end", type="TIMESTAMP", value=format_time(signals.as_of)),
        Parameter(name="most", type="INT64", value=plan.spec.monitoring.multivariate.max_rows),
    )
    return (
        (*drawn, Parameter(name="large_batch", type="INT64", value=large_batch(plan.spec)))
        if _has_giant(signals)
        else drawn
    )


def _test_start(plan: Plan, *, used: bool) -> tuple[Parameter, ...]:
    return (Parameter(name="test_start", type="DATE", value=plan.window.test_start.isoformat()),) if used else ()


def job_request(plan: Plan, monitor_uri: str, settings: Settings) -> JobRequest:
    """Return the job that trains the classifier.

    Args:
        plan: Of the champion's run.
        monitor_uri: The monitor run's folder.
        settings: Where the job writes, its image, and whom it runs as.
    """
    folder = storage.ledger_id(monitor_uri)
    results_uri = storage.monitor_results_uri(settings.results_bucket, plan.model, folder)
    request = MultivariateRequest(
        digest_required=True,
        model=plan.model,
        run_key=plan.run_key,
        table=sample_table(plan, monitor_uri),
        columns=compared_columns(plan.spec),
        folds=FOLDS,
        seed=plan.spec.training.seed,
        multivariate_uri=storage.document_uri(results_uri, Multivariate.kind_name()),
    )
    request_uri = storage.document_uri(monitor_uri, MultivariateRequest.kind_name())
    pool = machines().pools[0]
    args = ["separate", f"--request={request_uri}"]
    worker: ProtoJson = {
        "machine_spec": {"machine_type": pool.machine},
        "replica_count": 1,
        "disk_spec": {"boot_disk_type": pool.disk_type, "boot_disk_size_gb": pool.disk_gb},
        "container_spec": {"image_uri": settings.trainer_image, "command": list(COMMAND), "args": args},
    }
    job_spec: ProtoJson = {
        "worker_pool_specs": [worker],
        "scheduling": {"timeout": f"{TIMEOUT_S}s"},
        "base_output_directory": {"output_uri_prefix": storage.job_uri(results_uri, TASK)},
    }
    if account := plan.spec.service_account or settings.service_account:
        job_spec["service_account"] = account
    return JobRequest(
        request=request,
        request_uri=request_uri,
        result_uri=request.multivariate_uri,
        adopted_uri=storage.document_uri(monitor_uri, Multivariate.kind_name()),
        result_kind=Multivariate.kind_name(),
        custom_job={
            "display_name": vertex.job_display_name(plan.model, TASK, folder),
            "job_spec": job_spec,
            "labels": vertex.job_labels(plan, TASK),
        },
    )


def query_job_id(environment: str, model: str, as_of: datetime, asked_by: str) -> str:
    """Return the deterministic BigQuery job id of the statement that samples."""
    return bigquery.monitor_job_id(environment, model, as_of, f"{TASK}|{asked_by}")


def judge_classifier(spec: ModelSpec, found: Multivariate | None, *, asked: bool) -> Signal | None:
    """Return the classifier's signal; None: none was asked for.

    Args:
        spec: The model.
        found: What the classifier left; None: nothing.
        asked: Whether one was asked for in this monitor run.
    """
    if found is not None:
        return _judged(spec, found)
    return _failed(spec) if asked else None


def _judged(spec: ModelSpec, found: Multivariate) -> Signal:
    least = spec.monitoring.multivariate.min_auc
    driving = [feature.name for feature in found.features if feature.loss > 0][:_SHOWN]
    exceeded = found.auc > least
    message = (
        f"A classifier tells {found.requests} requests from {found.examples} training examples with an AUC of "
        f"{found.auc:.3f} (between {found.low:.3f} and {found.high:.3f}, limit {least:g})"
    )
    return Signal(
        kind="multivariate",
        subject="",
        state="exceeded" if exceeded else "ok",
        reason=None,
        measure="auc",
        value=found.auc,
        low=found.low,
        high=found.high,
        threshold=least,
        examples=found.requests + found.examples,
        message=f"{message}, most by {', '.join(driving)}." if exceeded and driving else f"{message}.",
    )


def _failed(spec: ModelSpec) -> Signal:
    message = "The classifier left nothing: the task multivariate says why."
    return not_judged(
        "multivariate", "auc", "classifier_failed", message, threshold=spec.monitoring.multivariate.min_auc
    )

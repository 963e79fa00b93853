"""The first tasks of a run: resolve the plan, judge the data."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context

from retraining.core.catalog.capabilities import addresses, load_capabilities, require_trainable
from retraining.core.catalog.cost import load_prices
from retraining.core.catalog.hardware import load_hardware, require_machines
from retraining.core.checks import dataset, quarantine
from retraining.core.data import statistics
from retraining.core.documents import Checks, Plan, Snapshot, Statistics, Trigger
from retraining.core.errors import DataError
from retraining.core.naming import bigquery
from retraining.core.planning import plan, windows
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.hooks.cloud import Cloud
from retraining.operators.earlier import read_history
from retraining.operators.edge import fail_for_good, timed
from retraining.operators.leases import renew_lease
from retraining.operators.links import RunDocumentsLink, folder_address, push_link
from retraining.operators.ownership import own_run, require_own_bucket, require_own_model
from retraining.operators.params import overrides, require_known, retrain_params
from retraining.operators.record import RUN_URI, Record

FORCE_WORDS = (
    "When the source is mended, trigger the DAG again with this run's as_of and the Param force: this run's data stays "
    "as recorded. When the query or the spec is changed, clear plan and what follows it: that makes another run of it"
)


class PlanRunOperator(BaseOperator):
    """Resolve everything this run was asked to do into `plan.json`.

    Args:
        model: Name of the spec.

    Returns:
        `{model, run_key, run_uri, plan_uri, as_of, mode}`.
    """

    operator_extra_links = (RunDocumentsLink(),)

    def __init__(self, *, model: str, **kwargs: Any) -> None:  # noqa: ANN401 - BaseOperator's
        super().__init__(**kwargs)
        self.model = model

    @timed
    @fail_for_good
    def execute(self, context: Context) -> dict[str, Any]:
        """Read the spec and the run, ask `core`, store the plan (or take the one of an equal run)."""
        cloud, include = Cloud(), include_path()
        spec = files.load_spec(include / "models" / f"{self.model}.yaml")
        dag_run, params = context["dag_run"], context["params"]
        require_known(params, retrain_params(spec), addresses(spec, load_capabilities()))
        changed = overrides(spec, params)
        require_trainable(spec.with_overrides(changed), load_capabilities(), f"{self.model} with this run's Params")
        made = plan.build_plan(
            spec=spec,
            sql=files.load_query(spec, include),
            golden_sql=files.load_golden_query(spec, include),
            as_of=windows.resolve_as_of(
                params["as_of"], newest_extra(dag_run), dag_run.logical_date, dag_run.run_after, dag_run.start_date
            ),
            settings=cloud.settings,
            mode="backfill" if run_type(dag_run) == "backfill" else "live",
            trigger=trigger(dag_run),
            overrides=changed,
            force=params["force"],
            deploy=params["deploy"],
            dag_id=dag_run.dag_id,
            dag_run_id=dag_run.run_id,
            prices=load_prices(include),
            over_budget=params["over_budget"],
        )
        require_machines(made.spec, load_hardware(include), made.region)
        require_own_bucket(cloud)
        require_own_model(cloud, self.model)
        record = Record(cloud.artifacts, made.run_uri)
        stored = record.write_once(made)
        renew_lease(cloud, stored.model, stored.run_key, context)
        for line in plan.explain(stored):
            self.log.info(line)
        push_link(self, context, RunDocumentsLink, folder_address(stored.run_uri, stored.project))
        chosen = stored.to_json()
        return {key: chosen[key] for key in ("model", "run_key", "run_uri", "as_of", "mode")} | {
            "plan_uri": record.uri(Plan)
        }


class CheckDataOperator(BaseOperator):
    """Take the statistics of the run table and judge them, before anything is paid for.

    Args:
        run_uri: Folder of the run's record.

    Returns:
        `{passed, warnings, quarantined}`: the days that the run goes on without; a run whose data does not pass fails
        here.
    """

    template_fields = ("run_uri",)

    def __init__(self, *, run_uri: str = RUN_URI, **kwargs: Any) -> None:  # noqa: ANN401 - BaseOperator's
        super().__init__(**kwargs)
        self.run_uri = run_uri

    @timed
    @fail_for_good
    def execute(self, context: Context) -> dict[str, Any]:
        """One query, two documents, a verdict."""
        cloud = Cloud()
        record = own_run(cloud, context, self.run_uri)
        planned, taken = record.read(Plan), record.read(Snapshot)
        found = record.find(Statistics) or record.write_once(self._count(cloud, planned, taken, context))
        judged = record.find(Checks)
        if judged is None:
            judged = record.write_once(
                dataset.check_data(planned, taken, found, read_history(cloud.artifacts, planned))
            )
        for finding in judged.findings:
            self.log.warning(
                "%s: %s (found %s, expected %s)", finding.check, finding.words, finding.found, finding.expected
            )
        if not judged.passed:
            blocking = [finding for finding in judged.findings if finding.severity == "block"]
            words = "; ".join(finding.words for finding in blocking)
            raise DataError(record.uri(Checks), f"{len(blocking)} findings block: {words}", "none", FORCE_WORDS)
        return {
            "passed": True,
            "warnings": [finding.words for finding in judged.findings],
            "quarantined": [day.isoformat() for day in judged.quarantined],
        }

    @staticmethod
    def _count(cloud: Cloud, planned: Plan, taken: Snapshot, context: Context) -> Statistics:
        """The statistics; when days are bad and shall be left out, once more without them."""
        attempt = job_attempt(context)
        query = statistics.render_statistics_sql(planned, taken)
        rows = cloud.warehouse.run(query, bigquery.query_job_id(planned, "statistics", attempt), "statistics").rows
        days = statistics.build_days(planned, rows)
        bad = quarantine.days_to_leave_out(planned, days)
        if bad:
            query = statistics.render_statistics_sql(planned, taken, bad)
            job_id = bigquery.query_job_id(planned, "statistics_of_the_rest", attempt)
            rows = cloud.warehouse.run(query, job_id, "statistics of the rest").rows
        return statistics.build_statistics(planned, taken, rows, days, bad)


def job_attempt(context: Context) -> str:
    """What tells a wanted repetition of a query (another run, a cleared task) from a retry."""
    ti = context["ti"]
    return f"{ti.dag_id}|{ti.run_id}|{ti.max_tries}"


def run_type(dag_run: Any) -> str:  # noqa: ANN401 - Airflow's DagRun has another class per version
    """The run's type as text: `manual`, `scheduled`, `backfill`, `asset_triggered`."""
    return str(getattr(dag_run.run_type, "value", dag_run.run_type))


def newest_extra(dag_run: Any) -> dict[str, Any]:  # noqa: ANN401 - see run_type
    """`extra` of the newest asset event that started the run; empty when none did."""
    events = sorted(getattr(dag_run, "consumed_asset_events", None) or (), key=lambda event: event.timestamp)
    return dict(events[-1].extra or {}) if events else {}


def trigger(dag_run: Any) -> Trigger:  # noqa: ANN401 - see run_type
    """Who started the run, and the reason given."""
    kind = run_type(dag_run)
    if kind == "asset_triggered":
        return Trigger(kind="asset", reason=str(newest_extra(dag_run).get("reason") or "an asset event"))
    if kind == "scheduled":
        return Trigger(kind="scheduled", reason="the model's schedule")
    if kind == "backfill":
        return Trigger(kind="backfill", reason="a backfill")
    person = getattr(dag_run, "triggering_user_name", None)
    return Trigger(kind="manual", reason=f"by {person}" if person else "by hand")

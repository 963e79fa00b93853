"""The first tasks of a walk-forward: which dates and days it takes, at what price; and of each version its plan."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, cast

from airflow.sdk import Context, PokeReturnValue

from retraining.core.catalog.cost import load_prices
from retraining.core.documents import Plan, WalkForwardPlan
from retraining.core.planning import plan
from retraining.core.planning.params import require_known
from retraining.core.planning.windows import AsOf
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.budgets import load_budgets
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import spec_path
from retraining.core.untyped import XCom
from retraining.core.walk_forward import plan as walk
from retraining.hooks.clock import data_days
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.airflow.cloud_task import CloudOperator, CloudSensor, RunTask
from retraining.operators.airflow.dag_run import end_run, states_of_mapped, trigger
from retraining.operators.airflow.links import RunDocumentsLink, push_link, shown_address
from retraining.operators.airflow.params import walk_forward_params
from retraining.operators.data.run_table import query_columns
from retraining.operators.planning.possible_runs import require_possible
from retraining.operators.record.ownership import renew_lease, require_own_bucket
from retraining.operators.record.run_record import Record
from retraining.operators.record.spending import require_month_budget

LAST_TASK = "score"
"""Of a version: one that has ended makes room for the next."""
ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
"""States of a task that is not at work any more, and will not be by itself."""


class PlanWalkForwardOperator(CloudOperator):
    """Choose dates and days, say what they may cost, store the plan; end a dry run.

    Args:
        model: Name of the spec.

    Returns:
        `{model, run_key, run_uri}`, of the run that exports the days that are scored.
    """

    operator_extra_links = (RunDocumentsLink(),)

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Read the spec and the form, ask `core`, store both plans."""
        spec, params, dag_run = _load_spec(self.model), context["params"], context["dag_run"]
        require_known(params, walk_forward_params())
        require_own_bucket(cloud)
        walk.require_walkable(spec)
        asked = _asked(params)
        days = walk.choose_days(asked, spec, dag_run.run_after.date(), data_days(spec))
        as_of = walk.as_of_all_labels(spec.data, days.until)
        planned = walk.days_plan(_build_plan(cloud, context, spec, as_of), days, asked, cloud.settings)
        for warning in require_possible(cloud, planned, include_path()):
            self.log.warning(warning)
        walked = walk.build_walk_plan(planned, days, asked)
        for line in walked.explain:
            self.log.info(line)
        if params["dry_run"]:
            end_run(self, context, "a dry run: nothing was made. Trigger again without dry_run")
        record = Record(cloud.artifacts, planned.run_uri)
        stored = record.write_once(planned)
        record.write_once(walked)
        renew_lease(cloud, stored.model, stored.run_key, context)
        push_link(self, context, RunDocumentsLink, shown_address(stored.run_uri))
        return {"model": stored.model, "run_key": stored.run_key, "run_uri": stored.run_uri}


class ListDatesOperator(RunTask, CloudOperator):
    """List the dates of the versions, for Airflow to make the tasks of each.

    Returns:
        Days as `2013-11-20`, the first one first.
    """

    def act(self, cloud: CloudPort, context: Context) -> list[str]:
        """Read the plan."""
        walked = self.record(cloud, context).read_document(WalkForwardPlan)
        return [day.isoformat() for day in walked.dates]


class PlanVersionOperator(CloudSensor):
    """Wait until it is the version's turn, then plan its run: as that of a backfill of its date.

    Args:
        model: Name of the spec.
        as_of: The version's date.

    Returns:
        `{run_key, run_uri}`.
    """

    template_fields = ("as_of",)

    def __init__(self, *, model: str, as_of: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model
        self.as_of = as_of

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Look how many versions before this one are at work."""
        ti, params = cast("Any", context["ti"]), context["params"]
        ended = {number for number, state in states_of_mapped(context, LAST_TASK).items() if state in ENDED}
        at_work = sum(number not in ended for number in range(ti.map_index))
        if at_work >= params["at_once"]:
            self.log.info("%d versions before this one are at work, and %d may be", at_work, params["at_once"])
            return False
        spec = _load_spec(self.model)
        as_of = walk.at_midnight(date.fromisoformat(self.as_of))
        planned = walk.version_plan(_build_plan(cloud, context, spec, as_of), cloud.settings)
        budgets, billed = load_budgets(include_path()), walk.as_billed(planned, ti.run_id)
        for warning in require_month_budget(
            cloud, budgets, spec, billed, over_budget=params["over_budget"], work="walk_forward"
        ):
            self.log.warning(warning)
        stored = Record(cloud.artifacts, planned.run_uri).write_once(planned)
        renew_lease(cloud, stored.model, stored.run_key, context)
        for line in plan.explain(stored):
            self.log.info(line)
        return PokeReturnValue(True, {"run_key": stored.run_key, "run_uri": stored.run_uri})


def _load_spec(model: str) -> ModelSpec:
    return files.load_spec(spec_path(include_path(), model))


def _asked(params: Mapping[str, Any]) -> walk.AskedWalk:
    return walk.AskedWalk(
        first=walk.read_day(params["first"], "first"),
        last=walk.read_day(params["last"], "last"),
        every=params["every"],
        horizons=tuple(params["horizons"]),
    )


def _build_plan(cloud: CloudPort, context: Context, spec: ModelSpec, as_of: datetime) -> Plan:
    """Return the plan of a backfill of a date."""
    include, dag_run = include_path(), context["dag_run"]
    sql = files.load_query(spec, include)
    asked = plan.AskedRun(
        as_of=AsOf(value=as_of, source="param"),
        mode="backfill",
        trigger=trigger(dag_run),
        dag_id=dag_run.dag_id,
        dag_run_id=dag_run.run_id,
        overrides=walk.without_search(spec),
        force=context["params"]["force"],
        over_budget=context["params"]["over_budget"],
        started=dag_run.start_date,
    )
    return plan.build_plan(
        asked,
        spec=spec,
        sql=sql,
        columns=query_columns(cloud.warehouse, spec, sql),
        settings=cloud.settings,
        prices=load_prices(include),
        own=plan.OwnFiles(assertions=files.load_assertions(spec, include)),
    )

"""The first task of a run: resolve its plan, and refuse before anything is paid for what cannot be done at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import Context

from retraining.core.catalog.capabilities import addresses, load_capabilities, require_trainable
from retraining.core.catalog.cost import load_prices
from retraining.core.documents import Plan
from retraining.core.naming.stage_runs import PARAM
from retraining.core.planning import pauses, plan, windows
from retraining.core.planning.params import overrides, require_known
from retraining.core.planning.taken_versions import TakenVersion
from retraining.core.planning.triggers import AssetEvent, mode_of
from retraining.core.promotion import deployments
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.budgets import load_budgets
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.own_gates import require_gates
from retraining.core.spec.teams import spec_path
from retraining.core.untyped import XCom, YamlValues
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.dag_run import asks_for_study, asset_events, end_run, newest_extra, run_type, trigger
from retraining.operators.airflow.failures import forget_unplanned
from retraining.operators.airflow.links import ReportLink, RunDocumentsLink, push_link, shown_address
from retraining.operators.airflow.params import retrain_params
from retraining.operators.data.assertions import price_assertions
from retraining.operators.data.run_table import query_columns
from retraining.operators.planning.possible_runs import require_possible, traffic_of_ramp
from retraining.operators.planning.taken_version import find_taken_version, keep_documents, require_takeable
from retraining.operators.record.interventions import find_pause, gone_back_since
from retraining.operators.record.ownership import renew_lease, require_own_bucket
from retraining.operators.record.run_record import Record
from retraining.operators.record.spending import require_month_budget


class PlanRunOperator(CloudOperator):
    """Resolve everything this run was asked to do into `plan.json`; end a run of a model whose retraining is paused.

    Args:
        model: Name of the spec.

    Returns:
        `{model, run_key, run_uri, plan_uri, as_of, mode}`.
    """

    operator_extra_links = (RunDocumentsLink(), ReportLink())

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Read the spec and the run, ask `core`, store the plan (or take the one of an equal run)."""
        include = include_path()
        spec = files.load_spec(spec_path(include, self.model))
        params = context["params"]
        require_known(params, retrain_params(spec), addresses(spec, load_capabilities()))
        require_own_bucket(cloud)
        if not params["force"] and (pause := find_pause(cloud, self.model, context)):
            self._end(context, f"{pauses.explain_pause(pause)} {pauses.way_out(pause)}")
        events = asset_events(context)
        changed = overrides(spec, params, tune=asks_for_study(events))
        require_trainable(spec.with_overrides(changed), load_capabilities(), f"{self.model} with this run's Params")
        taken = find_taken_version(cloud, include, self.model, params.get(PARAM))
        planned = _build_plan(cloud, _asked(context, changed, events, taken), spec, include)
        if taken:
            require_takeable(cloud, planned, taken)
        self._require_doable(cloud, include, spec, planned, over_budget=params["over_budget"])
        record = Record(cloud.artifacts, planned.run_uri)
        stored = record.write_once(planned)
        if taken:
            keep_documents(cloud, stored, taken)
        renew_lease(cloud, stored.model, stored.run_key, context)
        for line in plan.explain(stored):
            self.log.info(line)
        if traffic := traffic_of_ramp(cloud, stored):
            self.log.info(traffic)
        self._warn(cloud, stored, context)
        push_link(self, context, RunDocumentsLink, shown_address(stored.run_uri))
        chosen = stored.to_json()
        return {key: chosen[key] for key in ("model", "run_key", "run_uri", "as_of", "mode")} | {
            "plan_uri": record.uri(Plan)
        }

    def _require_doable(
        self, cloud: CloudPort, include: Path, spec: ModelSpec, planned: Plan, *, over_budget: bool
    ) -> None:
        """Refuse what cannot be done, or passes a budget; log what is only unwise, and what a team's checks read."""
        for warning in require_possible(cloud, planned, include):
            self.log.warning(warning)
        for line in price_assertions(cloud, planned, load_prices(include)):
            self.log.info(line)
        for warning in require_month_budget(cloud, load_budgets(include), spec, planned, over_budget=over_budget):
            self.log.warning(warning)

    def _warn(self, cloud: CloudPort, stored: Plan, context: Context) -> None:
        """Say what came between the run's order and its plan; why an earlier run came to none counts no more."""
        forget_unplanned(cloud, context)
        if deployments.may_deploy(stored) and (warning := gone_back_since(cloud, stored.model, context)):
            self.log.warning(warning)

    def _end(self, context: Context, message: str) -> None:
        self.log.warning(message)
        end_run(self, context, message)


def _build_plan(cloud: CloudPort, asked: plan.AskedRun, spec: ModelSpec, include: Path) -> Plan:
    """Return the plan by the model's files."""
    sql = files.load_query(spec, include)
    return plan.build_plan(
        asked,
        spec=spec,
        sql=sql,
        columns=query_columns(cloud.warehouse, spec, sql),
        settings=cloud.settings,
        prices=load_prices(include),
        frozen_set_sql=files.load_frozen_set_query(spec, include),
        own=plan.OwnFiles(assertions=files.load_assertions(spec, include), gates=require_gates(spec, include)),
    )


def _asked(
    context: Context, changed: YamlValues, events: Sequence[AssetEvent], taken: TakenVersion | None
) -> plan.AskedRun:
    """Return what Airflow says of the run."""
    dag_run, params = context["dag_run"], context["params"]
    as_of = windows.resolve_as_of(
        params["as_of"], newest_extra(events), dag_run.logical_date, dag_run.run_after, dag_run.start_date
    )
    return plan.AskedRun(
        as_of=as_of,
        mode=mode_of(run_type(dag_run)),
        trigger=trigger(dag_run, events),
        dag_id=dag_run.dag_id,
        dag_run_id=dag_run.run_id,
        overrides=changed,
        force=params["force"],
        deploy=params["deploy"],
        over_budget=params["over_budget"],
        started=dag_run.start_date,
        taken_from=taken.value if taken else None,
    )

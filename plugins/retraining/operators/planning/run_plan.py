"""The first task of a run: resolve its plan, and refuse before anything is paid for what cannot be done at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import Context

from retraining.core.catalog.capabilities import addresses, load_capabilities, require_trainable
from retraining.core.catalog.containers import load_containers, require_serving_container, require_training_container
from retraining.core.catalog.cost import load_prices
from retraining.core.catalog.hardware import load_hardware, require_machines
from retraining.core.catalog.trainers import require_trainer
from retraining.core.data.image_objects import folders_to_list
from retraining.core.documents import Plan
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.planning import locations, pauses, plan, windows
from retraining.core.planning.params import overrides, require_known
from retraining.core.planning.triggers import AssetEvent, mode_of
from retraining.core.promotion import deployments
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import XCom, YamlValues
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.dag_run import asks_for_study, asset_events, end_run, newest_extra, run_type, trigger
from retraining.operators.airflow.failures import forget_unplanned
from retraining.operators.airflow.links import ReportLink, RunDocumentsLink, push_link, shown_address
from retraining.operators.airflow.params import retrain_params
from retraining.operators.data.run_table import query_columns
from retraining.operators.record.leases import renew_lease
from retraining.operators.record.ownership import require_nobodys_bucket, require_own_bucket, require_own_model
from retraining.operators.record.pauses import find_pause
from retraining.operators.record.run_record import Record
from retraining.operators.record.ways_back import gone_back_since


def require_possible(cloud: CloudPort, planned: Plan, include: Path) -> list[str]:
    """Refuse a run that could not be done: by its trainer, machines, containers, endpoint or places.

    Nothing is written.

    Returns:
        Warnings, of what is only unwise.

    Raises:
        RetrainingError: It cannot be done; says why.
    """
    require_nobodys_bucket(cloud)
    require_trainable(planned.spec, load_capabilities(), f"{planned.model} with the columns of its query")
    require_trainer(planned.spec, include, f"{planned.model} with this run's Params")
    require_machines(planned.spec, load_hardware(include), planned.region, planned.machines)
    containers, day = load_containers(include), planned.as_of.date()
    require_training_container(planned.spec, containers, day)
    require_serving_container(planned.spec, planned.serving_image, containers, day)
    _require_deployable(cloud, planned)
    return list(_location_warnings(cloud, planned.spec))


def _require_deployable(cloud: CloudPort, planned: Plan) -> None:
    """Refuse a run that could not register or deploy what it would pay for.

    Raises:
        SettingsError: The model or its endpoint is another's.
        ContractError: The endpoint there is of the other kind than the spec says.
    """
    require_own_model(cloud, planned.model, staging=planned.spec.deployment.staging)
    if deployments.may_deploy(planned) and (endpoint := cloud.endpoints.get(planned.model)):
        deployments.require_kind(planned, endpoint.name, dedicated=endpoint.dedicated)


def _location_warnings(cloud: CloudPort, spec: ModelSpec) -> Iterator[str]:
    """Yield what is wrong with where buckets and dataset are, as far as the account may know.

    Raises:
        SettingsError: No statement could be run where the dataset is, or none could load the files.
    """
    settings, files = cloud.settings, spec.data.files
    for name in sorted({ObjectAddress.parse(uri).bucket for uri in files.uris} if files else ()):
        if found := cloud.artifacts.bucket_locations(name):
            locations.require_source_bucket(name, found, settings.region)
    for name in sorted({ObjectAddress.parse(folder).bucket for folder in folders_to_list(spec)}):
        found = cloud.artifacts.bucket_locations(name)
        if found and (warning := locations.bucket_warning(name, found, settings.region, of_images=True)):
            yield warning
    for name in dict.fromkeys((settings.bucket, settings.results_bucket)):
        found = cloud.artifacts.bucket_locations(name)
        if found and (warning := locations.bucket_warning(name, found, settings.region)):
            yield warning
    dataset = cloud.warehouse.dataset_location(settings.dataset)
    if dataset and (warning := locations.dataset_warning(settings.dataset, dataset, settings.region)):
        yield warning


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
        spec = files.load_spec(include / "models" / f"{self.model}.yaml")
        params = context["params"]
        require_known(params, retrain_params(spec), addresses(spec, load_capabilities()))
        require_own_bucket(cloud)
        if not params["force"] and (pause := find_pause(cloud, self.model, context)):
            self._end(context, f"{pauses.explain_pause(pause)} {pauses.way_out(pause)}")
        events = asset_events(context)
        changed = overrides(spec, params, tune=asks_for_study(events))
        require_trainable(spec.with_overrides(changed), load_capabilities(), f"{self.model} with this run's Params")
        asked, sql = _asked(context, changed, events), files.load_query(spec, include)
        planned = plan.build_plan(
            asked,
            spec=spec,
            sql=sql,
            columns=query_columns(cloud.warehouse, spec, sql),
            settings=cloud.settings,
            prices=load_prices(include),
            frozen_set_sql=files.load_frozen_set_query(spec, include),
        )
        for warning in require_possible(cloud, planned, include):
            self.log.warning(warning)
        record = Record(cloud.artifacts, planned.run_uri)
        stored = record.write_once(planned)
        renew_lease(cloud, stored.model, stored.run_key, context)
        for line in plan.explain(stored):
            self.log.info(line)
        self._warn(cloud, stored, context)
        push_link(self, context, RunDocumentsLink, shown_address(stored.run_uri))
        chosen = stored.to_json()
        return {key: chosen[key] for key in ("model", "run_key", "run_uri", "as_of", "mode")} | {
            "plan_uri": record.uri(Plan)
        }

    def _warn(self, cloud: CloudPort, stored: Plan, context: Context) -> None:
        """Say what came between the run's order and its plan; why an earlier run came to none counts no more."""
        forget_unplanned(cloud, context)
        if deployments.may_deploy(stored) and (warning := gone_back_since(cloud, stored.model, context)):
            self.log.warning(warning)

    def _end(self, context: Context, message: str) -> None:
        self.log.warning(message)
        end_run(self, context, message)


def _asked(context: Context, changed: YamlValues, events: Sequence[AssetEvent]) -> plan.AskedRun:
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
    )

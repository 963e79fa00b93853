"""The task `plan` of a scoring: who is scored, by which version, into which table, at what price."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from retraining.core.catalog.amounts import require_quota, scoring_job
from retraining.core.catalog.cost import load_prices
from retraining.core.catalog.hardware import load_hardware, require_serving_machine
from retraining.core.documents import Plan, Report, ScoringPlan
from retraining.core.naming import storage
from retraining.core.planning import windows
from retraining.core.planning.params import require_known
from retraining.core.scoring import plan
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.quotas import load_quotas
from retraining.core.spec.teams import spec_path
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.dag_run import trigger
from retraining.operators.airflow.links import RunDocumentsLink, push_link, shown_address
from retraining.operators.airflow.params import score_params
from retraining.operators.record.ownership import require_own_bucket, require_own_model
from retraining.operators.record.run_record import Record


class PlanScoringOperator(CloudOperator):
    """Resolve everything this scoring was asked to do into `scoring_plan.json`.

    Args:
        model: Name of the spec.

    Returns:
        `{model, run_key, run_uri, as_of, version_id, destination}`.
    """

    operator_extra_links = (RunDocumentsLink(),)

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Read spec, form and registry, ask `core`, store the plan (or take the one of an equal scoring)."""
        require_own_bucket(cloud)
        require_own_model(cloud, self.model)
        made = self._build_plan(cloud, context)
        record = Record(cloud.artifacts, made.run_uri)
        stored = record.write_once(made)
        for line in plan.explain(stored):
            self.log.info(line)
        push_link(self, context, RunDocumentsLink, shown_address(stored.run_uri))
        chosen = stored.to_json()
        return {key: chosen[key] for key in ("model", "run_key", "run_uri", "as_of", "destination")} | {
            "version_id": stored.version.version_id
        }

    def _build_plan(self, cloud: CloudPort, context: Context) -> ScoringPlan:
        include, dag_run, params = include_path(), context["dag_run"], context["params"]
        spec = files.load_spec(spec_path(include, self.model))
        require_known(params, score_params(spec))
        scoring = plan.with_params(spec, params)
        plan.require_places(spec, scoring, cloud.settings)
        hardware = load_hardware(include)
        require_serving_machine(scoring.machine, hardware, f"Param machine of {self.model}")
        job = scoring_job(scoring.machine, scoring.replicas)
        require_quota(load_quotas(include), hardware, cloud.settings.region, self.model, job)
        sql = files.load_scoring_query(self.model, scoring.query, include) if scoring.query else None
        version = plan.choose_version(self.model, scoring.version, cloud.registry.list_versions(self.model))
        trained = Record(cloud.artifacts, storage.run_uri(cloud.settings.bucket, self.model, version.run_key))
        as_of = windows.resolve_as_of(
            params["as_of"], None, dag_run.logical_date, dag_run.run_after, dag_run.start_date
        )
        asked = plan.AskedScoring(
            as_of=as_of,
            trigger=trigger(dag_run),
            dag_id=dag_run.dag_id,
            dag_run_id=dag_run.run_id,
            force=params["force"],
        )
        return plan.build_scoring_plan(
            asked,
            model=spec.name,
            scoring=scoring,
            sql=sql,
            scorer=plan.Scorer(
                version=version,
                trained=trained.read_document(Plan),
                report=trained.read_document(Report),
                service_account=spec.service_account,
                log_share=None if spec.deployment.endpoint else spec.deployment.request_log_sampling,
            ),
            settings=cloud.settings,
            prices=load_prices(include),
        )

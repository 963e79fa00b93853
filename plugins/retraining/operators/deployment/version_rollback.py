"""Going back to an earlier version, in seconds where it is still deployed."""

from __future__ import annotations

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Pause, Plan, Report, Rollback, Rollout
from retraining.core.errors import PlanError
from retraining.core.naming import dags, pages, storage, vertex
from retraining.core.naming.trust import require_agreement
from retraining.core.notification import notices
from retraining.core.planning import pauses
from retraining.core.promotion import rollbacks, rollouts
from retraining.core.promotion.rollbacks import AskedRollback
from retraining.core.promotion.versions import Version
from retraining.core.settings import include_path
from retraining.core.spec.teams import find_specs, plain_name
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.airflow.cloud_task import CloudSensor
from retraining.operators.airflow.dag_run import trigger
from retraining.operators.airflow.lineage import LineageMixin
from retraining.operators.airflow.links import EndpointLink, push_link
from retraining.operators.airflow.notification import run_of, tell
from retraining.operators.deployment.rollout import RolloutSteps
from retraining.operators.deployment.rollout_end import (
    close_rollout,
    require_promoted,
    roll_back,
    settle_another,
    settle_rollout,
)
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState
from retraining.operators.record.interventions import store_pause
from retraining.operators.record.ownership import require_own_bucket, require_own_model
from retraining.operators.record.run_record import Record

AGAIN_S = 10.0
"""Until the next poke, where somebody else changed the rollout meanwhile."""


class RollBackOperator(LineageMixin, CloudSensor):
    """Give an earlier version the traffic, then the alias `champion`; end a deployment that is under way first.

    A pause of retraining is written before anything else, so that no run begins meanwhile; it holds whether the way
    back is refused or not.

    The change stands in the model's rollout, as a run's deployment does, and takes the same steps: at whatever line it
    dies, the next try goes on with it. The Params are the form of the DAGs `rollback` and `rollback__<model>`.

    Returns:
        `{model, version_name, words}`.
    """

    lineage_steps = "rollback"
    operator_extra_links = (EndpointLink(),)

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Take the recorded rollback, or go on with it."""
        asked = asked_rollback(context)
        state = RolloutState(cloud, asked.model)
        # Before all else, and not again: once its run has been torn down, what this process read here allows nothing.
        state.read_rollout()
        self.lineage_record = rollback_record(cloud, asked)
        try:
            if pause := _pause(asked, context["params"]["pause_until"]):
                self._pause(cloud, state, pause)
            if asked.to == rollbacks.STAY:
                return PokeReturnValue(
                    True, {"model": asked.model, "version_name": None, "words": "The champion stays."}
                )
            done = self._go_on(cloud, context, asked, state)
        except OvertakenError as error:
            self.log.warning("%s", error)
            self.poke_interval = min(self.poke_interval, AGAIN_S)
            return False
        if done is None:
            return False
        if endpoint := cloud.endpoints.get(asked.model):
            push_link(self, context, EndpointLink, pages.endpoint_address(endpoint.name))
        self.log.info(done.message)
        folder = self.lineage_record.folder_uri
        tell(lambda: cloud, context, lambda: notices.of_rollback(done, run_of(context)), folder)
        return PokeReturnValue(True, {"model": done.model, "version_name": done.version_name, "words": done.message})

    def _go_on(self, cloud: CloudPort, context: Context, asked: AskedRollback, state: RolloutState) -> Rollback | None:
        """Return the recorded rollback, or bring it as far as it comes now; None: the next poke goes on."""
        record = rollback_record(cloud, asked)
        done = record.find_document(Rollback)
        if done is None:
            found = _Change(cloud, asked, state, dag_run_label(context)).advance()
            if found is None:
                return None
            done = record.write_once(found)
        if state.found is not None and state.found.rollback == asked.name:
            close_rollout(state)
        return done

    def _pause(self, cloud: CloudPort, state: RolloutState, pause: Pause) -> None:
        require_own_bucket(cloud)
        if pause.model not in (known := _known()):
            rollbacks.require_versions(pause.model, cloud.registry.list_versions(pause.model), known)
        state.require_unchanged()
        store_pause(cloud, pause)
        self.log.info(pauses.explain_pause(pause))


class _Change:
    """One step of a rollback: by what the model's rollout says now.

    Args:
        cloud: The hooks.
        asked: By a person.
        state: Of the model's rollout.
        dag_run: Label of the DAG run.
    """

    def __init__(self, cloud: CloudPort, asked: AskedRollback, state: RolloutState, dag_run: str) -> None:
        self._cloud = cloud
        self._asked = asked
        self._state = state
        self._dag_run = dag_run

    def advance(self) -> Rollback | None:
        """Go as far as this poke allows; None: something is waited for.

        Raises:
            OvertakenError: Somebody else changed the rollout: what follows from it is to be read.
        """
        asked, last = self._asked, self._state.found
        champion = self._cloud.registry.find_by_alias(asked.model, vertex.CHAMPION)
        if last is not None and last.rollback == asked.name:
            return self._go_back(last, champion)
        rollbacks.require_serving(asked, last, champion)
        versions = self._cloud.registry.list_versions(asked.model)
        if last is not None and rollouts.is_open(last):
            rollbacks.require_target(asked, versions, _known(), champion)
            return self.advance() if self._end(last, champion) else None
        if last is not None and rollbacks.stops(asked, last, champion):
            return rollbacks.stopped(asked, last, self._cloud.endpoints.name_of(asked.model))
        rollbacks.require_versions(asked.model, versions, _known())
        require_own_model(self._cloud, asked.model)
        target = rollbacks.choose_target(asked, versions, last, self._cloud.clock.now())
        way_out = "Name a version that was champion, or may become it"
        require_promoted(self._cloud, asked.model, target, f"Param to of {asked.model}", way_out)
        own = target.labels.get(vertex.MODELS_LABEL) == vertex.OWN
        there = self._cloud.artifacts.exists(storage.model_file_uri(target.model_uri, own=own))
        rollbacks.require_model_files(target, there=there)
        return self._go_back(target, champion)

    def _end(self, last: Rollout, champion: Version | None) -> bool:
        """Bring what is under way to its end: a champion's is completed, any other is stopped. False: not yet."""
        if last.rollback:
            return settle_another(self._cloud, self._state)
        if rollouts.direction(last, champion)[0] == "done":
            return settle_rollout(self._cloud, self._state)
        if last.stopped_by != self._asked.name:
            reason = rollbacks.reason_of_stop(self._asked)
            self._state.change_rollout(state="returning", reason=reason, stopped_by=self._asked.name)
        return roll_back(self._cloud, self._state)

    def _go_back(self, target: Version | Rollout, champion: Version | None) -> Rollback | None:
        """Take the steps of a deployment with a version that was one already."""
        cloud, asked = self._cloud, self._asked
        folder = storage.run_uri(cloud.settings.bucket, asked.model, target.run_key)
        record = Record(cloud.artifacts, folder)
        plan, report = record.read_document(Plan), record.find_document(Report)
        require_agreement(plan, folder, cloud.settings)
        registration = rollbacks.registration_of(asked.model, target)
        steps = RolloutSteps(cloud, plan, registration, report, self._state, asked.name)
        done = steps.advance_rollout(champion, self._dag_run)
        name = self._cloud.endpoints.name_of(asked.model)
        return rollbacks.gone_back(asked, self._state.current, name) if done else None


def _known() -> list[str]:
    return [plain_name(path) for path in find_specs(include_path())]


def rollback_record(cloud: CloudPort, asked: AskedRollback) -> Record:
    """Return the folder of a rollback's document."""
    return Record(cloud.artifacts, storage.rollback_uri(cloud.settings.bucket, asked.model, asked.name))


def dag_run_label(context: Context) -> str:
    """Return the label of the DAG run, which its rollout has."""
    return vertex.dag_run_label(context["ti"].dag_id, context["ti"].run_id)


def asked_rollback(context: Context) -> AskedRollback:
    """Return what the form and Airflow say.

    Raises:
        PlanError: The DAG is of another model than the form names: who may trigger it may not take that one back.
    """
    dag_run, params = context["dag_run"], context["params"]
    dag_id = context["ti"].dag_id
    own = dags.find_model_of_dag(dag_id)
    if own not in (None, params["model"]):
        raise PlanError(
            f"Param model of {dag_id}",
            repr(params["model"]),
            repr(own),
            f"Trigger {dags.ROLLBACK}, or that model's own",
        )
    return AskedRollback(
        model=params["model"],
        to=params["to"],
        reason=params["reason"],
        name=storage.rollback_name(dag_run.run_after, dag_run.run_id),
        dag_run_id=dag_run.run_id,
        trigger=trigger(dag_run),
        asked=dag_run.run_after,
        from_version=params.get("from_version"),
    )


def _pause(asked: AskedRollback, day: str | None) -> Pause | None:
    """Return the pause that was asked for, or its end; None: neither."""
    if not day and asked.to != rollbacks.STAY:
        return None
    when = asked.asked.replace(microsecond=0)
    return Pause(
        model=asked.model,
        until=pauses.end_of_pause(day, when) if day else None,
        reason=asked.reason,
        trigger=asked.trigger,
        asked=when,
        dag_run_id=asked.dag_run_id,
    )

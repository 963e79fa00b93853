"""The end of a change of a champion: completing one that is proven, or bringing back what was before.

Whoever comes by does it: the task itself, the next run's, the run's teardown, the daily cleaning. Each step looks first
and may be repeated. Traffic is set before anything is undeployed. Aliases go only to versions whose own run's decision
promoted them: the rollout says which version was champion, and may be a copy from elsewhere, or written by somebody
else; the decision lies in the folder of the run that the version's own label names.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping

from retraining.core.documents import Before, Decision, Deployment, Plan, Registration, Rollout
from retraining.core.errors import ConflictError
from retraining.core.naming import storage, vertex
from retraining.core.promotion import aliases, ramp, rollouts
from retraining.core.promotion.aliases import AliasChange
from retraining.core.promotion.versions import Version
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.ports import CloudPort
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState, move_traffic
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
WAY_OUT = (
    "Look who wrote it, delete it once the endpoint and the alias champion are as they shall be, and clear the task"
)


def is_promoted(cloud: CloudPort, model: str, version: Version) -> bool:
    """Return whether a version's own run promoted it; of one that no run made, whether it is deployed.

    Raises:
        ContractError: The decision does not obey the contract.
    """
    if not version.run_key:
        return version.deployed
    folder = storage.run_uri(cloud.settings.bucket, model, version.run_key)
    decision = Record(cloud.artifacts, folder).find_document(Decision)
    return decision is not None and (decision.verdict, decision.run_key) == ("promote", version.run_key)


def require_promoted(cloud: CloudPort, model: str, version: Version, where: str, way_out: str = WAY_OUT) -> None:
    """Refuse to make a version champion that its own run did not promote.

    Args:
        cloud: The hooks.
        model: Of the version.
        version: That is to be champion.
        where: What names it.
        way_out: For whoever reads it.

    Raises:
        ContractError: Its run's decision says otherwise, or there is none.
    """
    if not is_promoted(cloud, model, version):
        raise aliases.without_verdict(where, version, way_out)


def settle_run(cloud: CloudPort, model: str, dag_run: str) -> bool:
    """Settle what an ended DAG run left of its deployment; False when something is still under way.

    Args:
        cloud: The hooks.
        model: Of the run.
        dag_run: Label of the DAG run.
    """
    state = RolloutState(cloud, model)
    rollout = state.read_rollout()
    if rollout is None or rollout.dag_run != dag_run:
        return True
    try:
        return settle_rollout(cloud, state)
    except ConflictError as error:  # the task's process lives still, or another one settles it
        LOGGER.info("%s", error)
        return False


def fence_off(cloud: CloudPort, record: Record, dag_run: str) -> None:
    """See to it that a process of an ended run that lives still begins no rollout.

    Args:
        cloud: The hooks.
        record: Of the run.
        dag_run: Label of the DAG run.
    """
    registration = record.find_document(Registration)
    if registration is None or record.find_document(Deployment) is not None:
        return
    state = RolloutState(cloud, registration.model)
    rollout = state.read_rollout()
    if rollouts.is_open(rollout):
        return  # another change of the champion: what was read before it allows nothing any more
    if rollout is not None:
        state.fence_off()
        return
    write_unbegun(cloud, state, record.read_document(Plan), registration, dag_run)


def write_unbegun(cloud: CloudPort, state: RolloutState, plan: Plan, registration: Registration, dag_run: str) -> None:
    """Write a model's first rollout down as ended: there is no document yet that a process could be fenced off by.

    Args:
        cloud: The hooks.
        state: As it was read: of none.
        plan: Of the version's run.
        registration: The version.
        dag_run: Label of the DAG run that has ended.
    """
    champion = cloud.registry.find_by_alias(registration.model, vertex.CHAMPION)
    before = state_before(cloud, plan, cloud.endpoints.get(plan.model), champion)
    endpoint = plan.spec.deployment.endpoint
    begun = rollouts.begun(plan, registration, None, before, dag_run, state.moment(), endpoint=endpoint)
    with contextlib.suppress(OvertakenError):
        state.begin_rollout(begun.model_copy(update={"state": "ended", "reason": rollouts.NOT_BEGUN}))


def state_before(
    cloud: CloudPort, plan: Plan, endpoint: Endpoint | None, champion: Version | None, *, again: bool = False
) -> Before:
    """Return what is so now, and what a rollout of a run's version goes back to.

    Args:
        cloud: The hooks.
        plan: The run.
        endpoint: Of the model; None: there is none.
        champion: The version with that alias now.
        again: Whether that is the run's own.
    """
    registry, model = cloud.registry, plan.model
    previous = registry.find_by_alias(model, vertex.PREVIOUS)
    default = registry.find_by_alias(model, vertex.DEFAULT)
    deployed, traffic = (endpoint.deployed, endpoint.traffic) if endpoint else ({}, {})
    own = ramp.own_models(deployed, registry.list_versions(model), champion.version_name if champion else None)
    return rollouts.state_before(plan.run_key, champion, previous, default, traffic, own, again=again)


def settle_rollout(cloud: CloudPort, state: RolloutState) -> bool:
    """Bring an open rollout to its end when its run does not any more; False when something is still under way.

    Args:
        cloud: The hooks.
        state: As it was read.

    Raises:
        OvertakenError: Somebody else is at work on it.
    """
    if not rollouts.is_open(state.found):
        return True
    rollout = state.current
    champion = cloud.registry.find_by_alias(rollout.model, vertex.CHAMPION)
    next_state, reason = rollouts.direction(rollout, champion)
    if next_state != rollout.state:
        if next_state == "done" and champion is not None:
            complete_rollout(cloud, champion, state)
        else:
            state.change_rollout(state=next_state, reason=reason)
    if next_state == "returning":
        return roll_back(cloud, state)
    if not undeploy_replaced(cloud, state):
        return False
    close_rollout(state)
    return True


def settle_another(cloud: CloudPort, state: RolloutState) -> bool:
    """Settle what another run left open; wait for a rollback that somebody goes on with. False: not at its end yet.

    Raises:
        OvertakenError: Somebody else is at work on it.
    """
    rollout = state.current
    if rollout.rollback and not rollouts.is_silent(rollout, state.moment(), cloud.settings.wake_interval_s):
        LOGGER.info("rollback %s is under way: waiting for it", rollout.rollback)
        return False
    LOGGER.warning("another run left its deployment open: it is settled first")
    return settle_rollout(cloud, state)


def complete_rollout(cloud: CloudPort, champion: Version, state: RolloutState) -> None:
    """Give a new champion `default`, take `challenger` from it; write down that it is done, and who is kept."""
    if wishes := aliases.changes_of_office(champion):
        state.require_unchanged()
        cloud.registry.merge_aliases(champion, wishes)
    state.change_rollout(state="done", kept=rollouts.kept(state.current, state.moment()))


def undeploy_replaced(cloud: CloudPort, state: RolloutState) -> bool:
    """Take off the endpoint what the new champion has replaced and nobody keeps; its machines are not waited for.

    False: work goes on there, perhaps this very one of an earlier poke, so nothing can be asked for now.
    """
    rollout = state.current
    endpoint = cloud.endpoints.get(rollout.model)
    if endpoint is None:
        return True
    own = ramp.own_models(endpoint.deployed, cloud.registry.list_versions(rollout.model), rollout.before.champion_name)
    others = rollouts.replaced(rollout, endpoint.deployed, own)
    if not others:
        return True
    if running := cloud.endpoints.running_operations(endpoint):
        LOGGER.info("%s is at work on the endpoint: waiting for it", running[0].name)
        return False
    for deployed_id, version_name in others.items():
        if endpoint.traffic.get(deployed_id):
            LOGGER.warning("%s (%s) has traffic: somebody gave it that, it stays", deployed_id, version_name)
            continue
        LOGGER.info("undeploying %s (%s)", deployed_id, version_name)
        if not undeploy(cloud, state, endpoint, deployed_id):
            return False
        endpoint = cloud.endpoints.read_endpoint(endpoint.name)
    return True


def undeploy(cloud: CloudPort, state: RolloutState, endpoint: Endpoint, deployed_id: str) -> bool:
    """Take a deployed model off an endpoint, by what was judged; False: the endpoint is another one by now.

    Args:
        cloud: The hooks.
        state: By which it goes.
        endpoint: As it was judged.
        deployed_id: Of the deployed model.

    Raises:
        OvertakenError: Somebody else is at work on the rollout.
    """
    state.require_unchanged()
    try:
        cloud.endpoints.undeploy(endpoint, deployed_id)
    except OvertakenError:
        raise
    except ConflictError as error:
        LOGGER.warning("%s: %s stays for now", error, deployed_id)
        return False
    return True


def close_rollout(state: RolloutState) -> None:
    """Write down that nothing is open any more."""
    if rollouts.is_open(state.found):
        state.change_rollout(state="ended", operation=None)


def end_recorded(state: RolloutState, run_key: str) -> None:
    """Close the rollout of a run whose deployment is recorded; another run's is not this one's business."""
    rollout = state.read_rollout()
    if rollout is not None and rollout.run_key == run_key and rollout.state == "done":
        close_rollout(state)


def roll_back(cloud: CloudPort, state: RolloutState) -> bool:
    """Bring traffic, aliases and machines back; False while the machines are still coming or going.

    Raises:
        OvertakenError: Somebody else is at work on the rollout.
        ContractError: The document would make a version champion again that no decision promoted.
    """
    rollout = state.current
    for change in aliases.changes_back(rollout, cloud.registry.list_versions(rollout.model)):
        if change.alias == vertex.CHAMPION and not change.taken:
            require_promoted(cloud, rollout.model, change.version, state.uri)
    endpoint = cloud.endpoints.get(rollout.model)
    if endpoint is not None:
        endpoint = _traffic_back(cloud, state, endpoint)
    give_aliases_back(cloud, state)
    if endpoint is not None and not _is_gone(cloud, state, endpoint):
        return False
    if not clear_staging(cloud, state):
        return False
    close_rollout(state)
    return True


def clear_staging(cloud: CloudPort, state: RolloutState) -> bool:
    """Take the version off the endpoint where it was tried; False while machines are still coming or going."""
    rollout = state.current
    endpoint = cloud.endpoints.get(vertex.staging_of(rollout.model)) if rollout.staging else None
    if endpoint is None:
        return True
    if endpoint.traffic or not _is_touched(state, endpoint):
        endpoint = move_traffic(cloud, state, endpoint, lambda _: {})
    return _is_gone(cloud, state, endpoint)


def _traffic_back(cloud: CloudPort, state: RolloutState, endpoint: Endpoint) -> Endpoint:
    rollout = state.current
    untouched = rollout.staging is not None and not rollout.staging.passed  # it did not come so far
    if untouched or _is_touched(state, endpoint):
        return endpoint

    def choose(seen: Endpoint) -> Mapping[str, int]:
        if not seen.traffic.get(rollout.deployed_model_id):
            return seen.traffic
        back = ramp.without_version(rollout, seen.traffic, seen.deployed)
        if back is None:
            LOGGER.warning("nobody but %s is there to answer: it keeps the traffic", rollout.version_name)
            return seen.traffic
        if back:
            LOGGER.warning("the traffic goes back to %s", back)
        else:
            LOGGER.warning("no version served before %s: the endpoint is emptied", rollout.version_name)
        return back

    return move_traffic(cloud, state, endpoint, choose)


def _is_touched(state: RolloutState, endpoint: Endpoint) -> bool:
    """Return whether no change counts there any more that was thought out before the rollout was turned back."""
    return endpoint.allowed_by == str(state.generation)


def _is_gone(cloud: CloudPort, state: RolloutState, endpoint: Endpoint) -> bool:
    """Say whether the version's machines are gone and none are coming; end what is under way."""
    rollout = state.current
    mine = rollout.deployed_model_id
    if rollout.rollback and not rollout.starts:
        return True  # it was deployed before, and stays so
    seen = cloud.endpoints.read_endpoint(endpoint.name)
    running = cloud.endpoints.running_operations(endpoint)
    for operation in running:
        if operation.name == rollout.operation:
            LOGGER.warning("%s is cancelled: nobody waits for it", operation.name)
            cloud.endpoints.cancel_operation(operation.name)
    if seen.traffic.get(mine):
        LOGGER.warning("%s (%s) has traffic: somebody gave it that, it stays", mine, rollout.version_name)
        return not running
    if mine in seen.deployed and not running:
        LOGGER.warning("undeploying %s (%s)", mine, rollout.version_name)
        if not undeploy(cloud, state, seen, mine):
            return False
        seen = cloud.endpoints.read_endpoint(endpoint.name)
    return mine not in seen.deployed and not cloud.endpoints.running_operations(endpoint)


def give_aliases_back(cloud: CloudPort, state: RolloutState) -> None:
    """Give the aliases that this rollout moved back."""
    rollout = state.current
    for change in aliases.changes_back(rollout, cloud.registry.list_versions(rollout.model)):
        state.require_unchanged()
        _change_alias(cloud, change)


def take_aliases_back(cloud: CloudPort, mine: Rollout, state: RolloutState) -> None:
    """Undo what was moved after another change had taken this one's place: aliases know no generation.

    Args:
        cloud: The hooks.
        mine: The rollout as the worker knew it.
        state: Of the same model.
    """
    now = state.read_rollout()
    if not rollouts.is_superseded(mine, now):
        return
    LOGGER.warning("this rollout was ended by another change of the champion")
    for change in aliases.changes_of_latecomer(mine, now, cloud.registry.list_versions(mine.model)):
        _change_alias(cloud, change)


def _change_alias(cloud: CloudPort, change: AliasChange) -> None:
    LOGGER.warning(
        "the alias %s %s version %s",
        change.alias,
        "leaves" if change.taken else "goes back to",
        change.version.version_id,
    )
    cloud.registry.merge_aliases(change.version, [change.wish])

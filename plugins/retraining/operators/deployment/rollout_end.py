"""The end of a change of a champion: completing one that is proven, or bringing back what was before.

Whoever comes by does it: the task itself, the next run's, the run's teardown, the daily cleaning. Each step looks first
and may be repeated. Traffic is set before anything is undeployed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from retraining.core.documents import Rollout
from retraining.core.errors import ConflictError
from retraining.core.naming import vertex
from retraining.core.promotion import aliases, rollouts
from retraining.core.promotion.versions import Version
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.ports import CloudPort, RegistryPort
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState

LOGGER = logging.getLogger(__name__)
TRAFFIC_TRIES = 3


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
    except OvertakenError as error:  # the task's process lives still, or another one settles it
        LOGGER.info("%s", error)
        return False


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
            complete_rollout(cloud.registry, champion, state)
        else:
            state.change_rollout(state=next_state, because=reason)
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


def complete_rollout(registry: RegistryPort, champion: Version, state: RolloutState) -> None:
    """Give a new champion `default`, take `challenger` from it; write down that it is done, and who is kept."""
    if wishes := aliases.changes_of_office(champion):
        registry.merge_aliases(champion, wishes)
    state.change_rollout(state="done", kept=rollouts.kept(state.current, state.moment()))


def undeploy_replaced(cloud: CloudPort, state: RolloutState) -> bool:
    """Take off the endpoint what the new champion has replaced and nobody keeps; its machines are not waited for.

    False: work goes on there, perhaps this very one of an earlier poke, so nothing can be asked for now.
    """
    rollout = state.current
    endpoint = cloud.endpoints.get(rollout.model)
    others = rollouts.replaced(rollout, endpoint.deployed) if endpoint else {}
    if endpoint is None or not others:
        return True
    if running := cloud.endpoints.running_operations(endpoint):
        LOGGER.info("%s is at work on the endpoint: waiting for it", running[0].name)
        return False
    for deployed_id, version_name in others.items():
        if endpoint.traffic.get(deployed_id):
            LOGGER.warning("%s (%s) has traffic: somebody gave it that, it stays", deployed_id, version_name)
            continue
        LOGGER.info("undeploying %s (%s)", deployed_id, version_name)
        cloud.endpoints.undeploy(endpoint, deployed_id)
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
    """Bring traffic, aliases and machines back; False while the machines are still coming or going."""
    rollout = state.current
    endpoint = cloud.endpoints.get(rollout.model)
    if endpoint is not None:
        endpoint = _traffic_back(cloud, state, endpoint)
    give_aliases_back(cloud, rollout)
    if endpoint is not None and not _is_gone(cloud, rollout, endpoint):
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
    if endpoint.traffic:
        endpoint = move_traffic(cloud, state, endpoint, {})
    return _is_gone(cloud, rollout, endpoint)


def move_traffic(cloud: CloudPort, state: RolloutState, endpoint: Endpoint, traffic: Mapping[str, int]) -> Endpoint:
    """Set the traffic while the rollout is still what this worker knows; the endpoint may change for other reasons.

    Raises:
        OvertakenError: Somebody else is at work on the rollout.
        ConflictError: The endpoint changed each time.
    """
    for tries in range(TRAFFIC_TRIES, 0, -1):
        # The etag first: whoever overtakes this worker after the look has then changed it.
        seen = cloud.endpoints.read_endpoint(endpoint.name)
        state.require_unchanged()
        try:
            return cloud.endpoints.set_traffic(seen, traffic)
        except ConflictError:
            if tries == 1:
                raise
    raise AssertionError("unreachable: the last try returns or raises")


def _traffic_back(cloud: CloudPort, state: RolloutState, endpoint: Endpoint) -> Endpoint:
    rollout = state.current
    if not endpoint.traffic.get(rollout.deployed_model_id):
        return endpoint
    before = rollouts.traffic_before(rollout, endpoint.deployed)
    if before:
        LOGGER.warning("the traffic goes back to %s", before)
    else:
        LOGGER.warning("no version served before %s: the endpoint is emptied", rollout.version_name)
    return move_traffic(cloud, state, endpoint, before)


def _is_gone(cloud: CloudPort, rollout: Rollout, endpoint: Endpoint) -> bool:
    """Say whether the version's machines are gone and none are coming; end what is under way."""
    mine = rollout.deployed_model_id
    if rollout.rollback and not rollout.starts:
        return True  # it was deployed before, and stays so
    running = cloud.endpoints.running_operations(endpoint)
    for operation in running:
        if operation.name == rollout.operation:
            LOGGER.warning("%s is cancelled: nobody waits for it", operation.name)
            cloud.endpoints.cancel_operation(operation.name)
    seen = cloud.endpoints.read_endpoint(endpoint.name)
    if mine in seen.deployed and not running:
        LOGGER.warning("undeploying %s (%s)", mine, rollout.version_name)
        cloud.endpoints.undeploy(seen, mine)
        seen = cloud.endpoints.read_endpoint(endpoint.name)
    return mine not in seen.deployed and not cloud.endpoints.running_operations(endpoint)


def give_aliases_back(cloud: CloudPort, rollout: Rollout) -> None:
    """Give the aliases that this rollout moved back."""
    for change in aliases.changes_back(rollout, cloud.registry.list_versions(rollout.model)):
        LOGGER.warning(
            "the alias %s %s version %s",
            change.alias,
            "leaves" if change.taken else "goes back to",
            change.version.version_id,
        )
        cloud.registry.merge_aliases(change.version, [change.wish])

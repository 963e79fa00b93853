"""Deployed models that cost and that nobody brings to an end any more: found and ended by the daily cleaning.

The task that deploys writes at each poke, and a run that ended was settled by its own task `cancel_jobs`. What is here
is what both did not come to.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from retraining.core.documents import CleanedDeployment, FoundDeployment, Rollout
from retraining.core.naming import vertex
from retraining.core.promotion import rollouts
from retraining.core.retention.left_deployments import cleaned, left_on_staging, left_rollout, unclaimed_model
from retraining.hooks.ports import CloudPort
from retraining.operators.deployment.rollout_end import settle_rollout
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState

LOGGER = logging.getLogger(__name__)
LOOKS, LOOK_INTERVAL_S = 60, 10.0
"""Ten minutes for machines that come or go; then the next cleaning goes on."""


def find_deployments(cloud: CloudPort, model: str, as_of: datetime) -> Iterator[FoundDeployment]:
    """Find what is left of deployments of a model; change nothing.

    Args:
        cloud: The hooks.
        model: Whose.
        as_of: Time of the cleaning.
    """
    rollout = RolloutState(cloud, model).read_rollout()
    if _is_left(cloud, rollout, as_of) and rollout:
        yield left_rollout(rollout)
    for deployed_id, version_name in _unclaimed(cloud, model, rollout, as_of).items():
        yield unclaimed_model(model, deployed_id, version_name)
    for deployed_id, version_name in _on_staging(cloud, model, rollout).items():
        yield left_on_staging(model, deployed_id, version_name)


def end_deployment(cloud: CloudPort, deployment: FoundDeployment, as_of: datetime) -> CleanedDeployment:
    """Settle a rollout, or undeploy what nobody claims, if it still is so."""
    state = RolloutState(cloud, deployment.model)
    if deployment.what == "rollout":
        return _settle(cloud, state, deployment, as_of)
    model, deployed_id, rollout = deployment.model, deployment.deployed_model_id, state.read_rollout()
    staging = deployment.what == "staging"
    left = _on_staging(cloud, model, rollout) if staging else _unclaimed(cloud, model, rollout, as_of)
    if deployed_id not in left:
        return cleaned(deployment, "left", "it has traffic, is gone, or a run is at work on it")
    endpoint = cloud.endpoints.get(vertex.staging_of(model) if staging else model)
    if endpoint is not None:
        if endpoint.traffic.get(deployed_id):  # of a try that died while it was asked
            endpoint = cloud.endpoints.set_traffic(endpoint, {})
        cloud.endpoints.undeploy(endpoint, deployed_id)
    return cleaned(deployment, "undeployed")


def _settle(cloud: CloudPort, state: RolloutState, deployment: FoundDeployment, as_of: datetime) -> CleanedDeployment:
    rollout = state.read_rollout()
    if (
        not _is_left(cloud, rollout, as_of)
        or rollout is None
        or rollout.deployed_model_id != deployment.deployed_model_id
    ):
        return cleaned(deployment, "left", "somebody goes on with it, or has brought it to its end")
    try:
        for _ in range(LOOKS):
            if settle_rollout(cloud, state):
                return cleaned(deployment, "settled")
            LOGGER.info("%s: machines are still coming or going", deployment.deployed_model_id)
            cloud.clock.sleep(LOOK_INTERVAL_S)
    except OvertakenError:
        return cleaned(deployment, "left", "somebody goes on with it")
    return cleaned(deployment, "left", "its machines are still coming or going; the next cleaning goes on")


def _is_left(cloud: CloudPort, rollout: Rollout | None, as_of: datetime) -> bool:
    return rollouts.is_left(rollout, as_of, cloud.settings.wake_interval_s)


def _unclaimed(cloud: CloudPort, model: str, rollout: Rollout | None, as_of: datetime) -> dict[str, str]:
    """Return the version names of deployed models that runs made and that nobody claims, by id."""
    endpoint = cloud.endpoints.get(model)
    if endpoint is None or len(endpoint.deployed) == len(endpoint.traffic):
        return {}
    unclaimed = rollouts.unclaimed(endpoint.deployed, endpoint.traffic, _own_ids(cloud, model), rollout, as_of)
    return {deployed_id: endpoint.deployed[deployed_id] for deployed_id in unclaimed}


def _on_staging(cloud: CloudPort, model: str, rollout: Rollout | None) -> dict[str, str]:
    """Return the version names of what tries left on their endpoint, by id."""
    endpoint = cloud.endpoints.get(vertex.staging_of(model))
    if endpoint is None or not endpoint.deployed or rollouts.is_open(rollout):
        return {}
    ours = _own_ids(cloud, model)
    return {deployed_id: name for deployed_id, name in endpoint.deployed.items() if deployed_id in ours}


def _own_ids(cloud: CloudPort, model: str) -> set[str]:
    """Return the ids that runs of this environment give to their deployed models."""
    return {
        vertex.deployed_model_id(version.run_key)
        for version in cloud.registry.list_versions(model)
        if version.run_key and cloud.environment.owns(version.labels, version.artifact_uri)
    }

"""Versions and deployed models that nobody needs any more: found and ended by the daily garbage collection.

Versions are those of the registry that nothing points to. The task that deploys writes at each poke, and a run that
ended was settled by its own task `cancel_jobs`: what is here is what both did not come to.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

from retraining.core.documents import (
    CleanedDeployment,
    CleanedVersion,
    FoundDeployment,
    FoundVersion,
    MaintenancePlan,
    Rollout,
)
from retraining.core.errors import ConflictError, ContractError
from retraining.core.naming import storage, vertex
from retraining.core.promotion import rollouts
from retraining.core.promotion.versions import Version
from retraining.core.retention.versions import (
    cleaned_deployment,
    cleaned_version,
    left_on_staging,
    left_rollout,
    reason_to_keep,
    unclaimed_model,
    versions_to_delete,
)
from retraining.hooks.ports import CloudPort
from retraining.operators.deployment.rollout_end import settle_rollout, undeploy
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState, move_traffic


def find_versions(cloud: CloudPort, model: str, keep: int, at_work: Collection[str]) -> list[FoundVersion]:
    """Find the versions of a model that go; change nothing.

    Args:
        cloud: The hooks.
        model: Whose.
        keep: How many of the newest stay.
        at_work: Keys of the runs that are not at their end.
    """
    rollout = RolloutState(cloud, model).read_rollout()
    return versions_to_delete(model, _own_versions(cloud, model), keep, at_work, rollout)


def delete_versions(cloud: CloudPort, plan: MaintenancePlan) -> Iterator[CleanedVersion]:
    """Delete the versions that a plan names and that nothing points to now either."""
    for model, found in groupby(plan.versions, key=lambda version: version.model):
        yield from _delete_versions(cloud, model, list(found), plan)


def _delete_versions(
    cloud: CloudPort, model: str, found: Sequence[FoundVersion], plan: MaintenancePlan
) -> Iterator[CleanedVersion]:
    state = RolloutState(cloud, model)
    rollout = state.read_rollout()  # first: a change that begins from now on is seen before each deletion
    versions = {version.version_name: version for version in _own_versions(cloud, model)}
    for item in found:
        version = versions.get(item.version_name)
        reason = reason_to_keep(version, rollout) or _work_begun(cloud, item, plan)
        if reason is None and version is not None:
            try:
                state.require_unchanged()
            except OvertakenError:
                reason = "the model's champion is being changed"
            else:
                reason = None if cloud.registry.delete_version(version) else "the service keeps it: it is in use"
        yield cleaned_version(item, reason)


def _work_begun(cloud: CloudPort, found: FoundVersion, plan: MaintenancePlan) -> str | None:
    """Return why a run counts as at work again: it was cleared, and renewed its lease; None: it does not."""
    lease = cloud.objects.find_object(storage.lease_uri(cloud.settings.bucket, found.model, found.run_key))
    return "its run is at work again" if lease is not None and lease.created >= plan.as_of else None


def _own_versions(cloud: CloudPort, model: str) -> list[Version]:
    listed = cloud.registry.list_versions(model)
    return [
        version
        for version in listed
        if version.run_key and cloud.environment.owns(version.labels, version.artifact_uri)
    ]


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
    for staging, found in ((False, unclaimed_model), (True, left_on_staging)):
        endpoint = cloud.endpoints.get(_asked_model(model, staging=staging))
        if endpoint is None:
            continue
        places = endpoint.deployed, endpoint.traffic
        for deployed_id, version_name in _left(cloud, model, places, rollout, as_of, staging=staging).items():
            yield found(model, deployed_id, version_name)


def end_deployment(cloud: CloudPort, deployment: FoundDeployment, as_of: datetime) -> CleanedDeployment:
    """Settle a rollout, or undeploy what nobody claims, if it still is so."""
    state = RolloutState(cloud, deployment.model)
    if deployment.what == "rollout":
        return _settle(cloud, state, deployment, as_of)
    rollout, staging = state.read_rollout(), deployment.what == "staging"
    endpoint = cloud.endpoints.get(_asked_model(deployment.model, staging=staging))
    places = (endpoint.deployed, endpoint.traffic) if endpoint else ({}, {})
    left = _left(cloud, deployment.model, places, rollout, as_of, staging=staging)
    if endpoint is None or deployment.deployed_model_id not in left:
        return cleaned_deployment(deployment, "left", "it has traffic, is gone, or a run is at work on it")
    try:
        if staging and endpoint.traffic:  # of a try that died while it was asked
            endpoint = move_traffic(cloud, state, endpoint, lambda _: {})
        if undeploy(cloud, state, endpoint, deployment.deployed_model_id):
            return cleaned_deployment(deployment, "undeployed")
    except ConflictError as error:
        LOGGER.info("%s", error)
    return cleaned_deployment(deployment, "left", "somebody is at work on the endpoint, or on the model's champion")


def _settle(cloud: CloudPort, state: RolloutState, deployment: FoundDeployment, as_of: datetime) -> CleanedDeployment:
    rollout = state.read_rollout()
    if (
        not _is_left(cloud, rollout, as_of)
        or rollout is None
        or rollout.deployed_model_id != deployment.deployed_model_id
    ):
        return cleaned_deployment(deployment, "left", "somebody goes on with it, or has brought it to its end")
    try:
        for _ in range(LOOKS):
            if settle_rollout(cloud, state):
                return cleaned_deployment(deployment, "settled")
            LOGGER.info("%s: machines are still coming or going", deployment.deployed_model_id)
            cloud.clock.sleep(LOOK_INTERVAL_S)
    except ConflictError:
        return cleaned_deployment(deployment, "left", "somebody goes on with it")
    except ContractError as error:
        LOGGER.error("%s", error)
        return cleaned_deployment(deployment, "left", str(error))
    return cleaned_deployment(deployment, "left", "its machines are still coming or going; the next cleaning goes on")


def _is_left(cloud: CloudPort, rollout: Rollout | None, as_of: datetime) -> bool:
    return rollouts.is_left(rollout, max(as_of, cloud.clock.now()), cloud.settings.wake_interval_s)


def _asked_model(model: str, *, staging: bool) -> str:
    """Return by which name an endpoint is found: the one that serves, or the one for tries."""
    return vertex.staging_of(model) if staging else model


def _left(
    cloud: CloudPort,
    model: str,
    places: tuple[Mapping[str, str], Mapping[str, int]],
    rollout: Rollout | None,
    as_of: datetime,
    *,
    staging: bool,
) -> dict[str, str]:
    """Return the version names of deployed models that runs made and that nobody claims, by id.

    Args:
        cloud: The hooks.
        model: Whose.
        places: What is deployed and its traffic, as the endpoint was read once: what is judged here is acted on.
        rollout: Of the model.
        as_of: Time of the cleaning.
        staging: Whether it is the endpoint for tries, where traffic says nothing.
    """
    deployed, traffic = places
    if not deployed or rollouts.is_open(rollout):
        return {}
    ours = _own_ids(cloud, model)
    if staging:
        return {deployed_id: name for deployed_id, name in deployed.items() if deployed_id in ours}
    return {key: deployed[key] for key in rollouts.unclaimed(deployed, traffic, ours, rollout, as_of)}


def _own_ids(cloud: CloudPort, model: str) -> set[str]:
    """Return the ids that runs of this environment give to their deployed models."""
    return {
        vertex.deployed_model_id(version.run_key)
        for version in cloud.registry.list_versions(model)
        if version.run_key and cloud.environment.owns(version.labels, version.artifact_uri)
    }

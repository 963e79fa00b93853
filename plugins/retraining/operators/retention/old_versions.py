"""Versions of the registry that nothing points to: found and deleted by the daily cleaning."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from retraining.core.documents import CleanedVersion, FoundVersion, MaintenancePlan
from retraining.core.naming import storage
from retraining.core.promotion.versions import Version
from retraining.core.retention.versions import cleaned_version, doomed_versions, reason_to_keep
from retraining.hooks.ports import CloudPort
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState


def find_versions(cloud: CloudPort, model: str, keep: int, at_work: Collection[str]) -> list[FoundVersion]:
    """Find the versions of a model that go; change nothing.

    Args:
        cloud: The hooks.
        model: Whose.
        keep: How many of the newest stay.
        at_work: Keys of the runs that are not at their end.
    """
    rollout = RolloutState(cloud, model).read_rollout()
    return doomed_versions(model, _own_versions(cloud, model), keep, at_work, rollout)


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

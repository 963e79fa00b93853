"""Which versions of a model go from the registry, and which deployed models nobody brings to an end any more.

What they came from stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from retraining.core.documents.deployment import Rollout
from retraining.core.documents.retention import (
    CleanedDeployment,
    CleanedVersion,
    DeploymentOutcome,
    FoundDeployment,
    FoundVersion,
)
from retraining.core.naming.vertex import ResourceName
from retraining.core.promotion.rollouts import is_open
from retraining.core.promotion.versions import Version

DEFAULT_KEEP = 10
"""Newest versions that stay, whatever became of them."""


def versions_to_delete(
    model: str, versions: Iterable[Version], keep: int, at_work: Collection[str], rollout: Rollout | None
) -> list[FoundVersion]:
    """Return the versions that go, oldest first; none while the model's champion is being changed.

    Args:
        model: Whose.
        versions: Those that runs of this environment made.
        keep: How many of the newest stay.
        at_work: Keys of the runs that are not at their end.
        rollout: The last change of the champion.
    """
    if is_open(rollout):
        return []
    newest_first = sorted(versions, key=lambda version: int(version.version_id), reverse=True)
    going = [
        version
        for version in newest_first[keep:]
        if reason_to_keep(version, rollout) is None and version.run_key not in at_work
    ]
    reason = f"it is not among the {keep} newest, no alias points to it, and it is deployed nowhere"
    return [
        FoundVersion(model=model, version_name=version.version_name, run_key=version.run_key, message=reason)
        for version in reversed(going)
    ]


def reason_to_keep(version: Version | None, rollout: Rollout | None) -> str | None:
    """Return why a version is not deleted, whatever its age; None: it may go."""
    if version is None:
        return "it is gone"
    if is_open(rollout):
        return "the model's champion is being changed"
    if version.aliases:
        return f"it has the alias {', '.join(sorted(version.aliases))}"
    return "it is deployed" if version.deployed else None


def cleaned_version(version: FoundVersion, reason: str | None = None) -> CleanedVersion:
    """Return what became of a version that should go; with a reason it was left."""
    return CleanedVersion(
        model=version.model,
        version_name=version.version_name,
        outcome="left" if reason else "deleted",
        message=reason or version.message,
    )


def left_rollout(rollout: Rollout) -> FoundDeployment:
    """Return the finding of a rollout that nobody goes on with."""
    return FoundDeployment(
        model=rollout.model,
        deployed_model_id=rollout.deployed_model_id,
        what="rollout",
        message=f"its rollout by run {rollout.run_key} is {rollout.state}, and nobody has gone on with it since "
        f"{rollout.changed:%Y-%m-%d %H:%M} UTC",
    )


def unclaimed_model(model: str, deployed_id: str, version_name: str) -> FoundDeployment:
    """Return the finding of a deployed model that no run claims."""
    version = ResourceName.parse(version_name).version
    message = f"version {version} is deployed without traffic, and no run is at work on it"
    return FoundDeployment(model=model, deployed_model_id=deployed_id, what="unclaimed", message=message)


def left_on_staging(model: str, deployed_id: str, version_name: str) -> FoundDeployment:
    """Return the finding of a deployed model that a try left on its endpoint."""
    version = ResourceName.parse(version_name).version
    message = f"version {version} is on the endpoint for tries, and no run is at work on it"
    return FoundDeployment(model=model, deployed_model_id=deployed_id, what="staging", message=message)


def cleaned_deployment(
    deployment: FoundDeployment, outcome: DeploymentOutcome, reason: str | None = None
) -> CleanedDeployment:
    """Return what became of a finding; without a reason the finding's own."""
    return CleanedDeployment(
        model=deployment.model,
        deployed_model_id=deployment.deployed_model_id,
        outcome=outcome,
        message=reason or deployment.message,
    )

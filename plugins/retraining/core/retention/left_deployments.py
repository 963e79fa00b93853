"""Deployed models that cost and that nobody brings to an end any more: the findings, and what became of them."""

from __future__ import annotations

from retraining.core.documents.deployment import Rollout
from retraining.core.documents.retention import CleanedDeployment, DeploymentOutcome, FoundDeployment
from retraining.core.naming.vertex import ResourceName


def left_rollout(rollout: Rollout) -> FoundDeployment:
    """Return the finding of a rollout that nobody goes on with."""
    return FoundDeployment(
        model=rollout.model,
        deployed_model_id=rollout.deployed_model_id,
        what="rollout",
        words=f"its rollout by run {rollout.run_key} is {rollout.state}, and nobody has gone on with it since "
        f"{rollout.changed:%Y-%m-%d %H:%M} UTC",
    )


def unclaimed_model(model: str, deployed_id: str, version_name: str) -> FoundDeployment:
    """Return the finding of a deployed model that no run claims."""
    version = ResourceName.parse(version_name).version
    message = f"version {version} is deployed without traffic, and no run is at work on it"
    return FoundDeployment(model=model, deployed_model_id=deployed_id, what="unclaimed", words=message)


def left_on_staging(model: str, deployed_id: str, version_name: str) -> FoundDeployment:
    """Return the finding of a deployed model that a try left on its endpoint."""
    version = ResourceName.parse(version_name).version
    message = f"version {version} is on the endpoint for tries, and no run is at work on it"
    return FoundDeployment(model=model, deployed_model_id=deployed_id, what="staging", words=message)


def cleaned(deployment: FoundDeployment, outcome: DeploymentOutcome, reason: str | None = None) -> CleanedDeployment:
    """Return what became of a finding; without a reason the finding's own."""
    return CleanedDeployment(
        model=deployment.model,
        deployed_model_id=deployment.deployed_model_id,
        outcome=outcome,
        words=reason or deployment.words,
    )

"""May a run's version be deployed, and the document of what came of it."""

from __future__ import annotations

from retraining.core.documents import Decision, Deployment, Plan, RampStep, Report, Rollout, Staging
from retraining.core.documents.document import format_time
from retraining.core.errors import ContractError, SettingsError
from retraining.core.naming.bigquery import request_log_table
from retraining.core.naming.run_keys import RunKey
from retraining.core.promotion.ramp import with_version
from retraining.core.promotion.versions import Version
from retraining.core.spec.deployment import Deployment as DeploymentSection
from retraining.core.untyped import JsonObject


def may_deploy(plan: Plan) -> bool:
    """Say whether the run may change the endpoint, if its version is promoted."""
    return plan.deploy and plan.mode != "backfill"


def reason_against(plan: Plan, decision: Decision, champion: Version | None) -> str | None:
    """Return why nothing may be deployed, as a sentence; None when nothing speaks against it.

    Args:
        plan: The run.
        decision: Its verdict.
        champion: The version with that alias now.
    """
    if plan.mode == "backfill":
        return "Nothing deployed: a backfill records a version and leaves the endpoint alone."
    if decision.verdict != "promote":
        return f"Nothing deployed. {decision.message}"
    if not plan.deploy:
        return "Nothing deployed: this run was asked only to register its model (Param deploy)."
    if champion is not None and champion.run_key and champion.run_key != plan.run_key:
        as_of = RunKey.parse(champion.run_key).as_of
        if as_of >= plan.as_of:
            return (
                f"Nothing deployed: champion version {champion.version_id} is of {format_time(as_of)}, "
                f"not older than this run's {format_time(plan.as_of)}."
            )
    if champion is not None and champion.run_key == plan.run_key:
        return None
    now = champion.version_id if champion else None
    then = decision.champion.version_id if decision.champion else None
    if now != then:
        return (
            f"Nothing deployed: {_called(now)} is champion now, and the decision was taken against {_called(then)}. "
            f"Evaluate again: trigger {plan.dag_id} with Force, so that a new attempt meets it."
        )
    return None


def require_reported_model(report: Report, digest: str | None) -> None:
    """Refuse to register a model that is not the one that the report describes and the judge scored.

    Args:
        report: Of the training.
        digest: SHA-256 of the stored model's files; None: there are none.

    Raises:
        ContractError: Its files are others, or gone.
    """
    if digest is None:
        raise ContractError(
            report.model_uri,
            "the model is gone",
            "the SavedModel that train stored",
            "Clear train and what follows it: without its model its result does not count, and it trains again",
        )
    if digest != report.model_digest:
        raise ContractError(
            report.model_uri,
            f"a model with SHA-256 {digest}: it was written again since the report",
            f"the report's, {report.model_digest}",
            "Trigger the DAG again with Force: a new attempt trains in a folder of its own",
        )


def machine_of(deployment: DeploymentSection) -> JsonObject:
    """Return the machines of a deployed model, as the endpoint is asked for them: of its own, or of a pool."""
    if deployment.shared_machines:
        return {"shared_machines": deployment.shared_machines}
    gpus = deployment.accelerator
    return {
        "machine_type": deployment.machine,
        **({"accelerator_type": gpus.type, "accelerator_count": gpus.count} if gpus else {}),
        "min_replicas": deployment.min_replicas,
        "max_replicas": deployment.max_replicas,
        "autoscale_cpu_percent": deployment.autoscale_cpu_percent,
    }


def require_kind(plan: Plan, endpoint_name: str, *, dedicated: bool, private: bool, given: bool) -> None:
    """Refuse to deploy to an endpoint of the other kind than the spec asks for: it is made as one of them for life.

    Args:
        plan: The run.
        endpoint_name: Of the endpoint as it is.
        dedicated: Whether it is one with an address of its own.
        private: Whether it answers in a network alone, which the environment decides: its address is its own anyway.
        given: Whether somebody else made it, for whom its kind is.

    Raises:
        ContractError: It is of the other kind, or has an address of its own and its answers should be explained.
    """
    if private or (given and dedicated):
        require_explainable(plan, endpoint_name)
    elif not given and dedicated != plan.spec.deployment.dedicated_endpoint:
        kinds = {True: "dedicated", False: "shared"}
        raise ContractError(
            f"{plan.model}.yaml, deployment.dedicated_endpoint",
            f"{str(not dedicated).lower()}, and {endpoint_name} is {kinds[dedicated]}, which cannot be changed",
            f"{str(dedicated).lower()}, or no endpoint of this name",
            "Set it back; or undeploy what is there, delete the endpoint, which answers nobody meanwhile, and trigger "
            "again with Force: it is made anew, and applications must ask it at its new address",
        )


def missing_endpoint(model: str, given: str) -> SettingsError:
    """Return the refusal of an endpoint that the environment names for a model, and that is not there."""
    return SettingsError(
        "RETRAINING_ENDPOINT_IDS",
        f"{given} for {model}, and there is no such endpoint in the project and region",
        "endpoints that are there: those of other ids are made by whoever gave them",
        f"Make it, or take the entry of {model} out: it then has one of its own name",
    )


def missing_machines(plan: Plan, pool_id: str) -> ContractError:
    """Return the refusal of machines that models share, and that are not there."""
    return ContractError(
        f"{plan.model}.yaml, deployment.shared_machines",
        f"{pool_id}, and there is no such deployment resource pool in {plan.project}, {plan.region}",
        "one that is there",
        "Make it (docs/deployment.md#machines-that-models-share), or remove the key for machines of the model's own",
    )


def require_explainable(plan: Plan, endpoint_name: str) -> None:
    """Refuse explanations of an endpoint that answers at an address of its own.

    Args:
        plan: The run.
        endpoint_name: Of the endpoint, or what says that it will be such a one.

    Raises:
        ContractError: The spec asks for them.
    """
    if plan.spec.deployment.explanations is not None:
        raise ContractError(
            f"{plan.model}.yaml, deployment.explanations",
            f"asked for, and {endpoint_name} has an address of its own, where Vertex AI explains no answers",
            "none, or an endpoint at the region's address",
            "Remove deployment.explanations",
        )


def nothing_deployed(
    plan: Plan, reason: str, steps: tuple[RampStep, ...] = (), staging: Staging | None = None
) -> Deployment:
    """Return the document of a run that left the endpoint alone, or as it was before its `steps`."""
    return Deployment(
        model=plan.model,
        run_key=plan.run_key,
        deployed=False,
        message=reason,
        endpoint_name=None,
        deployed_model_id=None,
        traffic={},
        version_name=None,
        previous_version_name=None,
        smoke_test=None,
        log_table=None,
        steps=steps,
        staging=staging,
    )


def deployed(plan: Plan, rollout: Rollout, endpoint_name: str | None) -> Deployment:
    """Return the document of a run whose version serves all requests, or became champion without an endpoint (None)."""
    before, mine = rollout.before, rollout.deployed_model_id
    traffic = with_version(before, mine, 100) if endpoint_name else {}
    what = f"serves {_part(traffic[mine])} requests as champion" if traffic else "is champion without an endpoint"
    message = f"Version {rollout.version_id} {what}"
    message += f", after version {before.champion_id}" if before.champion_id else ", the first one"
    if rollout.kept:
        message += f", which stays deployed without traffic until {format_time(rollout.kept.until)}"
    return Deployment(
        model=rollout.model,
        run_key=rollout.run_key,
        deployed=True,
        message=f"{message}.",
        endpoint_name=endpoint_name,
        deployed_model_id=mine if endpoint_name else None,
        traffic=traffic,
        version_name=rollout.version_name,
        previous_version_name=before.champion_name,
        smoke_test=rollout.smoke_test,
        log_table=request_log_table(plan.project, plan.dataset, plan.model) if endpoint_name else None,
        steps=rollout.steps,
        staging=rollout.staging,
    )


def _part(percent: int) -> str:
    return "all" if percent == 100 else f"{percent} % of the"


def _called(version_id: str | None) -> str:
    return f"version {version_id}" if version_id else "no version"

"""Whether a planned run can be done at all: what `plan` refuses before anything is paid for, and `preview` as well."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from retraining.core.catalog.amounts import jobs_of, require_quota
from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.catalog.containers import (
    load_containers,
    require_explanations,
    require_serving_container,
    require_training_container,
)
from retraining.core.catalog.hardware import load_hardware, require_machines
from retraining.core.catalog.machine_pools import require_machine_pool
from retraining.core.catalog.trainers import require_trainer
from retraining.core.data.image_objects import folders_to_list
from retraining.core.documents import Plan
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.planning import locations
from retraining.core.promotion import deployments
from retraining.core.promotion.latencies import together
from retraining.core.promotion.ramp_traffic import explain_verdict
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.quotas import load_quotas
from retraining.hooks import session
from retraining.hooks.ports import CloudPort
from retraining.operators.record.ownership import require_nobodys_bucket, require_own_model

LAST_DAY = timedelta(days=1)


def require_possible(cloud: CloudPort, planned: Plan, include: Path) -> list[str]:
    """Refuse a run that could not be done: by its trainer, machines, quota, containers, endpoint or places.

    Nothing is written.

    Returns:
        Warnings, of what is only unwise.

    Raises:
        RetrainingError: It cannot be done; says why.
    """
    require_nobodys_bucket(cloud)
    require_trainable(planned.spec, load_capabilities(), f"{planned.model} with the columns of its query")
    require_trainer(planned.spec, include, f"{planned.model} with this run's Params")
    hardware, machines = load_hardware(include), planned.machines or {}
    require_machines(planned.spec, hardware, planned.region, planned.machines)
    alone = require_machine_pool(planned.spec, include, planned.machines)
    require_quota(load_quotas(include), hardware, planned.region, planned.model, jobs_of(planned.spec, machines))
    containers, day = load_containers(include), planned.as_of.date()
    require_training_container(planned.spec, containers, day)
    require_serving_container(planned.spec, planned.serving_image, containers, day)
    ends = require_explanations(planned.spec, planned.serving_image, containers, day)
    public = _require_deployable(cloud, planned)
    told = [each for each in (alone, ends, public) if each]
    return [*told, *_location_warnings(cloud, planned.spec)]


def _require_deployable(cloud: CloudPort, planned: Plan) -> str | None:
    """Refuse a run that could not register or deploy what it would pay for; return what is odd about the endpoint.

    Raises:
        SettingsError: The model or its endpoint is another's.
        ContractError: The endpoint there, or that would be made, is of another kind than the spec needs.
    """
    require_own_model(cloud, planned.model, staging=planned.spec.deployment.staging)
    if not (deployments.may_deploy(planned) and planned.spec.deployment.endpoint):
        return None
    pool_id = planned.spec.deployment.shared_machines
    if pool_id and not cloud.endpoints.has_shared_machines(pool_id):
        raise deployments.missing_machines(planned, pool_id)
    endpoint, network = cloud.endpoints.get(planned.model), cloud.settings.endpoint_network
    given = cloud.settings.placement.endpoint_of(planned.model)
    if endpoint is not None:
        kind = {"dedicated": endpoint.dedicated, "private": endpoint.private, "given": given is not None}
        deployments.require_kind(planned, endpoint.name, **kind)
    elif given:
        raise deployments.missing_endpoint(planned.model, given)
    elif network:
        deployments.require_explainable(planned, f"its endpoint in {network} (RETRAINING_ENDPOINT_NETWORK)")
    if endpoint is None or given or not network or endpoint.private:
        return None
    return (
        f"{endpoint.name} answers at a public address, and RETRAINING_ENDPOINT_NETWORK is {network}: it was made "
        "before and stays what it is. To have it there, undeploy what is on it and delete it: the next deployment "
        "makes it anew"
    )


def _location_warnings(cloud: CloudPort, spec: ModelSpec) -> Iterator[str]:
    """Yield what is wrong with where buckets and dataset are, as far as the account may know.

    Raises:
        SettingsError: No statement could be run where the dataset is, or none could load the files.
    """
    settings, files = cloud.settings, spec.data.files
    for name in sorted({ObjectAddress.parse(uri).bucket for uri in files.uris} if files else ()):
        if found := cloud.artifacts.bucket_locations(name):
            locations.require_source_bucket(name, found, settings.region)
    for name in sorted({ObjectAddress.parse(folder).bucket for folder in folders_to_list(spec)}):
        found = cloud.artifacts.bucket_locations(name)
        if found and (warning := locations.bucket_warning(name, found, settings.region, of_images=True)):
            yield warning
    for name in dict.fromkeys((settings.bucket, settings.results_bucket)):
        found = cloud.artifacts.bucket_locations(name)
        if found and (warning := locations.bucket_warning(name, found, settings.region)):
            yield warning
    dataset = cloud.warehouse.dataset_location(settings.dataset)
    if dataset and (warning := locations.dataset_warning(settings.dataset, dataset, settings.region)):
        yield warning


def traffic_of_ramp(cloud: CloudPort, planned: Plan) -> str | None:
    """Return in words how long the ramp takes to its verdict by the last day's requests; None: there is no ramp."""
    canary = planned.spec.deployment.canary
    if canary is None or not deployments.may_deploy(planned):
        return None
    endpoint = cloud.endpoints.get(planned.model)
    if endpoint is None or not endpoint.traffic:
        return None  # nobody serves whom the version could be compared with: it has all traffic at once
    now = cloud.clock.now().replace(second=0, microsecond=0)
    try:
        (by_id,) = cloud.serving_metrics.measured(endpoint.name, now - LAST_DAY, now, LAST_DAY)
    except Exception as error:  # Google's have no common class; the ramp itself needs them, and names it then
        reason = session.explain(error)
        if reason is None and not session.is_outage(error):
            raise
        return f"ramp: how long it takes to a verdict is not known: Cloud Monitoring does not answer: {reason or error}"
    return explain_verdict(canary, together(by_id.values()), LAST_DAY)

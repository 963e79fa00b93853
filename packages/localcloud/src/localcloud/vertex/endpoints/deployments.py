"""EndpointService, deployments: what is brought up on endpoints, changed there, and taken off."""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import DeployedModel, Endpoint, Model
from google.longrunning import operations_pb2

from localcloud.vertex.endpoints import private_connections, traffic
from localcloud.vertex.endpoints.checks import check_deployed_model
from localcloud.vertex.endpoints.resource_pools import check_shared
from localcloud.vertex.endpoints.serving import FindVersion, Serving
from localcloud.vertex.endpoints.traffic import deployed_ids
from localcloud.vertex.resources.explanation_specs import check_spec, inherited
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import ENDPOINTS, Store, now
from localcloud.vertex.resources.validation import refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import AlreadyExists, InvalidArgument, NotFound

_MUTABLE = {
    "dedicated_resources.min_replica_count",
    "dedicated_resources.max_replica_count",
    "dedicated_resources.required_replica_count",
    "dedicated_resources.autoscaling_metric_specs",
    "disable_container_logging",
}


class Deployments:
    """Answers what is asked of deployments.

    Args:
        store: Keeps endpoints, and what is deployed to them.
        operations: Brings models up, and takes them off, in the background.
        find_version: Finds the model version that a name means.
        automate: Raises why a private endpoint can get no address in a network.
    """

    def __init__(
        self,
        store: Store,
        operations: Operations,
        serving: Serving,
        find_version: FindVersion,
        automate: private_connections.Automate,
    ) -> None:
        self._store = store
        self._operations = operations
        self._serving = serving
        self._find_version = find_version
        self._automate = automate

    def deploy_model(self, request: types.DeployModelRequest) -> operations_pb2.Operation:
        """Bring a model version up on an endpoint, then give it its share of the traffic."""
        store = self._store
        endpoint = store.get(ENDPOINTS, names.check_name(request.endpoint, "endpoints", field="endpoint"))
        deployed = DeployedModel()
        DeployedModel.copy_from(deployed, request.deployed_model)
        version = self._find_version(names.parse_model(deployed.model, "deployed_model.model"))
        refuse(check_deployed_model(deployed, endpoint))
        _complete(deployed, version)
        _explain(deployed, version)
        if "shared_resources" in deployed:
            refuse([*check_shared(store, deployed, version, self._find_version)])
        requested = dict(request.traffic_split)
        traffic.after_deploy(endpoint.traffic_split, requested, deployed.id, deployed_ids(endpoint))

        def work(progress: Progress) -> types.DeployModelResponse:
            self._serving.deploy(endpoint.name, deployed, version, progress)
            try:
                with store.change(ENDPOINTS, endpoint.name) as changed:
                    if deployed.id in deployed_ids(changed):
                        raise AlreadyExists(f"The DeployedModel {deployed.id} already exists on {endpoint.name}.")
                    changed.traffic_split = traffic.after_deploy(
                        changed.traffic_split, requested, deployed.id, deployed_ids(changed)
                    )
                    changed.deployed_models.append(deployed)
                    changed.update_time = now()
                    private_connections.connect(changed, self._automate)
            except BaseException:  # whatever it was: a server that no endpoint names would run for ever
                self._serving.undeploy(endpoint.name, deployed.id)
                raise
            return types.DeployModelResponse(deployed_model=deployed)

        return self._operations.start(
            "EndpointService.DeployModel", endpoint.name, types.DeployModelOperationMetadata(), work
        )

    def undeploy_model(self, request: types.UndeployModelRequest) -> operations_pb2.Operation:
        """Take a deployed model without traffic off an endpoint."""
        store = self._store
        endpoint = store.get(ENDPOINTS, names.check_name(request.endpoint, "endpoints", field="endpoint"))
        gone, requested = request.deployed_model_id, dict(request.traffic_split)
        _split_without(endpoint, gone, requested)

        def work(progress: Progress) -> types.UndeployModelResponse:
            progress.check()
            with store.change(ENDPOINTS, endpoint.name) as changed:
                changed.traffic_split = _split_without(changed, gone, requested)
                changed.deployed_models = [deployed for deployed in changed.deployed_models if deployed.id != gone]
                changed.update_time = now()
                if not changed.deployed_models:
                    private_connections.clear(changed)
            self._serving.undeploy(endpoint.name, gone)
            return types.UndeployModelResponse()

        return self._operations.start(
            "EndpointService.UndeployModel", endpoint.name, types.UndeployModelOperationMetadata(), work
        )

    def mutate_deployed_model(self, request: types.MutateDeployedModelRequest) -> operations_pb2.Operation:
        """Change replica counts and logging of a deployed model."""
        store = self._store
        endpoint = store.get(ENDPOINTS, names.check_name(request.endpoint, "endpoints", field="endpoint"))
        _find_deployed(endpoint, request.deployed_model.id)
        paths = list(request.update_mask.paths)
        if wrong := [path for path in paths if path not in _MUTABLE]:
            raise InvalidArgument(
                f"update_mask names {wrong}. Expected some of {sorted(_MUTABLE)}.", field="update_mask"
            )

        def work(progress: Progress) -> types.MutateDeployedModelResponse:
            progress.check()
            with store.change(ENDPOINTS, endpoint.name) as changed:
                deployed = _find_deployed(changed, request.deployed_model.id)
                request.update_mask.MergeMessage(
                    DeployedModel.pb(request.deployed_model), DeployedModel.pb(deployed), replace_repeated_field=True
                )
                changed.update_time = now()
            return types.MutateDeployedModelResponse(deployed_model=deployed)

        return self._operations.start(
            "EndpointService.MutateDeployedModel", endpoint.name, types.MutateDeployedModelOperationMetadata(), work
        )


def _complete(deployed: DeployedModel, version: Model) -> None:
    deployed.id = deployed.id or names.new_id()
    deployed.model, deployed.model_version_id = version.name, version.version_id
    deployed.display_name = deployed.display_name or version.display_name
    deployed.create_time = now()
    if "dedicated_resources" in deployed:  # else it shares those of a pool
        resources = deployed.dedicated_resources
        resources.max_replica_count = resources.max_replica_count or resources.min_replica_count


def _explain(deployed: DeployedModel, version: Model) -> None:
    """Give a deployed model the specification that it is explained by, if any."""
    spec = inherited(deployed, version)
    if spec is not None:
        refuse(check_spec(spec, "deployed_model.explanation_spec", version.container_spec.image_uri))
        deployed.explanation_spec = spec


def _find_deployed(endpoint: Endpoint, deployed_model_id: str) -> DeployedModel:
    for deployed in endpoint.deployed_models:
        if deployed.id == deployed_model_id:
            return deployed
    raise NotFound(
        f"The DeployedModel {deployed_model_id!r} does not exist on {endpoint.name}. It has {deployed_ids(endpoint)}."
    )


def _split_without(endpoint: Endpoint, gone: str, requested: dict[str, int]) -> dict[str, int]:
    _find_deployed(endpoint, gone)
    remaining = [deployed_id for deployed_id in deployed_ids(endpoint) if deployed_id != gone]
    return traffic.after_undeploy(endpoint.traffic_split, requested, gone, remaining)

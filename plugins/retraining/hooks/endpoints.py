"""The endpoint of a model: what is deployed to it, how traffic is shared.

In: version names and traffic. Out: `Endpoint` values and operations that can be looked at again in a later poke.
Deployed models get an id made from the run key, so a second deploy of the same run is refused and not paid twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retraining.core.errors import ConflictError
from retraining.core.naming.vertex import (
    ROLLOUT_LABEL,
    deployed_model_id,
    endpoint_id,
    endpoint_name,
    location_name,
    shared_machines_name,
    unversioned,
    version_name,
)
from retraining.core.promotion.deployments import missing_endpoint
from retraining.core.report.attributions import Attribution
from retraining.core.untyped import ProtoJson
from retraining.hooks import limits
from retraining.hooks.operations import Operation, operation_of
from retraining.hooks.predictions import Answer, Predictions, Unanswered
from retraining.hooks.session import Session, call, call_once

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import (
        DeploymentResourcePoolServiceClient,
        EndpointServiceClient,
    )
    from google.cloud.aiplatform_v1 import Endpoint as EndpointMessage

CPU_METRIC = "aiplatform.googleapis.com/prediction/online/cpu/utilization"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An endpoint as it stands: deployed-model id to version name (`…@3`), and traffic in percent by that id.

    `sampling` is the share of the requests that are logged; None: none are. `dedicated` ones have an `address` of their
    own, once it is known, and `private` ones one in a network, while a model is deployed; `unreachable` is why Vertex
    AI could not make it.
    """

    name: str
    deployed: dict[str, str]
    traffic: dict[str, int]
    labels: dict[str, str] = field(default_factory=dict)
    etag: str = ""
    sampling: float | None = None
    dedicated: bool = False
    private: bool = False
    address: str = ""
    unreachable: str = ""

    @property
    def allowed_by(self) -> str:
        """Generation of the rollout document that allowed what it serves; empty: none, a person set it."""
        return self.labels.get(ROLLOUT_LABEL, "")

    def allowed(self, generation: int | None) -> dict[str, str]:
        """Return its labels once a generation of the rollout document has allowed a change; None: as they are."""
        return self.labels if generation is None else {**self.labels, ROLLOUT_LABEL: str(generation)}


@dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """How an endpoint is made: with an address of its own, and with which share of its requests logged.

    Where endpoints answer in a network alone, as the session's placement says, each has an address of its own there.
    """

    dedicated: bool = False
    sampling: float = 1.0


class Endpoints:
    """The endpoint and prediction services of one region.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._predictions = Predictions(session)

    def get(self, model: str) -> Endpoint | None:
        """Return the model's endpoint, or None."""
        from google.api_core.exceptions import NotFound

        name = self.name_of(model)
        try:
            return self._read(call(lambda: self._client.get_endpoint(name=name, retry=None)))
        except NotFound:
            return None

    def ensure(
        self, model: str, log_table: str | None, labels: Mapping[str, str], options: EndpointOptions | None = None
    ) -> Endpoint:
        """Return the model's endpoint; make it where missing, with logging of requests and answers to `log_table`.

        Raises:
            SettingsError: It is missing, and the environment names one that somebody else makes.
            ConflictError: Somebody else changed it, as this was to write whose it is.
        """
        from google.api_core.exceptions import AlreadyExists
        from google.cloud import aiplatform_v1

        if endpoint := self.get(model):
            return self._labelled(endpoint, labels)
        if given := self._session.placement.endpoint_of(model):
            raise missing_endpoint(model, given)
        chosen = options or EndpointOptions()
        connection = self._session.placement.private_connection(self._session.project)
        logging_config = {
            "enabled": True,
            "sampling_rate": chosen.sampling,
            "bigquery_destination": {"output_uri": f"bq://{log_table}"},
        }
        request = {
            "parent": location_name(self._session.project, self._session.region),
            "endpoint_id": endpoint_id(model),
            "endpoint": aiplatform_v1.Endpoint(
                display_name=model,
                labels=self._session.labels(labels),
                **self._session.placement.encryption,
                predict_request_response_logging_config=logging_config if log_table else None,
                **connection,
                dedicated_endpoint_enabled=chosen.dedicated and not connection,
            ),
        }
        try:
            operation = call_once(lambda: self._client.create_endpoint(request=request, retry=None))
            call_once(lambda: operation.result(timeout=limits.ENDPOINT_S), timeout_s=limits.ENDPOINT_S)
        except AlreadyExists:  # made by somebody else meanwhile, or by a try whose answer was lost
            pass
        endpoint = self.get(model)
        if endpoint is None:
            raise TimeoutError(f"{self.name_of(model)} is not there yet")
        return endpoint

    def start_deploy(
        self,
        endpoint: Endpoint,
        version_name: str,
        run_key: str,
        machine: Mapping[str, Any],
    ) -> Operation | None:
        """Begin to deploy a version, without traffic, if the endpoint is as it was read; None: this run's is there.

        Args:
            endpoint: As it was read; its etag is compared.
            version_name: `projects/…/models/<id>@<version>`.
            run_key: Of the run that made it.
            machine: As `dedicated_resources` takes it; or `shared_machines`, the id of a pool.

        Raises:
            ConflictError: Somebody else changed the endpoint meanwhile.
        """
        from google.api_core.exceptions import AlreadyExists, InvalidArgument
        from google.cloud import aiplatform_v1

        deployed_id = deployed_model_id(run_key)
        if deployed_id in self._read_unchanged(endpoint, lambda now: deployed_id in now.deployed).deployed:
            return None
        message = aiplatform_v1.DeployedModel(
            id=deployed_id,
            model=version_name,
            display_name=run_key,
            **self._machines(machine),
        )
        # Without a traffic split the endpoint's stays as it is when the machines are ready, many minutes from now.
        request = {"endpoint": endpoint.name, "deployed_model": message}
        try:
            started = call_once(lambda: self._client.deploy_model(request=request, retry=None))
        except (AlreadyExists, InvalidArgument):
            if deployed_id in self.read_endpoint(endpoint.name).deployed:
                return None
            raise
        return operation_of(started.operation)

    def has_shared_machines(self, pool_id: str) -> bool:
        """Return whether there is a deployment resource pool of an id."""
        from google.api_core.exceptions import NotFound

        try:
            call(lambda: self._pools.get_deployment_resource_pool(name=self._pool_name(pool_id), retry=None))
        except NotFound:
            return False
        return True

    def _machines(self, machine: Mapping[str, Any]) -> ProtoJson:
        if pool_id := machine.get("shared_machines"):
            return {"shared_resources": self._pool_name(pool_id)}
        return {"dedicated_resources": dedicated_resources(machine)}

    def _pool_name(self, pool_id: str) -> str:
        return shared_machines_name(self._session.project, self._session.region, pool_id)

    def read_endpoint(self, name: str) -> Endpoint:
        """Return an endpoint by its full name."""
        return self._read(call(lambda: self._client.get_endpoint(name=name, retry=None)))

    def operation(self, name: str) -> Operation | None:
        """Return the long-running work as it stands; None when the service has forgotten it."""
        from google.api_core.exceptions import NotFound

        try:
            return operation_of(call(lambda: self._client.get_operation({"name": name})))
        except NotFound:
            return None

    def cancel_operation(self, name: str) -> None:
        """Ask long-running work to end; it may be too late for that, or the service may not do it."""
        from google.api_core.exceptions import FailedPrecondition, MethodNotImplemented, NotFound

        try:
            call(lambda: self._client.cancel_operation({"name": name}))
        except (FailedPrecondition, MethodNotImplemented, NotFound):
            return

    def running_operations(self, endpoint: Endpoint) -> list[Operation]:
        """Return the work on an endpoint that is not done."""
        listed = call(lambda: self._client.list_operations({"name": endpoint.name}))
        return [operation for operation in map(operation_of, listed.operations) if not operation.done]

    def set_traffic(self, endpoint: Endpoint, traffic: Mapping[str, int], generation: int | None = None) -> Endpoint:
        """Share the requests anew, if the endpoint is as it was read.

        Args:
            endpoint: As it was read; its etag is compared.
            traffic: Percentages by deployed-model id that add up to 100; none: nobody answers.
            generation: Of the rollout document that allows it: it is written into the endpoint's labels, so that the
                etag is another one even where the traffic is the same.

        Raises:
            ConflictError: Somebody else changed the endpoint meanwhile.
        """
        from google.api_core.exceptions import Aborted
        from google.cloud import aiplatform_v1

        labels = endpoint.allowed(generation)
        changed = aiplatform_v1.Endpoint(
            name=endpoint.name, traffic_split=dict(traffic), labels=labels, etag=endpoint.etag
        )
        paths = ["traffic_split"] if generation is None else ["traffic_split", "labels"]
        request = {"endpoint": changed, "update_mask": {"paths": paths}}
        try:
            return self._read(call(lambda: self._client.update_endpoint(request=request, retry=None)))
        except Aborted as error:
            now = self.read_endpoint(endpoint.name)
            if now.traffic == dict(traffic) and now.labels == labels:  # this call's own doing, whose answer was lost
                return now
            raise _changed(now) from error

    def set_sampling(self, endpoint: Endpoint, sampling: float) -> None:
        """Log another share of an endpoint's requests from now on."""
        from google.cloud import aiplatform_v1

        found = call(lambda: self._client.get_endpoint(name=endpoint.name, retry=None))
        config = found.predict_request_response_logging_config
        config.sampling_rate = sampling
        changed = aiplatform_v1.Endpoint(name=endpoint.name, predict_request_response_logging_config=config)
        request = {"endpoint": changed, "update_mask": {"paths": ["predict_request_response_logging_config"]}}
        call(lambda: self._client.update_endpoint(request=request, retry=None))

    def undeploy(self, endpoint: Endpoint, deployed_id: str) -> None:
        """Take a deployed model without traffic away, if the endpoint is as it was read; one that is gone stays gone.

        Does not wait for its machines. The service compares no etag here, and takes the last model away whatever its
        traffic: so the endpoint is read right before, at each try.

        Args:
            endpoint: As it was read; its etag is compared.
            deployed_id: Of the deployed model.

        Raises:
            ConflictError: Somebody else changed the endpoint meanwhile.
        """
        from google.api_core.exceptions import NotFound

        request = {"endpoint": endpoint.name, "deployed_model_id": deployed_id}

        def leave() -> None:
            if deployed_id in self._read_unchanged(endpoint, lambda now: deployed_id not in now.deployed).deployed:
                self._client.undeploy_model(request=request, retry=None)

        try:
            call(leave)
        except NotFound:
            return

    def _read_unchanged(self, endpoint: Endpoint, is_done: Callable[[Endpoint], bool]) -> Endpoint:
        """Read an endpoint again; refuse one that is another than it was, unless what is to be done to it is done."""
        now = self.read_endpoint(endpoint.name)
        if now.etag != endpoint.etag and not is_done(now):
            raise _changed(now)
        return now

    def predict(self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]]) -> Answer:
        """Ask the endpoint, as any application would; numbers may be NaN.

        Raises:
            SettingsError: It is a private one, and has no address in this environment's network.
        """
        return self._predictions.ask(endpoint, instances)

    def predict_once(
        self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]], timeout_s: float
    ) -> Answer | Unanswered:
        """Ask the endpoint as an application that does not try again, and waits so long.

        What says nothing about the model is raised: that this process may not ask, or that there is no such endpoint.
        """
        return self._predictions.ask_once(endpoint, instances, timeout_s)

    def explain(
        self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]], deployed_id: str = ""
    ) -> list[list[Attribution]]:
        """Ask what each feature adds to the answers, for each instance and each output of it that is explained.

        Args:
            endpoint: A shared one; its models were registered with `deployment.explanations`.
            instances: With every input; numbers may be NaN.
            deployed_id: Whose answers; "": of one by the traffic.
        """
        return self._predictions.explain(endpoint, instances, deployed_id)

    def name_of(self, model: str) -> str:
        """Return the full name of a model's endpoint: of the id that the environment gives it, or of its own name."""
        project, region = self._session.project, self._session.region
        return endpoint_name(project, region, model, self._session.placement.endpoint_of(model))

    def _labelled(self, endpoint: Endpoint, labels: Mapping[str, str]) -> Endpoint:
        """Write whose an endpoint is into its labels, where somebody else made it and nothing says so yet."""
        from google.api_core.exceptions import Aborted
        from google.cloud import aiplatform_v1

        missing = {key: value for key, value in self._session.labels(labels).items() if key not in endpoint.labels}
        if not missing.keys() & self._session.environment.labels.keys():
            return endpoint
        changed = aiplatform_v1.Endpoint(name=endpoint.name, labels={**endpoint.labels, **missing}, etag=endpoint.etag)
        request = {"endpoint": changed, "update_mask": {"paths": ["labels"]}}
        try:
            return self._read(call(lambda: self._client.update_endpoint(request=request, retry=None)))
        except Aborted as error:
            now = self.read_endpoint(endpoint.name)
            if missing.items() <= now.labels.items():  # this call's own doing, whose answer was lost
                return now
            raise _changed(now) from error

    def _read(self, endpoint: EndpointMessage) -> Endpoint:
        log = endpoint.predict_request_response_logging_config
        connection = endpoint.private_service_connect_config
        private, network = connection.enable_private_service_connect, self._session.placement.endpoint_network
        # Of another network the address may be anybody's in this one, and it would be sent a token.
        here = next((each for each in connection.psc_automation_configs if each.network == network), None)
        elsewhere = f"it answers in {[each.network for each in connection.psc_automation_configs]} alone"
        return Endpoint(
            name=endpoint.name,
            deployed={
                item.id: version_name(unversioned(item.model), item.model_version_id)
                for item in endpoint.deployed_models
            },
            traffic={key: int(share) for key, share in endpoint.traffic_split.items() if share},
            labels=dict(endpoint.labels),
            etag=endpoint.etag,
            sampling=log.sampling_rate if log.enabled else None,
            dedicated=endpoint.dedicated_endpoint_enabled,
            private=private,
            address=here.ip_address if here else endpoint.dedicated_endpoint_dns.removeprefix("https://"),
            unreachable=here.error_message if here else elsewhere if private else "",
        )

    @cached_property
    def _client(self) -> EndpointServiceClient:
        from google.cloud import aiplatform_v1

        from retraining.hooks.transports import grpc_client

        session = self._session
        client: EndpointServiceClient = grpc_client(
            aiplatform_v1.EndpointServiceClient, session, client_options=session.client_options
        )
        return client

    @cached_property
    def _pools(self) -> DeploymentResourcePoolServiceClient:
        from google.cloud import aiplatform_v1

        from retraining.hooks.transports import grpc_client

        session = self._session
        client: DeploymentResourcePoolServiceClient = grpc_client(
            aiplatform_v1.DeploymentResourcePoolServiceClient, session, client_options=session.client_options
        )
        return client


def dedicated_resources(machine: Mapping[str, Any]) -> ProtoJson:
    """Return the machines of a deployed model, as `aiplatform_v1.DedicatedResources` in proto-JSON.

    Args:
        machine: `machine_type`, `min_replicas`, `max_replicas`; with accelerators `accelerator_type` and
            `accelerator_count`; `autoscale_cpu_percent`.
    """
    spec = ("machine_type", "accelerator_type", "accelerator_count")
    resources: ProtoJson = {
        "machine_spec": {name: machine[name] for name in spec if machine.get(name)},
        "min_replica_count": machine["min_replicas"],
        "max_replica_count": machine["max_replicas"],
    }
    if machine.get("autoscale_cpu_percent") is not None:
        resources["autoscaling_metric_specs"] = [
            {"metric_name": CPU_METRIC, "target": machine["autoscale_cpu_percent"]}
        ]
    return resources


def _changed(now: Endpoint) -> ConflictError:
    return ConflictError(
        now.name,
        f"traffic {now.traffic}: somebody else changed it",
        "this run alone to change it",
        "The next try reads it again",
    )

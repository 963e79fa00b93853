"""Calls that no run makes: how a service refuses, and what takes away what a trial made.

In: names of a trial's own things. Out: nothing, or what was answered. Used by `retraining trial` alone.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from retraining.core.jobs.job import JobType
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.vertex import endpoint_id, location_name, model_name
from retraining.hooks.endpoints import Endpoint, Endpoints, dedicated_resources
from retraining.hooks.machine_pools import MachinePools
from retraining.hooks.objects import Objects
from retraining.hooks.operations import Operation, operation_of
from retraining.hooks.registry import Registry, Upload
from retraining.hooks.session import Session, call, call_once
from retraining.hooks.trial_answers import delete, refusal
from retraining.hooks.trial_experiments import TrialBoards, TrialExperiments
from retraining.hooks.trial_streams import TrialStreams
from retraining.hooks.vertex_jobs import VertexJobs
from retraining.hooks.warehouse import Warehouse


class TrialObjects(Objects):
    """Objects as no run writes them."""

    def write_gzipped(self, uri: str, data: bytes) -> int:
        """Write an object compressed, with its encoding; return how many bytes are stored."""
        address = ObjectAddress.parse(uri)
        blob = self._client.bucket(address.bucket).blob(address.path)
        blob.content_encoding = "gzip"
        stored = gzip.compress(data)
        call(lambda: blob.upload_from_string(stored, content_type="text/plain", retry=None))
        return len(stored)


class TrialTables(Warehouse):
    """What a table says of itself that no run asks."""

    def partitioning_column(self, table: str) -> str:
        """Return the column by whose time a table is partitioned; "_PARTITIONTIME": the time of loading; "": none."""
        found = call(lambda: self._client.get_table(table, retry=None)).time_partitioning
        return "" if found is None else str(found.field or "_PARTITIONTIME")

    def refused_in(self, location: str, sql: str) -> str | None:
        """Run a statement dry in a location; return the class of the refusal, or None: it was answered."""
        from google.cloud.bigquery import QueryJobConfig

        config = QueryJobConfig(dry_run=True)
        return refusal(
            lambda: self._client.query(sql, job_config=config, location=location, retry=None, job_retry=None)
        )


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Machines of a deployed model, as the service has them.

    Attributes:
        replicas: The fewest and the most of its own; (0, 0): it has none.
        targets: What replicas come and go for, by the name of the metric.
        shared: Full name of the pool that it is on; "": none.
    """

    replicas: tuple[int, int]
    targets: Mapping[str, int]
    shared: str


class TrialEndpoints(Endpoints):
    """Changes of endpoints without the look before them that keeps a run from what the service should refuse."""

    def deploy_refused(
        self, endpoint: Endpoint, version_name: str, deployed_id: str, machine: Mapping[str, Any]
    ) -> str | None:
        """Deploy where it should not be done; return the class of the refusal, or None: it was begun."""
        from google.cloud import aiplatform_v1

        message = aiplatform_v1.DeployedModel(id=deployed_id, model=version_name, **self._machines(machine))
        request = {"endpoint": endpoint.name, "deployed_model": message}
        return refusal(lambda: self._client.deploy_model(request=request, retry=None))

    def undeploy_serving(self, endpoint: Endpoint, deployed_id: str) -> str | None:
        """Undeploy a model that has a share; return the class of the refusal, or None: it was begun."""
        request = {"endpoint": endpoint.name, "deployed_model_id": deployed_id}
        return refusal(lambda: self._client.undeploy_model(request=request, retry=None))

    def cancel_refused(self, operation_name: str) -> str | None:
        """Ask work to end; return the class of the refusal, or None: it was asked."""
        return refusal(lambda: self._client.cancel_operation({"name": operation_name}))

    def create_refused(self, model: str) -> str | None:
        """Create a model's endpoint; return the class of the refusal, or None: it was begun."""
        from google.cloud import aiplatform_v1

        request = {
            "parent": location_name(self._session.project, self._session.region),
            "endpoint_id": endpoint_id(model),
            "endpoint": aiplatform_v1.Endpoint(
                display_name=model, labels=self._session.labels({}), **self._session.placement.encryption
            ),
        }
        return refusal(lambda: self._client.create_endpoint(request=request, retry=None))

    def machines_of(self, endpoint: Endpoint, deployed_id: str) -> Machines | None:
        """Return the machines of a deployed model; None: there is no such one."""
        read = call(lambda: self._client.get_endpoint(name=endpoint.name, retry=None))
        found = next((each for each in read.deployed_models if each.id == deployed_id), None)
        if found is None:
            return None
        own = found.dedicated_resources
        return Machines(
            replicas=(own.min_replica_count, own.max_replica_count),
            targets={each.metric_name: each.target for each in own.autoscaling_metric_specs},
            shared=found.shared_resources,
        )

    def create_shared_machines(self, pool_id: str, machine: Mapping[str, Any]) -> Operation:
        """Begin to make machines that models share."""
        from google.cloud import aiplatform_v1

        resources = dedicated_resources(machine)
        request = {
            "parent": location_name(self._session.project, self._session.region),
            "deployment_resource_pool_id": pool_id,
            "deployment_resource_pool": aiplatform_v1.DeploymentResourcePool(
                dedicated_resources=resources, **self._session.placement.encryption
            ),
        }
        made = call_once(lambda: self._pools.create_deployment_resource_pool(request=request, retry=None))
        return operation_of(made.operation)

    def work_on_shared_machines(self, pool_id: str) -> list[Operation]:
        """Return the work on machines that models share that is not done."""
        from google.api_core.exceptions import NotFound

        request = {"name": self._pool_name(pool_id)}
        try:
            listed = call(lambda: self._pools.list_operations(request))
        except NotFound:
            return []
        return [operation for operation in map(operation_of, listed.operations) if not operation.done]

    def delete_shared_machines(self, pool_id: str) -> None:
        """Delete machines that models shared; those that are gone stay gone. Waits until it is done."""
        name = self._pool_name(pool_id)
        delete(lambda: self._pools.delete_deployment_resource_pool(name=name, retry=None))

    def delete_endpoint(self, name: str) -> None:
        """Delete an endpoint on which nothing is; one that is gone stays gone. Waits until it is done."""
        delete(lambda: self._client.delete_endpoint(name=name, retry=None))


class TrialModels(Registry):
    """Models that go as a whole."""

    def upload_refused(self, model: str, upload: Upload) -> str | None:
        """Upload a model's first version; return the class of the refusal, or None: it was begun."""
        return refusal(lambda: self._upload(upload, model_id=model))

    def delete_model(self, model: str) -> None:
        """Delete a model with all its versions; one that is gone stays gone. Waits until it is done."""
        name = model_name(self._session.project, self._session.region, model)
        delete(lambda: self._client.delete_model(name=name, retry=None))


class TrialJobs(VertexJobs):
    """Jobs that the service should refuse."""

    def create_refused(self, job: Mapping[str, Any]) -> str | None:
        """Create a job; return the class of the refusal, or None: it was created."""
        return refusal(lambda: self.create(job))

    def output_tables(self, label: str) -> list[str]:
        """Return the tables that batch predictions of a label wrote, whatever its value: `project.dataset.table`."""
        found = self._list(f"labels.{label}:*", (JobType.BATCH,))
        return [job.output_table for job in found if job.output_table]


class TrialPools(MachinePools):
    """Pools of machines, with what the service says of them."""

    def create_refused(self, pool_id: str, resource: Mapping[str, Any]) -> str | None:
        """Begin to make a pool; return the class of the refusal, or None: it was begun."""
        return refusal(lambda: self._begin(pool_id, resource))

    def delete_refused(self, pool_id: str) -> str | None:
        """Begin to delete a pool; return the class of the refusal, or None: it was begun."""
        name = self._name(pool_id)
        return refusal(lambda: self._client.delete_persistent_resource(name=name, retry=None))


class TrialCalls:
    """Calls of a trial, in one region.

    Args:
        session: Where and as whom.

    Attributes:
        session: The same.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    @cached_property
    def objects(self) -> TrialObjects:
        """Cloud Storage."""
        return TrialObjects(self.session)

    @cached_property
    def tables(self) -> TrialTables:
        """BigQuery."""
        return TrialTables(self.session)

    @cached_property
    def streams(self) -> TrialStreams:
        """BigQuery's read sessions."""
        return TrialStreams(self.session)

    @cached_property
    def endpoints(self) -> TrialEndpoints:
        """Vertex AI endpoints."""
        return TrialEndpoints(self.session)

    @cached_property
    def experiments(self) -> TrialExperiments:
        """Vertex AI Experiments."""
        return TrialExperiments(self.session)

    @cached_property
    def boards(self) -> TrialBoards:
        """TensorBoards."""
        return TrialBoards(self.session)

    @cached_property
    def models(self) -> TrialModels:
        """Vertex AI models."""
        return TrialModels(self.session)

    @cached_property
    def jobs(self) -> TrialJobs:
        """Vertex AI jobs."""
        return TrialJobs(self.session)

    @cached_property
    def pools(self) -> TrialPools:
        """Vertex AI persistent resources."""
        return TrialPools(self.session)

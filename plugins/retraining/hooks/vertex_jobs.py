"""Custom, tuning and batch prediction jobs of Vertex AI: find, create, look, cancel.

In: job specs and labels. Out: `Job` values. Every job carries the label of the environment that made it, and none of
another environment's is ever listed. The service has no request id for a create, so whoever creates looks by
label first (and again after a response that got lost).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retraining.core.jobs.claims import CREATE_TIMEOUT
from retraining.core.jobs.job import ENDED_STATES, Job, JobType, machines_of
from retraining.core.naming.vertex import location_name
from retraining.core.untyped import ProtoJson
from retraining.hooks import limits
from retraining.hooks.session import Session, call, call_once

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import (
        BatchDedicatedResources,
        BatchPredictionJob,
        CustomJob,
        HyperparameterTuningJob,
        JobServiceClient,
        MachineSpec,
    )


class VertexJobs:
    """The job service of one region.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parent = location_name(session.project, session.region)

    def find_jobs(self, labels: Mapping[str, str], types: Collection[JobType] = (JobType.CUSTOM,)) -> list[Job]:
        """Return all jobs of this environment, of some types, with these labels, oldest first."""
        condition = " AND ".join(f'labels.{name}="{value}"' for name, value in sorted(labels.items()))
        return sorted(self._list(condition, types), key=lambda job: (job.created is None, job.created, job.name))

    def find_active(self, label: str, types: Collection[JobType] = tuple(JobType)) -> list[Job]:
        """Return the jobs of this environment that may still do something and carry a label, whatever its value."""
        ended = " AND ".join(f'state!="{state}"' for state in ENDED_STATES)
        return [job for job in self._list(f"labels.{label}:* AND {ended}", types) if job.active]

    def create(self, job: Mapping[str, Any]) -> Job:
        """Create a job. Not repeated here: after an error the job may be there, so look before creating again.

        Args:
            job: `CustomJob`, `HyperparameterTuningJob` or `BatchPredictionJob` in proto-JSON with snake_case names.
        """
        from google.cloud import aiplatform_v1
        from google.protobuf import json_format

        type_ = JobType.of(job)
        class_ = getattr(aiplatform_v1, type_.message)
        message = class_()
        placed = self._session.placement.placed_job({**job, "labels": self._session.labels(job.get("labels", {}))})
        json_format.ParseDict(placed, class_.pb(message))
        create = getattr(self._client, f"create_{type_}")
        asked = functools.partial(create, parent=self._parent, retry=None, **{type_.value: message})
        return _job(call_once(asked, timeout_s=CREATE_TIMEOUT.total_seconds()))

    def get(self, name: str) -> Job:
        """Return a job as it stands."""
        get = getattr(self._client, f"get_{JobType.of_name(name)}")
        return _job(call(lambda: get(name=name, retry=None)))

    def find_by_name(self, name: str) -> Job | None:
        """Return a job as it stands; None when it is gone."""
        from google.api_core.exceptions import NotFound

        try:
            return self.get(name)
        except NotFound:
            return None

    def trials(self, name: str) -> list[ProtoJson]:
        """Return the trials of a tuning job in proto-JSON with snake_case names, by number.

        `seconds` is how long each ran.
        """
        from google.cloud import aiplatform_v1
        from google.protobuf import json_format

        job = call(lambda: self._client.get_hyperparameter_tuning_job(name=name, retry=None))
        messages = []
        for trial in job.trials:
            message = json_format.MessageToDict(aiplatform_v1.Trial.pb(trial), preserving_proto_field_name=True)
            if trial.start_time and trial.end_time:
                message["seconds"] = (trial.end_time - trial.start_time).total_seconds()
            messages.append(message)
        return sorted(messages, key=lambda message: int(message["id"]))

    def cancel(self, name: str) -> None:
        """Ask a job to end. One that has ended, or is gone, stays as it is."""
        from google.api_core.exceptions import FailedPrecondition, NotFound

        try:
            cancel = getattr(self._client, f"cancel_{JobType.of_name(name)}")
            call(lambda: cancel(name=name, retry=None))
        except (FailedPrecondition, NotFound):
            return

    def _list(self, condition: str, types: Collection[JobType]) -> list[Job]:
        """Return the jobs by a filter. Whose they are is looked at here.

        Those of an earlier release have no label of it.
        """
        request = {"parent": self._parent, "filter": condition}
        jobs: list[Job] = []
        for type_ in types:
            list_jobs = getattr(self._client, f"list_{type_}s")
            found = call(functools.partial(_list_all, list_jobs, request), timeout_s=limits.LISTING_S)
            jobs += map(_job, found)
        return [job for job in jobs if self._session.environment.owns(job.labels, job.folder_uri)]

    @cached_property
    def _client(self) -> JobServiceClient:
        from google.cloud import aiplatform_v1

        from retraining.hooks.transports import grpc_client

        session = self._session
        client: JobServiceClient = grpc_client(
            aiplatform_v1.JobServiceClient, session, client_options=session.client_options
        )
        return client


def _list_all(list_jobs: Callable[..., Any], request: Mapping[str, Any]) -> list[Any]:
    return list(list_jobs(request=request))


def _job(job: CustomJob | HyperparameterTuningJob | BatchPredictionJob) -> Job:
    found = Job(
        name=job.name,
        state=job.state.name,
        labels=dict(job.labels),
        created=job.create_time,
        started=job.start_time,
        ended=job.end_time,
        error_code=int(job.error.code) if job.error else 0,
        error_message=str(job.error.message) if job.error else "",
        machines=machines_of(_machine_part(job)),
    )
    type_ = JobType.of_name(job.name)
    if type_ is JobType.BATCH:
        info = job.output_info
        dataset, table = info.bigquery_output_dataset.removeprefix("bq://"), info.bigquery_output_table
        folder = info.gcs_output_directory
        return replace(found, output_table=f"{dataset}.{table}" if table else "", output_folder=folder)
    spec = job.job_spec if type_ is JobType.CUSTOM else job.trial_job_spec
    spot = spec.scheduling.strategy.name == "SPOT"
    folder_uri = spec.base_output_directory.output_uri_prefix
    return replace(found, spot=spot, folder_uri=folder_uri, pool_id=spec.persistent_resource_id)


def _machine_part(job: CustomJob | HyperparameterTuningJob | BatchPredictionJob) -> ProtoJson:
    """Return what says of a job on which machines it runs, in proto-JSON: the rest may be long."""
    from google.protobuf import json_format

    def convert(message: MachineSpec | BatchDedicatedResources) -> ProtoJson:
        return dict(json_format.MessageToDict(type(message).pb(message), preserving_proto_field_name=True))

    type_ = JobType.of_name(job.name)
    if type_ is JobType.BATCH:
        return {"input_config": {}, "dedicated_resources": convert(job.dedicated_resources)}
    spec = job.job_spec if type_ is JobType.CUSTOM else job.trial_job_spec
    pools = [
        {"machine_spec": convert(pool.machine_spec), "replica_count": pool.replica_count}
        for pool in spec.worker_pool_specs
    ]
    if type_ is JobType.CUSTOM:
        return {"job_spec": {"worker_pool_specs": pools}}
    trials = {"study_spec": {}, "parallel_trial_count": job.parallel_trial_count}
    return {**trials, "trial_job_spec": {"worker_pool_specs": pools}}

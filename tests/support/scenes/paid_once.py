"""Operators that order one thing of Vertex AI, Google's and ours: what they are given, and what was paid for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from airflow.providers.google.cloud.operators.vertex_ai.custom_job import (
    CreateCustomContainerTrainingJobOperator,
    CreateCustomJobOperator,
)
from airflow.providers.google.cloud.operators.vertex_ai.hyperparameter_tuning_job import (
    CreateHyperparameterTuningJobOperator,
)
from airflow.providers.google.cloud.operators.vertex_ai.model_service import UploadModelOperator
from google.cloud import aiplatform_v1
from google.cloud.aiplatform import hyperparameter_tuning

from retraining.core.jobs.requests import JobRequest
from retraining.core.naming.vertex import RUN_LABEL
from retraining.hooks.cloud import Cloud
from retraining.hooks.registry import Upload
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.deployment.version_upload import upload_once
from retraining.operators.jobs.job import VertexJobOperator
from tests.support.scenes.served_models import PREBUILT

SECONDS = 8
"""For which a job is at work."""
WORK = f"import time; time.sleep({SECONDS})"
# A trial reports as `hypertune.HyperTune` does.
TRIAL = f"""
import json, os, time
time.sleep({SECONDS})
line = {{"timestamp": time.time(), "trial": os.environ["CLOUD_ML_TRIAL_ID"], "score": "1.0", "global_step": "1"}}
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
    file.write(json.dumps({{**line, "checkpoint_path": ""}}) + "\\n")
"""


def pools(code: str) -> list[dict[str, Any]]:
    """One machine that runs a program."""
    container = {"image_uri": Cloud().settings.trainer_image, "command": ["python", "-c", code]}
    return [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]


def where() -> dict[str, str]:
    """Project and region, as Google's operators take them."""
    settings = Cloud().settings
    return {"project_id": settings.project, "region": settings.region}


def files(name: str) -> str:
    """The folder of a model that nobody asks."""
    cloud = Cloud()
    folder = f"gs://{cloud.settings.bucket}/{name}/model"
    cloud.artifacts.write_once(f"{folder}/saved_model.pb", b"not a model")
    return folder


def google_custom(name: str, *, deferrable: bool = False) -> Any:
    """A custom job, whole."""
    job = {"display_name": name, "job_spec": {"worker_pool_specs": pools(WORK)}}
    return CreateCustomJobOperator(
        task_id="train", custom_job=job, deferrable=deferrable, poll_interval=1, retries=3, **where()
    )


def google_custom_deferred(name: str) -> Any:
    """The same, watched by the triggerer."""
    return google_custom(name, deferrable=True)


def google_pipeline(name: str) -> Any:
    """A training pipeline with a container."""
    settings = Cloud().settings
    return CreateCustomContainerTrainingJobOperator(
        task_id="train",
        display_name=name,
        container_uri=settings.trainer_image,
        command=["python", "-c", WORK],
        staging_bucket=f"gs://{settings.bucket}",
        machine_type="n1-standard-4",
        replica_count=1,
        retries=3,
        **where(),
    )


def google_tuning(name: str) -> Any:
    """A tuning job of one trial."""
    return CreateHyperparameterTuningJobOperator(
        task_id="tune",
        display_name=name,
        metric_spec={"score": "maximize"},
        parameter_spec={"x": hyperparameter_tuning.DoubleParameterSpec(min=0, max=1, scale="linear")},
        max_trial_count=1,
        parallel_trial_count=1,
        worker_pool_specs=pools(TRIAL),
        staging_bucket=f"gs://{Cloud().settings.bucket}",
        retries=3,
        **where(),
    )


def google_upload(name: str) -> Any:
    """A model, with an id of one's own, so that a second upload is a version of it."""
    model = {"display_name": name, "artifact_uri": files(name), "container_spec": PREBUILT}
    return UploadModelOperator(task_id="register", model=model, retries=3, **where())


def our_custom(name: str) -> Any:
    """A custom job, whole."""
    job = {"display_name": name, "job_spec": {"worker_pool_specs": pools(WORK)}}
    return VertexJobOperator(task_id="train", custom_job=job, retries=3)


class TuningOperator(VertexJobOperator):
    """What `TuneOperator` asks `VertexJobOperator` for, without a run around it."""

    def requested_job(self, cloud: Any, context: Any) -> Any:
        """A study of one trial."""
        del cloud
        double = {"min_value": 0.0, "max_value": 1.0}
        study = {
            "metrics": [{"metric_id": "score", "goal": "MAXIMIZE"}],
            "parameters": [{"parameter_id": "x", "double_value_spec": double}],
        }
        job = {
            "display_name": context["dag_run"].dag_id,
            "study_spec": study,
            "max_trial_count": 1,
            "parallel_trial_count": 1,
            "trial_job_spec": {"worker_pool_specs": pools(TRIAL)},
        }
        return JobRequest(custom_job=job), lambda: True


def our_tuning(name: str) -> Any:
    """A tuning job of one trial."""
    del name
    return TuningOperator(task_id="tune", retries=3)


class UploadOperator(CloudOperator):
    """What `RegisterModelOperator` does first, without a run around it."""

    def act(self, cloud: Any, context: Any) -> Any:
        """Upload once."""
        name = context["dag_run"].dag_id
        folder = files(name)
        labels = {RUN_LABEL: "20131120t030000z-000000000001"}
        upload = Upload(display_name=name, description="x", artifact_uri=folder, container_spec=PREBUILT, labels=labels)
        return upload_once(cloud, name, upload, f"gs://{cloud.settings.bucket}/{name}/upload.json").version_id


def our_upload(name: str) -> Any:
    """A version of a model."""
    del name
    return UploadOperator(task_id="register", retries=3)


def count_jobs(name: str) -> int:
    """Custom jobs of a name."""
    return len(list(_client("JobServiceClient").list_custom_jobs(_named(name))))


def count_pipelines(name: str) -> int:
    """Training pipelines of a name."""
    return len(list(_client("PipelineServiceClient").list_training_pipelines(_named(name))))


def count_studies(name: str) -> int:
    """Tuning jobs of a name."""
    return len(list(_client("JobServiceClient").list_hyperparameter_tuning_jobs(_named(name))))


def count_versions(name: str) -> int:
    """Versions of all models of a name."""
    client = _client("ModelServiceClient")
    return sum(len(list(client.list_model_versions(name=model.name))) for model in client.list_models(_named(name)))


def _client(name: str) -> Any:
    return getattr(aiplatform_v1, name)(client_options=Cloud().session.client_options)


def _named(name: str) -> dict[str, str]:
    settings = Cloud().settings
    parent = f"projects/{settings.project}/locations/{settings.region}"
    return {"parent": parent, "filter": f'display_name="{name}"'}


@dataclasses.dataclass(frozen=True)
class Contender:
    """An operator, and how what it ordered is counted."""

    title: str
    make: Callable[[str], Any]
    creates: str
    count: Callable[[str], int]


OURS = (
    Contender("`VertexJobOperator`", our_custom, "CreateCustomJob", count_jobs),
    Contender("`TuneOperator`, its job", our_tuning, "CreateHyperparameterTuningJob", count_studies),
    Contender("`RegisterModelOperator`, its upload", our_upload, "UploadModel", count_versions),
)
GOOGLES = (
    Contender("`CreateCustomJobOperator`", google_custom, "CreateCustomJob", count_jobs),
    Contender("the same, `deferrable`", google_custom_deferred, "CreateCustomJob", count_jobs),
    Contender("`CreateCustomContainerTrainingJobOperator`", google_pipeline, "CreateTrainingPipeline", count_pipelines),
    Contender("`CreateHyperparameterTuningJobOperator`", google_tuning, "CreateHyperparameterTuningJob", count_studies),
    Contender("`UploadModelOperator`", google_upload, "UploadModel", count_versions),
)

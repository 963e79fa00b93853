"""What two environments see of one project, through Google's own clients."""

from __future__ import annotations

import os
from typing import Any

import pytest
from google.cloud import aiplatform_v1, storage

from retraining.core.errors import SettingsError
from retraining.hooks.cloud import Cloud
from retraining.hooks.registry import Upload
from retraining.operators.deployment.version_upload import upload_once
from retraining.operators.record.ownership import require_own_model
from tests.support.scenes.port_stage import FOREVER, make_job
from tests.support.scenes.served_models import PREBUILT

KEY = "20131120t030000z-000000000001"


@pytest.fixture(scope="module")
def other(local_hooks) -> Any:
    """Another environment of the same project and bucket."""
    del local_hooks
    return Cloud({**os.environ, "RETRAINING_ENVIRONMENT": "other"})


def test_equal_labels_are_found_by_their_own_environment_only(cloud, other, unique) -> None:
    """By label and by a label's name, custom and tuning jobs alike."""
    mine, theirs = (hooks.jobs.create(make_job(FOREVER, **{unique: "a"})) for hooks in (cloud, other))
    for hooks, job in ((cloud, mine), (other, theirs)):
        assert [found.name for found in hooks.jobs.find_jobs({unique: "a"})] == [job.name]
        assert [found.name for found in hooks.jobs.find_active(unique)] == [job.name]
        hooks.jobs.cancel(job.name)


def test_a_job_of_an_earlier_release_is_found_where_its_folder_is(cloud, unique) -> None:
    """It has no label of its environment; the bucket that it writes to says whose it is."""
    options = cloud.session.client_options
    client = aiplatform_v1.JobServiceClient(credentials=cloud.session.credentials, client_options=options)
    parent = f"projects/{cloud.settings.project}/locations/{cloud.settings.region}"
    storage.Client().create_bucket(unique)
    names = []
    for bucket in (cloud.settings.bucket, unique):
        job = make_job("pass", owner=unique)
        job["job_spec"]["base_output_directory"] = {"output_uri_prefix": f"gs://{bucket}/{unique}"}
        names.append(client.create_custom_job(parent=parent, custom_job=job).name)
    assert [job.name for job in cloud.jobs.find_jobs({"owner": unique})] == names[:1]


def test_a_registered_model_is_its_environments(cloud, other, folder, unique) -> None:
    """Version and endpoint carry the label; the other environment is refused by name."""
    artifact_uri = f"{folder}/model"
    cloud.artifacts.write_once(f"{artifact_uri}/saved_model.pb", b"not a model")
    wanted = Upload(
        display_name=unique,
        description="x",
        artifact_uri=artifact_uri,
        container_spec=PREBUILT,
        labels={"retraining-run": KEY},
    )
    version = upload_once(cloud, unique, wanted, f"{folder}/upload.json")
    endpoint = cloud.endpoints.ensure(unique, f"{cloud.settings.project}.{cloud.settings.dataset}.r_{unique}", {})
    label = cloud.session.environment.label
    assert version.labels["retraining-environment"] == endpoint.labels["retraining-environment"] == label
    require_own_model(cloud, unique)
    with pytest.raises(SettingsError, match=f"models/{unique}@1 .*environment '{label}' made it"):
        require_own_model(other, unique)

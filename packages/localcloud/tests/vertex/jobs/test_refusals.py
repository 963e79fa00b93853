"""Custom jobs that cannot start, or that are refused before they cost anything."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

from packages.localcloud.tests.vertex.conftest import make_job, make_pool


@pytest.mark.parametrize(
    ("container", "words"),
    [
        pytest.param(
            {"image_uri": "gcr.io/nobody/unknown:1"},
            "Failed to pull the container image 'gcr.io/nobody/unknown:1'",
            id="unknown image",
        ),
        pytest.param({"command": ["no-such-program"]}, "could not start 'no-such-program'", id="unknown program"),
        pytest.param({"command": []}, "without a command", id="no command"),
    ],
)
def test_what_cannot_start_fails_the_job(api, container, words):
    job = api.wait(api.create_job(container=container))
    assert job.state == v1.JobState.JOB_STATE_FAILED
    assert words in job.error.message


@pytest.mark.parametrize(
    ("job", "words"),
    [
        pytest.param(
            v1.CustomJob(display_name="x"), "custom_job.job_spec; Message: Required field is not set", id="no spec"
        ),
        pytest.param(
            make_job(display_name=""), "custom_job.display_name; Message: Required field is not set", id="no name"
        ),
        pytest.param(make_job(display_name="x" * 129), "129 characters", id="long name"),
        pytest.param(make_job(labels={"Run": "a"}), "Label key 'Run' is invalid", id="label key"),
        pytest.param(make_job(labels={"run": "A B"}), "Label value 'A B' is invalid", id="label value"),
        pytest.param(make_job(labels={"run": "x" * 64}), "at most 63", id="long label"),
        pytest.param(make_job(labels={f"l{i}": "x" for i in range(65)}), "65 labels", id="many labels"),
        pytest.param(
            make_job(worker_pool_specs=[make_pool("", replica_count=2)]),
            "replica count must be 1, found 2",
            id="two chiefs",
        ),
        pytest.param(
            make_job(worker_pool_specs=[{}, make_pool("")]), "replica count must be 1, found 0", id="no chief"
        ),
        pytest.param(make_job(worker_pool_specs=[make_pool("")] * 5), "at most 4", id="five pools"),
        pytest.param(
            make_job(worker_pool_specs=[{**make_pool(""), "machine_spec": {"machine_type": "n1-standard-3"}}]),
            "'n1-standard-3' is not supported",
            id="machine",
        ),
        pytest.param(
            make_job(worker_pool_specs=[{"replica_count": 1, "machine_spec": {"machine_type": "n1-standard-4"}}]),
            "One of container_spec and python_package_spec",
            id="nothing to run",
        ),
        pytest.param(
            make_job(container={"image_uri": ""}), "container_spec.image_uri; Message: Required", id="no image"
        ),
        pytest.param(
            make_job(base_output_directory={"output_uri_prefix": "gs://no-such-bucket-here/x"}),
            "bucket .* does not exist",
            id="bucket",
        ),
        pytest.param(
            make_job(base_output_directory={"output_uri_prefix": "here/x"}), "Invalid Cloud Storage URI", id="no gs://"
        ),
        pytest.param(
            make_job(container={"env": [{"name": "A", "value": "1"}] * 2}), "'A' is set 2 times", id="doubled variable"
        ),
    ],
)
def test_malformed_jobs_are_refused_before_they_cost(api, job, words):
    before = len(list(api.jobs.list_custom_jobs(parent=api.parent)))
    with pytest.raises(exceptions.InvalidArgument, match=words):
        api.jobs.create_custom_job(parent=api.parent, custom_job=job)
    assert len(list(api.jobs.list_custom_jobs(parent=api.parent))) == before


def test_all_wrong_fields_are_named_at_once(api):
    job = v1.CustomJob(
        display_name="x", labels={"A": "b"}, job_spec={"worker_pool_specs": [make_pool("", replica_count=2)]}
    )
    with pytest.raises(exceptions.InvalidArgument) as refusal:
        api.jobs.create_custom_job(parent=api.parent, custom_job=job)
    assert refusal.value.message.startswith("List of found errors:\t1.Field: ")
    assert "\t2.Field: " in refusal.value.message


def test_field_of_another_api_version_is_refused(api):
    stranger = v1.CustomJob.deserialize(v1.CustomJob.serialize(make_job()) + b"\xfa\x7f\x03abc")
    with pytest.raises(exceptions.InvalidArgument, match="unknown field custom_job#2047"):
        api.jobs.create_custom_job(parent=api.parent, custom_job=stranger)


def test_wrong_region_and_wrong_project_are_refused(api):
    with pytest.raises(exceptions.InvalidArgument, match="valid location ID is 'us-central1'"):
        api.jobs.create_custom_job(parent=api.parent.replace("us-central1", "europe-west4"), custom_job=make_job())
    with pytest.raises(exceptions.PermissionDenied, match="project 'nobodys'"):
        api.jobs.create_custom_job(parent="projects/nobodys/locations/us-central1", custom_job=make_job())
    with pytest.raises(exceptions.NotFound):
        api.jobs.get_custom_job(name=f"{api.parent}/customJobs/1")
    with pytest.raises(exceptions.InvalidArgument, match="Invalid resource name"):
        api.jobs.list_custom_jobs(parent="us-central1")

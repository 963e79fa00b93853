"""Names that are made are read back the same."""

from __future__ import annotations

from datetime import date

import pytest

from retraining.core.errors import ContractError
from retraining.core.naming import pages, spans, vertex
from retraining.core.naming.addresses import ObjectAddress, folder_of
from retraining.core.naming.bigquery import is_run_table, run_table
from retraining.core.naming.run_keys import is_run_key
from retraining.core.naming.vertex import ResourceName

JOB = "projects/123/locations/us-central1/customJobs/77"
STUDY = "projects/123/locations/us-central1/hyperparameterTuningJobs/78"
VERSION = "projects/p/locations/us-central1/models/late@3"


@pytest.mark.parametrize(
    ("uri", "bucket", "path", "name", "stem", "folder_uri"),
    [
        ("gs://b/late/runs/k/plan.json", "b", "late/runs/k/plan.json", "plan.json", "plan", "gs://b/late/runs/k"),
        ("gs://b/late", "b", "late", "late", "late", "gs://b"),
        ("gs://b/late/", "b", "late/", "", "", "gs://b/late"),
    ],
)
def test_an_objects_address_is_taken_apart_and_put_together(uri, bucket, path, name, stem, folder_uri):
    address = ObjectAddress.parse(uri)
    assert (address.bucket, address.path, address.name, address.stem) == (bucket, path, name, stem)
    assert address.folder_uri == folder_of(uri) == folder_uri
    assert str(address) == uri


@pytest.mark.parametrize("name", [JOB, STUDY, VERSION, vertex.endpoint_name("p", "r", "late_flights")])
def test_a_resource_name_is_read_and_written_the_same(name):
    assert str(ResourceName.parse(name)) == name


def test_a_versions_name_has_a_model_and_a_version():
    version = ResourceName.parse(VERSION)
    assert (version.resource_id, version.version) == ("late", "3")
    assert vertex.unversioned(VERSION) == vertex.model_name("p", "us-central1", "late")
    assert vertex.version_name(vertex.unversioned(VERSION), "3") == VERSION


@pytest.mark.parametrize("name", ["", "late", "projects/p/locations/r", f"{JOB}/more", "a/p/b/r/customJobs/1"])
def test_what_is_no_resource_name_is_refused(name):
    with pytest.raises(ContractError, match="Expected projects"):
        ResourceName.parse(name)


def test_the_console_shows_jobs_and_studies():
    base = "https://console.cloud.google.com/vertex-ai/locations/us-central1/training"
    assert pages.job_address(JOB, "p") == f"{base}/77?project=p"
    assert pages.job_address(STUDY, "p") == f"{base}/hyperparameterTuningJobs/78?project=p"
    assert "job_id%3D%2277%22?project=p" in pages.job_logs_address(JOB, "p")


def test_the_console_shows_versions_and_endpoints():
    versions = "https://console.cloud.google.com/vertex-ai/models/locations/us-central1/models/late/versions/3"
    assert pages.version_address(VERSION) == f"{versions}?project=p"
    assert pages.endpoint_address("projects/p/locations/r/endpoints/late").endswith("/r/endpoints/late?project=p")


@pytest.mark.parametrize("span", [date(2013, 11, 19), spans.FROZEN_SET])
def test_a_spans_folder_is_read_back(span):
    folder = spans.span_uri("gs://b/late/spans/0123456789abcdef", span, "f" * 32)
    place = spans.place_of(folder_of(spans.marker_uri(folder)), "gs://b/late/spans")
    assert place is not None
    assert (place.uri, place.span, place.fingerprint) == (folder, str(span), "f" * 32)


def test_a_run_table_is_known_by_its_name(small_plan):
    assert is_run_table(run_table(small_plan))
    assert not is_run_table("p.d.requests_late")
    assert is_run_key(small_plan.run_key)


@pytest.mark.parametrize(
    ("region", "image"),
    [
        ("europe-west4", "europe-docker.pkg.dev/vertex-ai/training/tf-gpu.2-15.py310:latest"),
        ("australia-southeast1", "us-docker.pkg.dev/vertex-ai/training/tf-gpu.2-15.py310:latest"),
    ],
)
def test_a_prebuilt_container_is_taken_from_nearby(region, image):
    assert vertex.prebuilt_image(region, "2.15", accelerated=True) == image

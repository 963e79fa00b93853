"""The REST port through the gateway: Google's JSON, Google's errors."""

from __future__ import annotations

import pytest

from packages.localcloud.tests.vertex.conftest import TRAINER_IMAGE, poll

JOB = {
    "displayName": "over-rest",
    "jobSpec": {
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "replicaCount": "1",
                "containerSpec": {"imageUri": TRAINER_IMAGE, "command": ["python", "-c", "pass"]},
            }
        ]
    },
}


def test_job_over_rest_from_create_to_delete(rest):
    job = rest("POST", "customJobs", JOB).json()
    assert job["displayName"] == "over-rest"
    assert job["state"] == "JOB_STATE_QUEUED"
    ended = poll(lambda: rest("GET", f"/v1/{job['name']}").json(), lambda seen: "endTime" in seen)
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    assert ended["createTime"].endswith("Z")
    page = rest("GET", "customJobs", params={"filter": 'display_name="over-rest"', "pageSize": 1}).json()
    assert [seen["name"] for seen in page["customJobs"]] == [job["name"]]
    numbers = rest("GET", f"/v1/{job['name']}", params={"$alt": "json;enum-encoding=int"}).json()
    assert numbers["state"] == 4
    assert rest("POST", f"/v1/{job['name']}:cancel", {}).json() == {}
    operation = rest("DELETE", f"/v1/{job['name']}").json()
    done = rest("POST", f"/v1/{operation['name']}:wait", {"timeout": "5s"}).json()
    assert done["done"]
    assert done["response"] == {"@type": "type.googleapis.com/google.protobuf.Empty"}
    assert done["metadata"]["@type"] == "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata"
    assert rest("GET", f"/v1/{job['name']}").status_code == 404


@pytest.mark.parametrize(
    ("verb", "path", "body", "code", "status", "words"),
    [
        pytest.param("GET", "customJobs/1", None, 404, "NOT_FOUND", "does not exist", id="no such job"),
        pytest.param(
            "POST",
            "customJobs",
            {"colour": "red"},
            400,
            "INVALID_ARGUMENT",
            "Unknown name \"colour\" at 'custom_job'",
            id="unknown field",
        ),
        pytest.param(
            "POST",
            "customJobs",
            {**JOB, "jobSpec": {"workerPoolSpecs": [{"machine": 1}]}},
            400,
            "INVALID_ARGUMENT",
            "Unknown name \"machine\" at 'custom_job.job_spec.worker_pool_specs[0]'",
            id="unknown inner field",
        ),
        pytest.param("POST", "customJobs", {"displayName": 3}, 400, "INVALID_ARGUMENT", "displayName", id="wrong type"),
        pytest.param("POST", "customJobs", ["x"], 400, "INVALID_ARGUMENT", "Expected an object", id="no object"),
        pytest.param("POST", "customJobs", {}, 400, "INVALID_ARGUMENT", "Required field is not set", id="empty"),
        pytest.param(
            "GET",
            "customJobs?colour=red",
            None,
            400,
            "INVALID_ARGUMENT",
            "Cannot bind query parameter",
            id="unknown parameter",
        ),
        pytest.param(
            "GET", "customJobs?pageSize=many", None, 400, "INVALID_ARGUMENT", "pageSize", id="parameter's type"
        ),
        pytest.param("GET", "datasets", None, 501, "UNIMPLEMENTED", "DatasetService.ListDatasets", id="not offered"),
        pytest.param("GET", "/v1/nothing", None, 404, "NOT_FOUND", "/v1/nothing was not found", id="no such address"),
        pytest.param(
            "GET",
            "/v1/projects/nobodys/locations/us-central1/customJobs",
            None,
            403,
            "PERMISSION_DENIED",
            "nobodys",
            id="no such project",
        ),
        pytest.param(
            "GET",
            "/v1/projects/local-project/locations/asia-east1/customJobs",
            None,
            400,
            "INVALID_ARGUMENT",
            "'us-central1'",
            id="region",
        ),
    ],
)
def test_refusals_are_googles_error_json(rest, verb, path, body, code, status, words):
    answer = rest(verb, path, body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (code, code, status)
    assert words in error["message"]
    assert answer.headers["Content-Type"].startswith("application/json")


def test_unknown_field_is_named_in_the_details(rest):
    details = rest("POST", "customJobs", {"colour": "red"}).json()["error"]["details"]
    assert details[0]["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert details[0]["fieldViolations"][0]["field"] == "custom_job"


def test_broken_json_is_refused(rest):
    answer = rest("POST", "customJobs", None, data=b"{", headers={"Content-Type": "application/json"})
    assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"


def test_every_region_has_its_host(rest):
    assert (
        rest("GET", "/v1/projects/local-project/locations/europe-west4/customJobs", region="europe-west4").json() == {}
    )

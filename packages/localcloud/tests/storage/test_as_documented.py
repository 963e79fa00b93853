"""Answers of Cloud Storage that its reference describes, and suites of public clients ask for: `make conformance`."""

from __future__ import annotations

import base64
import datetime as dt
import uuid

import google.auth
import google.auth.transport.requests
import google_crc32c
import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

HOST = "https://storage.googleapis.com"


@pytest.fixture(scope="module")
def client(local_cloud) -> storage.Client:
    """Google's client, unmodified."""
    return storage.Client(project=local_cloud.project)


@pytest.fixture
def bucket(client, local_cloud) -> storage.Bucket:
    """The bucket that `up` makes."""
    return client.bucket(local_cloud.bucket)


@pytest.fixture
def session(local_cloud) -> google.auth.transport.requests.AuthorizedSession:
    """Plain HTTP, signed in."""
    credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    return google.auth.transport.requests.AuthorizedSession(credentials)


@pytest.fixture
def name() -> str:
    """A name for a bucket or an object."""
    return f"documented-{uuid.uuid4().hex[:12]}"


@pytest.mark.parametrize(
    ("fields", "begin", "way"),
    [
        ({}, "Login Required", "/storage/v1/b?project=p"),
        ({"Authorization": "Bearer "}, "Invalid Credentials", "/storage/v1/b?project=p"),
        ({"Authorization": "Bearer incorrect.token"}, "Invalid Credentials", "/storage/v1/b?project=p"),
        ({"Authorization": "Bearer " + "x" * 100}, "Invalid Credentials", "/upload/storage/v1/b/b/o"),
        ({}, "<Code>AuthenticationRequired</Code><Message>Login Required", "/bucket/object"),
    ],
    ids=["none", "empty", "made up", "upload", "XML"],
)
def test_who_does_not_say_who_calls(local_cloud, fields, begin, way):
    """https://cloud.google.com/storage/docs/json_api/v1/status-codes: two messages, in the API's own form."""
    answer = requests.get(f"{HOST}{way}", headers=fields, timeout=30)
    assert answer.status_code == 401
    if way == "/bucket/object":
        assert begin in answer.text
    else:
        error = answer.json()["error"]
        assert error["message"].startswith(begin)
        assert error["errors"][0]["reason"] == "authError"


def test_a_bucket_without_a_place_is_in_us(client, name):
    """https://cloud.google.com/storage/docs/json_api/v1/buckets: the default of `location`, and of `rpo` there."""
    made = client.create_bucket(name)
    assert (made.location, made.location_type, made.rpo) == ("US", "multi-region", "DEFAULT")
    region = client.create_bucket(f"{name}-region", location="europe-west4")
    assert (region.location_type, region.rpo) == ("region", None)


def test_since_when_settings_hold(client, name):
    """Of soft deletion and of autoclass, whose class is NEARLINE if left out; what is not changed keeps its time."""
    new = client.bucket(name)
    new.soft_delete_policy.retention_duration_seconds = 7 * 86400
    new.autoclass_enabled = True
    made = client.create_bucket(new)
    times = made.soft_delete_policy.effective_time, made.autoclass_toggle_time
    assert all(abs(dt.datetime.now(dt.UTC) - each) < dt.timedelta(minutes=5) for each in times)
    assert made.autoclass_terminal_storage_class == "NEARLINE"
    made.labels = {"a": "b"}
    made.patch()
    assert (made.soft_delete_policy.effective_time, made.autoclass_toggle_time) == times
    made.autoclass_terminal_storage_class = "ARCHIVE"
    made.patch()
    assert made.autoclass_terminal_storage_class_update_time > times[1]
    assert made.autoclass_toggle_time == times[1]


def test_public_access_prevention_has_two_values(client, name):
    """`inherited` and `enforced`."""
    new = client.bucket(name)
    new.iam_configuration.public_access_prevention = "enforced"
    made = client.create_bucket(new)
    made.iam_configuration.public_access_prevention = "unexpected"
    with pytest.raises(exceptions.BadRequest, match="publicAccessPrevention: 'unexpected'"):
        made.patch()


def test_a_policy_without_conditions_is_of_version_1(bucket):
    """https://cloud.google.com/iam/docs/policies#versions: also for who asks for version 3."""
    assert bucket.get_iam_policy(requested_policy_version=3).version == 1


def test_the_tag_of_a_download_is_that_of_the_resource(bucket, name, session):
    """In the JSON API as it stands; in the XML API in quotation marks."""
    blob = bucket.blob(name)
    blob.upload_from_string("hello")
    again = bucket.blob(name)
    assert again.download_as_text() == "hello"
    assert again.etag == blob.etag
    assert session.get(f"{HOST}/{bucket.name}/{name}").headers["ETag"] == f'"{blob.etag}"'
    assert again.download_as_text(if_etag_match=blob.etag) == "hello"


def test_what_is_composed_without_a_type_has_none(bucket, name):
    """It is served as application/octet-stream, as an object is that was uploaded without one, and which has it."""
    source, composed = bucket.blob(f"{name}/source"), bucket.blob(name)
    source.upload_from_string("hello")
    composed.compose([source])
    composed.reload()
    assert composed.content_type is None
    assert composed.download_as_text() == "hello"


def test_a_wrong_checksum_of_the_metadata_is_not_mended_by_the_last_piece(bucket, name, session):
    """A resumable upload has two places for it; each is held."""
    wrong = base64.b64encode(google_crc32c.Checksum(b"other").digest()).decode()
    right = base64.b64encode(google_crc32c.Checksum(b"hello").digest()).decode()
    start = f"{HOST}/upload/storage/v1/b/{bucket.name}/o?uploadType=resumable"
    for in_metadata, in_field, status in ((wrong, right, 400), (right, wrong, 400), (right, right, 200)):
        place = session.post(start, json={"name": name, "crc32c": in_metadata}).headers["Location"]
        piece = {"Content-Range": "bytes 0-4/5", "X-Goog-Hash": f"crc32c={in_field}"}
        assert session.put(place, data=b"hello", headers=piece).status_code == status

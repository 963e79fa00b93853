"""No option is dropped: what is kept comes back, what is held has its effect, the rest is refused by name."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest
from google.api_core import exceptions
from google.cloud import storage

from localcloud.fields import Fate
from localcloud.projects import Projects
from localcloud.storage.attributes import FIELDS
from localcloud.storage.objects import Objects
from localcloud.storage.queries import check_query
from localcloud.storage.refusals import RefusedError
from localcloud.storage.service import StorageService
from packages.localcloud.tests.google_fields import Discovery, document_of, value_at

GOOGLE = Discovery("storage.v1")
API = "https://storage.googleapis.com/storage/v1"
OWN_VALUES = {
    "location": "europe-west4",
    "storageClass": "NEARLINE",
    "iamConfiguration.publicAccessPrevention": "enforced",
    "lifecycle.rule[].action.storageClass": "COLDLINE",
    "customTime": "2026-01-02T03:04:05Z",
}
IN_THE_ADDRESS = {"name", "bucket", "md5Hash", "crc32c"}


def paths(resource: str, *fates: Fate) -> list[str]:
    """Return the fields of a resource that have no fields of their own, by their fates."""
    table = FIELDS.resources[resource]
    every = [path for path in table.rules if table.rules[path].fate in fates and path not in IN_THE_ADDRESS]
    return [path for path in every if not any(other.startswith((f"{path}.", f"{path}[")) for other in table.rules)]


def value_of(resource: str, path: str):
    """Return a value for a field."""
    schemas = dict(GOOGLE.fields(resource, FIELDS.resources[resource]))
    return OWN_VALUES.get(path) or GOOGLE.value(schemas[path])


@pytest.fixture(scope="module")
def client(local_cloud) -> storage.Client:
    """The real client."""
    return storage.Client(project=local_cloud.project)


@pytest.fixture
def bucket(client) -> storage.Bucket:
    """A fresh one."""
    return client.create_bucket(f"kept-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def blob(bucket) -> storage.Blob:
    """An object of it."""
    made = bucket.blob("a")
    made.upload_from_string(b"hello")
    return made


@pytest.mark.parametrize("path", paths("Bucket", Fate.KEPT, Fate.HELD))
def test_a_field_of_a_bucket_comes_back(local_cloud, path):
    """Of one that is made with it, and, but for the location, of one that is changed."""
    name = f"kept-{uuid.uuid4().hex[:12]}"
    given = document_of(path, value_of("Bucket", path))
    expected = value_at(given, path) if path != "location" else value_at(given, path).upper()
    url = f"{API}/b?project={local_cloud.project}"
    made = local_cloud.http.post(url, json={"name": name, **given}, timeout=10)
    assert (made.status_code, value_at(made.json(), path)) == (200, expected), made.text
    other = local_cloud.http.post(url, json={"name": f"{name}-2"}, timeout=10).json()["name"]
    if path != "location":
        assert local_cloud.http.patch(f"{API}/b/{other}", json=given, timeout=10).status_code == 200
        assert value_at(local_cloud.http.get(f"{API}/b/{other}", timeout=10).json(), path) == expected


@pytest.mark.parametrize("path", paths("Object", Fate.KEPT, Fate.HELD))
def test_a_field_of_an_object_comes_back(local_cloud, bucket, path):
    """Of one that is written with it, and of one that is changed."""
    given = document_of(path, value_of("Object", path))
    url = f"https://storage.googleapis.com/upload/storage/v1/b/{bucket.name}/o?uploadType=resumable"
    started = local_cloud.http.post(url, json={"name": "new", **given}, timeout=10)
    made = local_cloud.http.put(started.headers["Location"], data=b"x", timeout=10)
    assert value_at(made.json(), path) == value_at(given, path)
    bucket.blob("old").upload_from_string(b"x")
    changed = local_cloud.http.patch(f"{API}/b/{bucket.name}/o/old", json=given, timeout=10)
    assert (changed.status_code, value_at(changed.json(), path)) == (200, value_at(given, path))


@pytest.mark.parametrize("path", paths("Bucket", Fate.REFUSED))
def test_a_refused_field_of_a_bucket_is_named(local_cloud, path):
    """And no bucket is made."""
    given = {"name": f"kept-{uuid.uuid4().hex[:12]}", **document_of(path, value_of("Bucket", path))}
    answer = local_cloud.http.post(f"{API}/b?project={local_cloud.project}", json=given, timeout=10)
    assert (answer.status_code, f"Bucket.{path} " in answer.json()["error"]["message"]) == (501, True), answer.text
    assert local_cloud.http.get(f"{API}/b/{given['name']}", timeout=10).status_code == 404


@pytest.mark.parametrize("path", paths("Object", Fate.REFUSED))
def test_a_refused_field_of_an_object_is_named(local_cloud, blob, path):
    """In a patch, and in a copy's destination."""
    given = document_of(path, value_of("Object", path))
    patched = local_cloud.http.patch(f"{API}/b/{blob.bucket.name}/o/a", json=given, timeout=10)
    copied = local_cloud.http.post(
        f"{API}/b/{blob.bucket.name}/o/a/rewriteTo/b/{blob.bucket.name}/o/b", json=given, timeout=10
    )
    for answer in (patched, copied):
        assert (answer.status_code, f"Object.{path} " in answer.json()["error"]["message"]) == (501, True)
    assert blob.bucket.get_blob("b") is None


@pytest.mark.parametrize("method", sorted(set(FIELDS.parameters) - {"*"}))
def test_a_method_takes_its_own_parameters(method):
    """One of another method is unknown to it; one that is refused is named."""
    with pytest.raises(RefusedError, match=f"Unknown parameter 'nonsense' of {method}"):
        check_query({"nonsense": "1"}, method)
    for name, rule in FIELDS.parameters[method].rules.items():
        if rule.fate is Fate.REFUSED:
            with pytest.raises(RefusedError, match=name) as refused:
                check_query({name: "x"}, method)
            assert refused.value.status == 501
        else:
            check_query({name: "x"}, method)


def test_every_method_that_is_answered_is_listed(tmp_path):
    """With its parameters."""
    objects = Objects(tmp_path, tmp_path / "objects.sqlite")
    (tmp_path / "incoming").mkdir()
    service = StorageService(objects, Projects(["p"]), tmp_path / "incoming", location="us-central1")
    assert set(service.methods) == set(FIELDS.parameters) - {"*"}


def test_parameters_are_looked_at(client, local_cloud, bucket, blob):
    """By the real client, and of a method that has no such parameter."""
    with pytest.raises(exceptions.MethodNotImplemented, match="predefinedAcl"):
        bucket.blob("b").upload_from_string(b"x", predefined_acl="publicRead")
    # What `gcloud storage` and gcsfs say of themselves: nobody gets more by it than the IAM table gives.
    bucket.blob("c").upload_from_string(b"x", predefined_acl="projectPrivate")
    client.create_bucket(f"kept-{uuid.uuid4().hex[:12]}", predefined_acl="projectPrivate")
    with pytest.raises(exceptions.MethodNotImplemented, match="enableObjectRetention"):
        client.create_bucket(f"kept-{uuid.uuid4().hex[:12]}", enable_object_retention=True)
    answer = local_cloud.http.get(f"{API}/b/{bucket.name}/o?ifGenerationMatch=1", timeout=10)
    assert (answer.status_code, "ifGenerationMatch" in answer.text) == (400, True)


def test_a_header_field_of_the_xml_api_is_named(local_cloud, bucket):
    """An access control list, a limit of the length, a time: none is passed over."""
    url = f"https://storage.googleapis.com/{bucket.name}/x"
    for name, value in (
        ("x-goog-acl", "public-read"),
        ("x-goog-content-length-range", "0,1"),
        ("x-amz-acl", "public-read"),
        ("if-unmodified-since", "Sat, 29 Oct 1994 19:43:31 GMT"),
    ):
        answer = local_cloud.http.put(url, data=b"hello", headers={name: value}, timeout=10)
        assert (answer.status_code, name in answer.text) == (501, True)
    assert bucket.get_blob("x") is None


def test_objects_have_their_buckets_class(client):
    """Written, copied and composed; one that says its own has that one."""
    cold = client.bucket(f"kept-{uuid.uuid4().hex[:12]}")
    cold.storage_class = "COLDLINE"
    client.create_bucket(cold)
    warm = client.create_bucket(f"kept-{uuid.uuid4().hex[:12]}")
    cold.blob("a").upload_from_string(b"x")
    own = cold.blob("own")
    own.storage_class = "ARCHIVE"
    own.upload_from_string(b"x")
    cold.copy_blob(cold.blob("a"), warm, "copied")
    cold.blob("both").compose([cold.blob("a"), own])
    classes = {blob.name: blob.storage_class for each in (cold, warm) for blob in each.list_blobs()}
    assert classes == {"a": "COLDLINE", "own": "ARCHIVE", "both": "COLDLINE", "copied": "STANDARD"}
    own.storage_class = "TEPID"
    with pytest.raises(exceptions.BadRequest, match="TEPID"):
        own.patch()


def test_places_of_buckets(client, bucket):
    """A place that is none is refused, and no bucket moves."""
    for place, kind in (("us-east1", "region"), ("eu", "multi-region"), ("NAM4", "dual-region")):
        made = client.create_bucket(f"kept-{uuid.uuid4().hex[:12]}", location=place)
        assert (made.location, made.location_type) == (place.upper(), kind)
    with pytest.raises(exceptions.BadRequest, match="location constraint is not valid"):
        client.create_bucket(f"kept-{uuid.uuid4().hex[:12]}", location="nowhere")
    with pytest.raises(exceptions.BadRequest, match="location"):
        client._patch_resource(f"/b/{bucket.name}", {"location": "EU"})


def test_buckets_are_listed_page_by_page(client):
    """As many as are asked for."""
    mark = f"paged-{uuid.uuid4().hex[:8]}"
    names = [client.create_bucket(f"{mark}-{number}").name for number in range(3)]
    pages = client.list_buckets(prefix=mark, page_size=2).pages
    assert [[bucket.name for bucket in page] for page in pages] == [names[:2], names[2:]]
    assert [bucket.name for bucket in client.list_buckets(prefix=mark, max_results=1)] == names[:1]


def test_labels_are_labels(client, bucket):
    """Those that the service would not take are refused."""
    for labels in ({"Team": "a"}, {"team": "A"}, {"a" * 64: "x"}, {f"k{number}": "v" for number in range(65)}):
        bucket.labels = labels
        with pytest.raises(exceptions.BadRequest, match="labels"):
            bucket.patch()
    assert client.get_bucket(bucket.name).labels == {}


def test_a_custom_time_only_grows(blob):
    """It is neither taken away nor set back."""
    day = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    blob.custom_time = day
    blob.patch()
    for other in (None, day - dt.timedelta(days=1)):
        blob.custom_time = other
        with pytest.raises(exceptions.BadRequest, match="customTime"):
            blob.patch()
    blob.custom_time = day + dt.timedelta(days=1)
    blob.patch()
    blob.reload()
    assert blob.custom_time == day + dt.timedelta(days=1)


def test_a_delete_of_another_generation_deletes_nothing(bucket, blob):
    """The live object stays, also when a copy's source is not the one that was meant."""
    old = blob.generation
    blob.upload_from_string(b"again")
    with pytest.raises(exceptions.NotFound):
        bucket.delete_blob("a", generation=old)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.copy_blob(blob, bucket, "b", if_source_generation_match=old)
    with pytest.raises(exceptions.NotFound):
        bucket.copy_blob(blob, bucket, "b", source_generation=old)
    assert [each.name for each in bucket.list_blobs()] == ["a"]
    assert bucket.blob("a").download_as_bytes() == b"again"


def test_globs_choose_objects_and_prefixes(client, bucket):
    """`**/` is any number of folders; with a delimiter a glob is held against prefixes too."""
    for name in ("x.txt", "d/x.txt", "d/e/x.txt", "d/y.csv"):
        bucket.blob(name).upload_from_string(b"x")
    assert [blob.name for blob in bucket.list_blobs(match_glob="**/x.txt")] == ["d/e/x.txt", "d/x.txt", "x.txt"]
    listed = bucket.list_blobs(match_glob="**/", delimiter="/")
    assert ([blob.name for blob in listed], listed.prefixes) == ([], {"d/"})


def test_a_body_that_names_another_object_is_refused(local_cloud, bucket, blob):
    """It is not taken for the address's."""
    for given in ({"bucket": "other"}, {"name": "other"}):
        answer = local_cloud.http.patch(f"{API}/b/{bucket.name}/o/a", json=given, timeout=10)
        assert (answer.status_code, "does not agree" in answer.text) == (400, True)

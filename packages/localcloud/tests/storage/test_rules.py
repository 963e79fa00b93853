"""What Cloud Storage heeds beside names and bytes: globs, preconditions of reads, checksums, projects of buckets."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid

import google.auth
import google.auth.transport.requests
import pytest
from google.api_core import exceptions
from google.cloud import storage

from localcloud.storage.globs import compile_glob

LARGE = 9 * 1024 * 1024  # above the client's limit for one request: a resumable upload
WRONG_MD5 = base64.b64encode(hashlib.md5(b"other", usedforsecurity=False).digest()).decode()


@pytest.fixture(scope="module")
def client(local_cloud) -> storage.Client:
    """The real client."""
    return storage.Client(project=local_cloud.project)


@pytest.fixture
def bucket(client, local_cloud) -> storage.Bucket:
    """The bucket that `up` makes."""
    return client.bucket(local_cloud.bucket)


@pytest.fixture
def folder() -> str:
    """A fresh prefix."""
    return f"rules/{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def session(local_cloud):
    """Plain HTTP, signed in."""
    credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    return google.auth.transport.requests.AuthorizedSession(credentials)


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.txt", {"a.txt"}),
        ("**.txt", {"a.txt", "d/c.txt", "d/e/f.txt"}),
        ("d/*", {"d/c.txt", "d/[x]"}),
        ("**/?.txt", {"a.txt", "d/c.txt", "d/e/f.txt"}),
        ("[ab].{txt,csv}", {"a.txt", "b.csv"}),
        ("[!a].csv", {"b.csv"}),
        ("d/\\[x\\]", {"d/[x]"}),
        ("{a,d/c}.txt", {"a.txt", "d/c.txt"}),
    ],
)
def test_globs(glob, names):
    """As the service's table of them says."""
    pattern = compile_glob(glob)
    every = ("a.txt", "b.csv", "d/c.txt", "d/e/f.txt", "d/[x]")
    assert {name for name in every if pattern.fullmatch(name)} == names


@pytest.mark.parametrize("glob", ["[a", "{a", "a}"])
def test_globs_that_are_none(glob):
    assert compile_glob(glob) is None


def test_lists_by_glob(client, bucket, folder):
    """Over several pages, and a glob that is none is refused."""
    for name in ("a.txt", "b.csv", "d/c.txt"):
        bucket.blob(f"{folder}/{name}").upload_from_string(b"x")

    def names(glob: str) -> list[str]:
        found = client.list_blobs(bucket, prefix=folder, match_glob=glob, page_size=1)
        return [blob.name.removeprefix(f"{folder}/") for blob in found]

    assert names(f"{folder}/*.txt") == ["a.txt"]
    assert names(f"{folder}/**.txt") == ["a.txt", "d/c.txt"]
    with pytest.raises(exceptions.BadRequest, match="matchGlob"):
        names("[")


def test_preconditions_of_reads(bucket, folder):
    """Contents and metadata, of the generation that was meant or not at all."""
    blob = bucket.blob(f"{folder}/a")
    blob.upload_from_string(b"hello")
    other = blob.generation + 1
    for read in (blob.download_as_bytes, blob.reload):
        with pytest.raises(exceptions.PreconditionFailed):
            read(if_generation_match=other)
        with pytest.raises(exceptions.NotModified):
            read(if_generation_not_match=blob.generation)
        with pytest.raises(exceptions.PreconditionFailed):
            read(if_metageneration_match=77)
    assert blob.download_as_bytes(if_generation_match=blob.generation, start=1, end=2) == b"el"
    assert blob.download_as_bytes(if_generation_not_match=other) == b"hello"
    with pytest.raises(exceptions.NotFound):
        bucket.blob(f"{folder}/none").download_as_bytes(if_generation_match=1)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.reload(if_metageneration_match=77)


@pytest.mark.parametrize("size", [5, LARGE], ids=["one request", "resumable"])
@pytest.mark.parametrize("field", ["md5_hash", "crc32c"])
def test_an_upload_with_a_wrong_checksum_is_refused(bucket, folder, size, field):
    """And leaves what was there; the right ones, which the client computes by itself, pass."""
    blob = bucket.blob(f"{folder}/a")
    blob.upload_from_string(b"before")
    spoiled = bucket.blob(blob.name)
    setattr(spoiled, field, WRONG_MD5 if field == "md5_hash" else "AAAAAA==")
    with pytest.raises(exceptions.BadRequest, match="doesn't match calculated"):
        spoiled.upload_from_string(b"x" * size, checksum=None)
    assert blob.download_as_bytes() == b"before"
    for checksum in ("md5", "crc32c"):
        bucket.blob(blob.name).upload_from_string(b"x" * size, checksum=checksum)
    assert len(bucket.blob(blob.name).download_as_bytes()) == size


@pytest.mark.parametrize("fields", [{"Content-MD5": WRONG_MD5}, {"x-goog-hash": f"crc32c=AAAAAA==,md5={WRONG_MD5}"}])
def test_checksums_in_fields(session, bucket, folder, fields):
    """Of an upload of the content alone, and of the last piece of one in pieces."""
    base = f"https://storage.googleapis.com/upload/storage/v1/b/{bucket.name}/o?name={folder}/b"
    assert session.post(f"{base}&uploadType=media", data=b"hello", headers=fields).status_code == 400
    if "x-goog-hash" in fields:
        address = session.post(f"{base}&uploadType=resumable").headers["Location"]
        answer = session.put(address, data=b"hello", headers={**fields, "Content-Range": "bytes 0-4/5"})
        assert answer.status_code == 400
    assert bucket.get_blob(f"{folder}/b") is None


def test_buckets_say_whose_they_are(client, bucket):
    """By the number that the Resource Manager gives, which the SDK compares before it uses a staging bucket."""
    bucket.reload()
    assert bucket.project_number == 123456789012
    assert bucket.name in {each.name for each in client.list_buckets()}
    assert {each.project_number for each in client.list_buckets(project="123456789012")} == {123456789012}
    with pytest.raises(exceptions.BadRequest, match="Unknown project id: nobody"):
        list(client.list_buckets(project="nobody"))


def test_earlier_generations_are_gone(client, bucket, folder):
    """Without versioning a bucket has each object once, also in a list of versions; nothing can be restored."""
    blob = bucket.blob(f"{folder}/a")
    blob.upload_from_string(b"old")
    old = blob.generation
    blob.upload_from_string(b"new")
    assert [each.generation for each in client.list_blobs(bucket, prefix=folder, versions=True)] == [blob.generation]
    assert bucket.get_blob(blob.name, generation=old) is None
    with pytest.raises(exceptions.NotFound):
        bucket.delete_blob(blob.name, generation=old)
    with pytest.raises(exceptions.PreconditionFailed):
        blob.delete(if_generation_match=old)
    assert bucket.blob(blob.name).download_as_bytes() == b"new"
    bucket.delete_blob(blob.name, generation=blob.generation)
    assert list(client.list_blobs(bucket, prefix=folder, versions=True)) == []
    with pytest.raises(exceptions.MethodNotImplemented, match="cannot be restored"):
        list(client.list_blobs(bucket, prefix=folder, soft_deleted=True))
    with pytest.raises(exceptions.MethodNotImplemented, match="cannot be restored"):
        bucket.restore_blob(blob.name, generation=old)


def test_malformed_uploads_are_errors(session, bucket):
    """Not a traceback."""
    url = f"https://storage.googleapis.com/upload/storage/v1/b/{bucket.name}/o?uploadType=multipart"
    for content_type, body in (
        ("multipart/related", b"x"),
        ("multipart/related; boundary=b", b"--b\r\n\r\n[1]\r\n--b--"),
    ):
        answer = session.post(url, data=body, headers={"Content-Type": content_type})
        assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    answer = session.post("https://storage.googleapis.com/storage/v1/b?project=local-project", data=json.dumps([1]))
    assert answer.status_code == 400

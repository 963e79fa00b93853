"""Cloud Storage through the real client: preconditions, large objects, errors."""

from __future__ import annotations

import datetime
import gzip
import threading
import time
import uuid

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

SMALL = 10
LARGE = 9 * 1024 * 1024  # above the client's limit for one request: a resumable upload


@pytest.fixture(scope="module")
def bucket(local_cloud) -> storage.Bucket:
    """The bucket that `up` makes, as the real client sees it."""
    return storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)


@pytest.fixture
def name() -> str:
    """A fresh object name."""
    return f"tests/{uuid.uuid4().hex}/object.bin"


@pytest.mark.parametrize("size", [0, SMALL, LARGE], ids=["empty", "small", "large"])
def test_round_trip(bucket, name, size):
    """What is written is read back, with its checksum, type and metadata."""
    data = bytes(range(256)) * (size // 256 + 1)
    blob = bucket.blob(name)
    blob.metadata = {"rows": "7"}
    blob.upload_from_string(data[:size], content_type="application/x-test", if_generation_match=0, checksum="crc32c")
    found = bucket.get_blob(name)
    assert found.download_as_bytes(checksum="crc32c") == data[:size]
    assert (found.size, found.content_type, found.metadata) == (size, "application/x-test", {"rows": "7"})


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_create_only_once(bucket, name, size):
    """`if_generation_match=0` gives 412 when the object is there, and leaves it as it is."""
    bucket.blob(name).upload_from_string(b"a" * size, if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob(name).upload_from_string(b"b" * size, if_generation_match=0)
    assert bucket.blob(name).download_as_bytes() == b"a" * size


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_one_of_many_writers_wins(bucket, local_cloud, name, size):
    """At the same time, too: one creates the object, the others get 412."""
    outcomes: list[str] = []

    def write(letter: str) -> None:
        client = storage.Client(project=local_cloud.project)
        try:
            client.bucket(bucket.name).blob(name).upload_from_string(letter.encode() * size, if_generation_match=0)
            outcomes.append(letter)
        except exceptions.PreconditionFailed:
            outcomes.append("412")

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [each for each in outcomes if each != "412"]
    assert sorted(outcomes) == sorted([winner, "412", "412", "412"])
    assert bucket.blob(name).download_as_bytes() == winner.encode() * size


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_replace_only_what_was_read(bucket, name, size):
    """A generation that is no longer there is refused; the right one is accepted."""
    blob = bucket.blob(name)
    blob.upload_from_string(b"a" * size)
    first = blob.generation
    blob.upload_from_string(b"b" * size, if_generation_match=first)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob(name).upload_from_string(b"c" * size, if_generation_match=first)
    assert bucket.blob(name).download_as_bytes() == b"b" * size


def test_preconditions_of_other_calls(bucket, name):
    """Delete, copy, compose and patch look at the generation as well."""
    blob = bucket.blob(name)
    blob.upload_from_string(b"a")
    other = bucket.blob(name + ".other")
    other.upload_from_string(b"b")
    with pytest.raises(exceptions.PreconditionFailed):
        blob.delete(if_generation_match=blob.generation + 1)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.copy_blob(blob, bucket, other.name, if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        other.compose([blob, blob], if_generation_match=0)
    assert other.download_as_bytes() == b"b"
    bucket.copy_blob(blob, bucket, name + ".new", if_generation_match=0)
    assert bucket.blob(name + ".new").download_as_bytes() == b"a"
    blob.delete(if_generation_match=blob.generation)
    assert not blob.exists()


def test_uploads_in_chunks(bucket, name):
    """A resumable upload of several chunks arrives whole, with and without a precondition."""
    data = bytes(range(256)) * 4096 + b"tail"
    for suffix, condition in (("a", {"if_generation_match": 0}), ("b", {})):
        with bucket.blob(name + suffix, chunk_size=256 * 1024).open("wb", **condition) as file:
            for start in range(0, len(data), 100_000):
                file.write(data[start : start + 100_000])
        assert bucket.blob(name + suffix).download_as_bytes() == data


def test_listing_ranges_and_copies(bucket, name):
    """Prefix and delimiter, byte ranges, rewrite."""
    for suffix in ("/a", "/b/c"):
        bucket.blob(name + suffix).upload_from_string(b"0123456789")
    assert [each.name for each in bucket.list_blobs(prefix=name)] == [name + "/a", name + "/b/c"]
    page = bucket.client.list_blobs(bucket, prefix=name + "/", delimiter="/")
    assert [each.name for each in page] == [name + "/a"]
    assert page.prefixes == {name + "/b/"}
    assert bucket.blob(name + "/a").download_as_bytes(start=2, end=4) == b"234"
    bucket.blob(name + "/z").rewrite(bucket.blob(name + "/a"))
    assert bucket.blob(name + "/z").download_as_bytes() == b"0123456789"


def test_missing_things_are_404(bucket, local_cloud, name):
    """A bucket or object that is not there is told at once."""
    with pytest.raises(exceptions.NotFound):
        bucket.blob(name).download_as_bytes()
    with pytest.raises(exceptions.NotFound):
        storage.Client(project=local_cloud.project).bucket("no-such-bucket").blob(name).upload_from_string(b"x")
    assert bucket.get_blob(name) is None


def test_tensorflow_writes_with_a_needless_header(local_cloud, name):
    """`Transfer-Encoding: identity`, which TensorFlow's gs:// sends, and its host name, are accepted."""
    url = f"https://www.googleapis.com/upload/storage/v1/b/{local_cloud.bucket}/o?uploadType=resumable&name={name}"
    started = local_cloud.http.post(url, data=b"", headers={"Transfer-Encoding": "identity"}, timeout=30)
    assert started.status_code == 200
    assert started.headers["Location"].startswith("https://")
    headers = {"Transfer-Encoding": "identity", "Content-Range": "bytes 0-2/3", "Content-Length": "3"}
    assert (
        local_cloud.http.put(started.headers["Location"], data=b"abc", headers=headers, timeout=30).status_code == 200
    )
    read = local_cloud.http.get(f"https://storage.googleapis.com/{local_cloud.bucket}/{name}", timeout=30)
    assert read.content == b"abc"


def test_chunked_bodies_and_many_requests_on_one_connection(local_cloud, name):
    """Bodies with and without a length follow each other on a kept connection."""
    url = f"https://storage.googleapis.com/upload/storage/v1/b/{local_cloud.bucket}/o?uploadType=media&name={name}"
    with local_cloud.http as session:
        for index in range(5):
            sent = session.post(f"{url}{index}", data=iter([b"x" * 70_000, b"y" * index]), timeout=30)
            assert sent.json()["size"] == str(70_000 + index)
            read = session.get(f"https://storage.googleapis.com/{local_cloud.bucket}/{name}{index}", timeout=30)
            assert len(read.content) == 70_000 + index
            assert (
                session.head(f"https://storage.googleapis.com/{local_cloud.bucket}/none", timeout=30).status_code == 404
            )


def test_an_object_beside_a_folder_of_its_name(bucket, name):
    """`a` and `a/b`, in either order, as the service has no folders."""
    for first, second in ((f"{name}/x", f"{name}/x/y"), (f"{name}/z/y", f"{name}/z")):
        for each in (first, second):
            bucket.blob(each).upload_from_string(each)
        assert [bucket.blob(each).download_as_text() for each in (first, second)] == [first, second]
    found = [blob.name.removeprefix(f"{name}/") for blob in bucket.list_blobs(prefix=f"{name}/")]
    assert found == ["x", "x/y", "z", "z/y"]
    for each in found:
        bucket.delete_blob(f"{name}/{each}")
    assert list(bucket.list_blobs(prefix=name)) == []


def test_what_a_bucket_is_given_it_keeps(local_cloud):
    """Labels, storage class, location and lifecycle; a label is taken away alone."""
    client = storage.Client(project=local_cloud.project)
    made = client.bucket(f"labels-{uuid.uuid4().hex}")
    made.labels, made.storage_class = {"team": "a", "cost": "b"}, "NEARLINE"
    client.create_bucket(made, location="europe-west1")
    found = client.get_bucket(made.name)
    assert (found.labels, found.storage_class, found.location) == (made.labels, "NEARLINE", "EUROPE-WEST1")
    found.labels = {"team": "c"}
    found.add_lifecycle_delete_rule(age=3)
    found.patch()
    found = client.get_bucket(made.name)
    assert (found.labels, len(list(found.lifecycle_rules)), found.metageneration) == ({"team": "c"}, 1, 2)
    with pytest.raises(exceptions.Conflict):
        client.create_bucket(made.name)
    found.blob("x").upload_from_string(b"x")
    with pytest.raises(exceptions.Conflict, match="not empty"):
        found.delete()
    found.delete(force=True)
    assert client.lookup_bucket(made.name) is None


def test_a_lost_last_answer_of_an_upload_is_given_again(local_cloud, name):
    """So that who asks what has come does not upload again, and meet its own object."""
    url = f"https://storage.googleapis.com/upload/storage/v1/b/{local_cloud.bucket}/o"
    start = local_cloud.http.post(f"{url}?uploadType=resumable&ifGenerationMatch=0&name={name}", timeout=10)
    where = start.headers["Location"]
    first = local_cloud.http.put(where, data=b"abcd", headers={"Content-Range": "bytes 0-3/*"}, timeout=10)
    assert (first.status_code, first.headers["Range"]) == (308, "bytes=0-3")
    again = local_cloud.http.put(where, data=b"cdef", headers={"Content-Range": "bytes 2-5/6"}, timeout=10)
    assert (again.status_code, again.json()["size"]) == (200, "6")
    asked = local_cloud.http.put(where, headers={"Content-Range": "bytes */6"}, timeout=10)
    assert asked.json()["generation"] == again.json()["generation"]
    read = local_cloud.http.get(f"https://storage.googleapis.com/{local_cloud.bucket}/{name}", timeout=10)
    assert read.content == b"abcdef"


def test_the_generation_that_is_asked_for_or_none(bucket, name):
    """There are no older ones."""
    blob = bucket.blob(name)
    blob.upload_from_string(b"one")
    first = blob.generation
    bucket.blob(name).upload_from_string(b"two")
    assert bucket.get_blob(name, generation=first) is None
    with pytest.raises(exceptions.NotFound):
        bucket.blob(name, generation=first).download_as_bytes()
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.copy_blob(bucket.blob(name), bucket, f"{name}-2", if_source_generation_match=first)
    assert bucket.get_blob(name).generation > first


def test_packed_contents(local_cloud, bucket, name):
    """`contentEncoding: gzip` is unpacked for who does not take it."""
    blob = bucket.blob(name)
    blob.content_encoding = "gzip"
    blob.upload_from_string(gzip.compress(b"hello" * 1000))
    url = f"https://storage.googleapis.com/{bucket.name}/{name}"
    for accepted in ("gzip", "identity"):
        answer = local_cloud.http.get(url, headers={"Accept-Encoding": accepted}, timeout=10)
        assert answer.content == b"hello" * 1000, accepted
        assert ("Content-Encoding" in answer.headers) == (accepted == "gzip")


@pytest.mark.parametrize(
    ("asked", "status", "content"),
    [
        ("bytes=2-4", 206, b"234"),
        ("bytes=7-", 206, b"789"),
        ("bytes=-2", 206, b"89"),
        ("bytes=0-99", 206, b"0123456789"),
        ("bytes=10-", 416, None),
        ("bytes=4-2", 200, b"0123456789"),
        ("lines=1-2", 200, b"0123456789"),
    ],
)
def test_ranges(local_cloud, bucket, name, asked, status, content):
    """As RFC 9110 says."""
    bucket.blob(name).upload_from_string(b"0123456789")
    url = f"https://storage.googleapis.com/{bucket.name}/{name}"
    answer = local_cloud.http.get(url, headers={"Range": asked}, timeout=10)
    assert answer.status_code == status
    assert content is None or answer.content == content


@pytest.mark.parametrize("version", ["v2", "v4"])
def test_a_signed_address_is_all_that_its_holder_needs(bucket, name, version):
    """As Google's client signs it, by a program that knows nothing of accounts: put, read, changed answer, end."""
    blob = bucket.blob(name)

    def sign(method: str = "GET", seconds: int = 60, **options: str) -> str:
        until = datetime.timedelta(seconds=seconds)
        return str(blob.generate_signed_url(version=version, expiration=until, method=method, **options))

    put = requests.put(sign("PUT", content_type="text/csv"), b"a,b", headers={"Content-Type": "text/csv"}, timeout=30)
    assert put.status_code == 200, put.text
    read = requests.get(sign(), timeout=30)
    assert (read.content, read.headers["Content-Type"]) == (b"a,b", "text/csv")
    shown = {"response_type": "text/plain", "response_disposition": "attachment; filename=week.csv"}
    answer = requests.get(sign(**shown), timeout=30)
    assert answer.content == b"a,b"
    assert answer.headers["Content-Type"] == "text/plain"
    assert answer.headers["Content-Disposition"] == "attachment; filename=week.csv"
    other = requests.get(sign().replace(name, name + "x"), timeout=30)
    assert (other.status_code, "<Code>SignatureDoesNotMatch</Code>" in other.text) == (403, True)
    old = requests.get(sign(seconds=-5) if version == "v2" else ended(sign(seconds=1)), timeout=30)
    assert (old.status_code, "<Code>ExpiredToken</Code>" in old.text) == (400, True)
    assert requests.delete(sign("DELETE"), timeout=30).status_code == 204
    assert requests.get(sign(), timeout=30).status_code == 404


def ended(address: str) -> str:
    """The same one, its end over."""
    time.sleep(1.1)
    return address

"""Cloud Storage through the real client: preconditions, large objects, errors."""

from __future__ import annotations

import threading
import uuid

import pytest
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

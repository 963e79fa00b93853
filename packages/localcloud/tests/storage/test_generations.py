"""Object versioning, as Cloud Storage documents it: what is replaced or deleted stays until its generation is deleted.

https://cloud.google.com/storage/docs/object-versioning
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import storage

from localcloud.storage.calls import Conditions
from localcloud.storage.objects import Incoming, Objects


@pytest.fixture
def client(local_cloud) -> storage.Client:
    """Google's client, unmodified."""
    return storage.Client()


@pytest.fixture
def bucket(client) -> storage.Bucket:
    """A bucket with object versioning."""
    made = client.bucket(f"generations-{uuid.uuid4().hex[:8]}")
    made.versioning_enabled = True
    return client.create_bucket(made)


def write(bucket: storage.Bucket, name: str, *contents: str) -> list[int]:
    """Write an object several times; return the generations."""
    found = []
    for content in contents:
        blob = bucket.blob(name)
        blob.upload_from_string(content)
        found.append(blob.generation)
    return found


def listed(bucket: storage.Bucket, **asked: object) -> list[tuple[str, int]]:
    """Return names and generations of a list."""
    return [(each.name, each.generation) for each in bucket.list_blobs(**asked)]


def test_what_is_replaced_stays(bucket):
    """It is read, listed, described and copied by its generation; without one the live one is meant."""
    first, second = write(bucket, "a", "one", "two")
    assert bucket.blob("a").download_as_text() == "two"
    assert bucket.blob("a", generation=first).download_as_text() == "one"
    assert listed(bucket) == [("a", second)]
    assert listed(bucket, versions=True) == [("a", first), ("a", second)]
    old, live = bucket.get_blob("a", generation=first), bucket.get_blob("a")
    assert old.time_deleted == live.time_created.replace(microsecond=old.time_deleted.microsecond)
    assert live.time_deleted is None
    bucket.copy_blob(bucket.blob("a"), bucket, "restored", source_generation=first)
    assert bucket.blob("restored").download_as_text() == "one"


def test_what_is_deleted_stays_until_its_generation_is_deleted(bucket):
    """Without a generation the live one becomes noncurrent, with one it goes for good, live or not."""
    first, second = write(bucket, "a", "one", "two")
    bucket.delete_blob("a")
    assert bucket.get_blob("a") is None
    with pytest.raises(exceptions.NotFound):
        bucket.delete_blob("a")
    assert listed(bucket, versions=True) == [("a", first), ("a", second)]
    with pytest.raises(exceptions.Conflict, match="not empty"):
        bucket.delete()
    bucket.delete_blob("a", generation=first)
    assert listed(bucket, versions=True) == [("a", second)]
    (third,) = write(bucket, "a", "three")
    bucket.delete_blob("a", generation=third)
    assert bucket.get_blob("a") is None
    bucket.delete_blob("a", generation=second)
    bucket.delete()


def test_a_new_object_where_only_noncurrent_ones_are(bucket):
    """`ifGenerationMatch=0` means: there is no live one."""
    (first,) = write(bucket, "a", "one")
    bucket.delete_blob("a")
    bucket.blob("a").upload_from_string("two", if_generation_match=0)
    assert bucket.blob("a", generation=first).download_as_text() == "one"


def test_attributes_of_a_noncurrent_generation_change(bucket):
    """Its own, not those of the live one."""
    first, _ = write(bucket, "a", "one", "two")
    old = bucket.get_blob("a", generation=first)
    old.metadata = {"kept": "yes"}
    old.patch()
    assert bucket.get_blob("a", generation=first).metadata == {"kept": "yes"}
    assert bucket.get_blob("a").metadata is None


def test_pages_of_generations(client, bucket):
    """Each once, in order, also where a page ends between two generations of a name."""
    generations = write(bucket, "a", "1", "2", "3")
    others = write(bucket, "b/c", "1", "2")
    pages = client.list_blobs(bucket, versions=True, page_size=2).pages
    found = [[(each.name, each.generation) for each in page] for page in pages]
    assert [len(page) for page in found] == [2, 2, 1]
    everything = [("a", each) for each in generations] + [("b/c", each) for each in others]
    assert [each for page in found for each in page] == everything
    below = client.list_blobs(bucket, versions=True, delimiter="/")
    assert [each.generation for each in below] == generations
    assert below.prefixes == {"b/"}


def test_versioning_is_turned_off(bucket):
    """What was kept stays, and nothing is kept from then on."""
    first, second = write(bucket, "a", "one", "two")
    bucket.versioning_enabled = False
    bucket.patch()
    (third,) = write(bucket, "a", "three")
    assert listed(bucket, versions=True) == [("a", first), ("a", third)]
    with pytest.raises(exceptions.NotFound):
        bucket.blob("a", generation=second).download_as_text()


def test_versioning_that_is_none(client):
    """A text is no truth."""
    with pytest.raises(exceptions.BadRequest, match="versioning"):
        client._post_resource(
            "/b",
            {"name": f"none-{uuid.uuid4().hex[:8]}", "versioning": {"enabled": "yes"}},
            {"project": client.project},
        )


@pytest.mark.parametrize("deed", ["replace", "unlink"])
def test_a_killed_writer_leaves_each_generation_once(tmp_path, monkeypatch, deed):
    """Killed after the old one was kept, and before the new one was there, or the old one gone."""
    (tmp_path / "root" / "b").mkdir(parents=True)
    (tmp_path / "incoming").mkdir()
    objects = Objects(tmp_path / "root", tmp_path / "storage.sqlite")
    objects.connection.execute(
        'INSERT INTO buckets VALUES (\'b\', \'{"attributes": {"versioning": {"enabled": true}}}\')'
    )

    def put(store: Objects, content: bytes):
        incoming = Incoming(tmp_path / "incoming")
        incoming.write(content)
        return store.put("b", "a", incoming, {}, Conditions())

    first = put(objects, b"one")

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, deed, die)
    with pytest.raises(KeyboardInterrupt):
        put(objects, b"two") if deed == "replace" else objects.delete(first, for_good=False)
    monkeypatch.undo()
    again = Objects(tmp_path / "root", tmp_path / "storage.sqlite")
    assert [generation for _, _, generation in again.walk_generations("b")] == [first.generation]
    assert again.require("b", "a").noncurrent_since is None
    third = put(again, b"three")
    found = [(path.read_bytes(), generation) for _, path, generation in again.walk_generations("b")]
    assert found == [(b"one", first.generation), (b"three", third.generation)]
    assert again.require("b", "a", first.generation).path.stat().st_nlink == 1

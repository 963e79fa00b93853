"""Objects on disk: whole wherever a process is killed, and those of an earlier release."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from localcloud.storage.calls import Conditions
from localcloud.storage.objects import Incoming, Objects
from localcloud.storage.refusals import RefusedError


@pytest.fixture
def objects(tmp_path) -> Objects:
    """An empty bucket `b`."""
    (tmp_path / "root" / "b").mkdir(parents=True)
    (tmp_path / "incoming").mkdir()
    return Objects(tmp_path / "root", tmp_path / "storage.sqlite")


def put(objects: Objects, name: str, content: bytes, **attributes: str):
    """Write an object."""
    incoming = Incoming(objects.root.parent / "incoming")
    incoming.write(content)
    return objects.put("b", name, incoming, attributes, Conditions())


@pytest.mark.parametrize("deed", ["replace", "utime"])
def test_a_killed_writer_leaves_the_old_object_whole(objects, monkeypatch, deed):
    """Content and attributes, whichever step was the last one."""
    before = put(objects, "a", b"old", contentType="text/old")

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(*((Path, "replace", die) if deed == "replace" else (os, "utime", die)))
    with pytest.raises(KeyboardInterrupt):
        put(objects, "a", b"new", contentType="text/new")
    monkeypatch.undo()
    again = Objects(objects.root, objects.root.parent / "storage.sqlite")
    found = again.require("b", "a")
    assert found.path.read_bytes() == b"old"
    assert (found.generation, found.attributes, found.hashes) == (before.generation, before.attributes, before.hashes)
    assert put(again, "a", b"newer").generation > before.generation


def test_a_deleted_object_leaves_nothing_behind(objects):
    """No file, no folder, no row of its attributes; others stay."""
    put(objects, "d/e/a", b"old")
    put(objects, "d/e/a", b"new")
    put(objects, "d/b", b"b")
    put(objects, "d/b/c", b"stored encoded: d/b is a file")
    for name in ("d/e/a", "d/b/c"):
        objects.delete(objects.require("b", name))
    bucket = objects.root / "b"
    assert sorted(str(path.relative_to(bucket)) for path in bucket.rglob("*")) == ["d", "d/b"]
    assert [row[0] for row in objects.connection.execute("SELECT name FROM objects")] == ["d/b"]


def test_a_deleted_object_does_not_come_back_from_its_other_place(objects):
    """Where its file was stored encoded, and somebody put one there by hand: that one is read, and listed once."""
    put(objects, "a", b"a")
    put(objects, "a/b", b"encoded")
    objects.delete(objects.require("b", "a"))
    (objects.root / "b" / "a").mkdir()
    (objects.root / "b" / "a" / "b").write_bytes(b"by hand")
    assert objects.require("b", "a/b").path.read_bytes() == b"by hand"
    assert [name for name, _ in objects.walk("b")] == ["a/b"]
    objects.delete(objects.require("b", "a/b"))
    assert (objects.find("b", "a/b"), objects.walk("b")) == (None, [])
    assert list((objects.root / "b").rglob("*")) == []


def test_a_file_of_an_earlier_release_is_the_object_that_it_was(objects):
    """With the generation, type and metadata that fake-gcs-server kept at it; one without them is an object too."""
    path = objects.root / "b" / "d" / "x.txt"
    path.parent.mkdir()
    path.write_bytes(b"hello")
    kept = {"ContentType": "text/x", "Metadata": {"a": "1"}, "Generation": 1795460434701063, "CacheControl": ""}
    try:
        os.setxattr(path, "user.metadata", json.dumps(kept).encode())
    except OSError:
        pytest.skip("no extended attributes on this file system")
    for store in (objects, Objects(objects.root, objects.root.parent / "storage.sqlite")):
        found = store.require("b", "d/x.txt")
        assert found.generation == 1795460434701063
        assert found.attributes == {"contentType": "text/x", "metadata": {"a": "1"}}
        assert found.hashes["md5Hash"] == "XUFAKrxLKna5cZ2REBfFkg=="
    (path.parent / "by-hand").write_bytes(b"x")
    assert objects.require("b", "d/by-hand").size == 1
    assert [name for name, _ in objects.walk("b")] == ["d/by-hand", "d/x.txt"]


def test_of_a_clock_that_goes_back_generations_still_grow(objects):
    """Also over a restart."""
    first = put(objects, "a", b"1").generation
    earlier = Objects(objects.root, objects.root.parent / "storage.sqlite", now=lambda: 1.0)
    second = put(earlier, "a", b"2")
    assert second.generation > first
    late = Incoming(objects.root.parent / "incoming")
    with pytest.raises(RefusedError):
        earlier.put("b", "a", late, {}, Conditions(generation=first))
    late.discard()


def test_an_upload_that_nobody_goes_on_with_keeps_no_file_open(objects):
    """A thousand of them would be all that a process may have."""
    directory = objects.root.parent / "incoming"
    before = len(list(Path("/proc/self/fd").iterdir()))
    waiting = [Incoming(directory) for _ in range(50)]
    for each in waiting:
        each.write(b"a")
        each.close()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    waiting[0].write(b"b")
    stored = objects.put("b", "x", waiting[0], {}, Conditions())
    assert (stored.path.read_bytes(), stored.size) == (b"ab", 2)
    assert objects.put("b", "empty", Incoming(directory), {}, Conditions()).size == 0

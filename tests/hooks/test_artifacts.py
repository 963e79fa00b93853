"""Documents on storage: written once, listed by name."""

from __future__ import annotations

import pytest

from retraining.core.errors import ContractError, SettingsError
from retraining.hooks import artifacts


def test_write_once_keeps_the_first_bytes(cloud, folder) -> None:
    """The second writer gets what the first one stored."""
    assert cloud.artifacts.write_once(f"{folder}/a.json", b"first") == b"first"
    assert cloud.artifacts.write_once(f"{folder}/a.json", b"second") == b"first"
    assert cloud.artifacts.read(f"{folder}/a.json") == b"first"


def test_overwrite_replaces(cloud, folder) -> None:
    """For what is derived."""
    for text in (b"1", b"2"):
        cloud.artifacts.overwrite(f"{folder}/page.html", text, "text/html")
    assert cloud.artifacts.read(f"{folder}/page.html") == b"2"


def test_an_object_is_replaced_only_where_nobody_else_did(cloud, folder) -> None:
    """Compare and set by generation; the own write is recognised when its answer got lost."""
    uri = f"{folder}/state.json"
    assert cloud.artifacts.read_generation(uri) == (b"", 0)
    first = cloud.artifacts.write_if(uri, b"1", 0)
    assert first
    assert cloud.artifacts.read_generation(uri) == (b"1", first)
    assert cloud.artifacts.write_if(uri, b"another's", 0) is None
    second = cloud.artifacts.write_if(uri, b"2", first)
    assert cloud.artifacts.write_if(uri, b"2", first) == second != first
    assert cloud.artifacts.write_if(uri, b"3", first) is None
    assert cloud.artifacts.read_generation(uri) == (b"2", second)


def test_what_is_missing_is_none(cloud, folder) -> None:
    """An object that is not there is an answer, not an error."""
    assert cloud.artifacts.read(f"{folder}/none.json") is None
    assert not cloud.artifacts.exists(f"{folder}/none.json")


def test_a_missing_bucket_is_named_with_the_setting(cloud) -> None:
    """One message with the way out, for reading and for writing."""
    for ask in (
        lambda: cloud.artifacts.read("gs://no-such-bucket-here/x"),
        lambda: cloud.artifacts.write_once("gs://no-such-bucket-here/x", b""),
    ):
        with pytest.raises(SettingsError, match=r"gs://no-such-bucket-here: no such bucket.*RETRAINING_BUCKET"):
            ask()


def test_no_right_to_ask_for_the_bucket_is_needed(cloud, folder, add_fault) -> None:
    """The documented role for objects has no storage.buckets.get: what is missing is told without it."""
    add_fault("storage.buckets.get gs://*", "error", count=0, code="PERMISSION_DENIED")
    assert cloud.artifacts.read(f"{folder}/none.json") is None
    assert cloud.artifacts.write_once(f"{folder}/a.json", b"{}") == b"{}"
    with pytest.raises(SettingsError, match="no such bucket"):
        cloud.artifacts.read("gs://no-such-bucket-either/x")


def test_listing_is_bounded_and_sorted(cloud, folder) -> None:
    """`start` is in, `end` is out, `suffix` filters; other folders are left out."""
    for path in ("2013-01-03/f/span.json", "2013-01-01/f/span.json", "2013-01-02/f/x.gz", "2013-01-02/f/span.json"):
        cloud.artifacts.write_once(f"{folder}/{path}", b"{}")
    cloud.artifacts.write_once(f"{folder}x/2013-01-01/f/span.json", b"{}")
    found = cloud.artifacts.list_uris(folder, start="2013-01-01", end="2013-01-03", suffix="/span.json")
    assert found == [f"{folder}/2013-01-01/f/span.json", f"{folder}/2013-01-02/f/span.json"]
    assert cloud.artifacts.read_many([*found, f"{folder}/gone"]) == [b"{}", b"{}"]


def test_a_document_that_is_too_large_is_not_kept_in_memory(cloud, folder, monkeypatch) -> None:
    """It ends while it is read, by name; what is as large as allowed is read."""
    cloud.artifacts.overwrite(f"{folder}/a.json", b"0123456789", "application/json")
    monkeypatch.setattr(artifacts, "MAX_DOCUMENT_BYTES", 9)
    for read in (cloud.artifacts.read, cloud.artifacts.read_generation):
        with pytest.raises(ContractError, match=r"a\.json: more than 9 bytes"):
            read(f"{folder}/a.json")
    monkeypatch.setattr(artifacts, "MAX_DOCUMENT_BYTES", 10)
    assert cloud.artifacts.read(f"{folder}/a.json") == b"0123456789"


def test_an_empty_object_is_read(cloud, folder) -> None:
    """As no bytes, which is not the same as no object."""
    cloud.artifacts.overwrite(f"{folder}/empty", b"", "text/plain")
    assert cloud.artifacts.read(f"{folder}/empty") == b""
    assert cloud.artifacts.existing([f"{folder}/none", f"{folder}/empty"]) == [f"{folder}/empty"]

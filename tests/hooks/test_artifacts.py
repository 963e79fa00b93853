"""Documents on Cloud Storage, beyond what `ports` says of them: what is too large, and what no bucket has."""

from __future__ import annotations

import pytest

from retraining.core.errors import ContractError, SettingsError
from retraining.hooks import artifacts
from tests.support.refusals import refuses


def test_a_missing_bucket_is_named_with_the_setting(cloud) -> None:
    """One message with the way out, for reading and for writing."""
    for ask in (
        lambda: cloud.artifacts.read_object("gs://no-such-bucket-here/x"),
        lambda: cloud.artifacts.write_once("gs://no-such-bucket-here/x", b""),
    ):
        with refuses(
            SettingsError, where="gs://no-such-bucket-here", found="no such bucket", expected="RETRAINING_BUCKET"
        ):
            ask()


def test_no_right_to_ask_for_the_bucket_is_needed(cloud, folder, add_fault) -> None:
    """The documented role for objects has no storage.buckets.get: what is missing is told without it."""
    add_fault("storage.buckets.get gs://*", "error", count=0, code="PERMISSION_DENIED")
    assert cloud.artifacts.read_object(f"{folder}/none.json") is None
    assert cloud.artifacts.write_once(f"{folder}/a.json", b"{}") == b"{}"
    with pytest.raises(SettingsError, match="no such bucket"):
        cloud.artifacts.read_object("gs://no-such-bucket-either/x")


def test_a_document_that_is_too_large_is_not_kept_in_memory(cloud, folder, monkeypatch) -> None:
    """It ends while it is read, by name; what is as large as allowed is read."""
    cloud.artifacts.overwrite(f"{folder}/a.json", b"0123456789", "application/json")
    monkeypatch.setattr(artifacts, "MAX_DOCUMENT_BYTES", 9)
    for read in (cloud.artifacts.read_object, cloud.artifacts.read_generation):
        with pytest.raises(ContractError, match=r"a\.json: more than 9 bytes"):
            read(f"{folder}/a.json")
    monkeypatch.setattr(artifacts, "MAX_DOCUMENT_BYTES", 10)
    assert cloud.artifacts.read_object(f"{folder}/a.json") == b"0123456789"

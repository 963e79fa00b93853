"""Listings of Cloud Storage in several pages; the rest is in `ports`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from retraining.core.errors import SettingsError
from retraining.hooks.objects import Objects


@pytest.fixture
def objects(cloud) -> Objects:
    """With pages of two."""
    return Objects(cloud.session, page_size=2)


def names_of(found, folder: str) -> list[str]:
    """Paths below a folder."""
    return [item.uri.removeprefix(f"{folder}/") for item in found]


def test_a_listing_goes_page_by_page_in_order(cloud, objects, folder) -> None:
    """Everything below the folder, nothing beside it; sizes and times are storage's."""
    paths = ["a/1", "a/2", "a/b/3", "b", "c/4"]
    for path in reversed(paths):
        cloud.artifacts.write_once(f"{folder}/{path}", path.encode())
    cloud.artifacts.write_once(f"{folder}x/5", b"")
    found = list(objects.walk(folder))
    assert names_of(found, folder) == paths
    assert [item.bytes for item in found] == [len(path) for path in paths]
    assert all(abs(item.created - datetime.now(UTC)) < timedelta(minutes=5) for item in found)
    assert (found[0].name, found[0].folder_uri) == ("1", f"{folder}/a")
    assert names_of(objects.directly_in(f"{folder}/a"), folder) == ["a/1", "a/2"]
    assert list(objects.walk(f"{folder}/nothing")) == []


def test_a_missing_bucket_is_no_empty_listing(objects) -> None:
    """An error, not a store without spans."""
    from retraining.hooks.session import explain

    with pytest.raises(Exception, match="no-such-bucket-here") as caught:
        list(objects.walk("gs://no-such-bucket-here/x"))
    assert isinstance(explain(caught.value), SettingsError)

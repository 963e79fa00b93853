"""What the local cloud fetches from buckets stays in the folder it is fetched to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localcloud.vertex.processes.packages import install_packages
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.wire.errors import FailedPrecondition


class Storage:
    """A client of Cloud Storage whose objects may have any name."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def list_blobs(self, bucket: str, *, prefix: str, timeout: float) -> list[Any]:
        """As the client."""
        del bucket, timeout
        return [SimpleNamespace(name=name) for name in self.names if name.startswith(prefix)]

    def bucket(self, bucket: str) -> Any:
        """As the client: `bucket(…).blob(…).download_to_filename(…)`."""
        del bucket

        def write(path: str, timeout: float) -> None:
            del timeout
            Path(path).write_bytes(b"fetched")

        return SimpleNamespace(blob=lambda _: SimpleNamespace(download_to_filename=write))


def make_buckets(*names: str) -> Buckets:
    """Buckets with these objects."""
    storage = Storage(*names)
    return Buckets(SimpleNamespace(storage=lambda: storage))


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "a//b", "./a", "a/.."])
def test_a_folder_with_a_name_that_leads_elsewhere_is_not_fetched_at_all(tmp_path: Path, name: str) -> None:
    """Not even the objects before it."""
    with pytest.raises(FailedPrecondition, match="no place below a folder"):
        make_buckets("model/a", f"model/{name}", "model/z").download_folder("b", "model", tmp_path / "inner" / "copy")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_other_folders_are_fetched(tmp_path: Path) -> None:
    """Names with dots in them are names."""
    assert make_buckets("model/a..b", "model/v/..c").download_folder("b", "model", tmp_path) == 2
    assert (tmp_path / "v" / "..c").read_bytes() == b"fetched"


@pytest.mark.parametrize("uri", ["gs://b/packages/..", "gs://b/packages/"])
def test_a_package_without_a_name_is_refused(tmp_path: Path, uri: str) -> None:
    """The first would be the folder above."""
    with pytest.raises((FailedPrecondition, ValueError)):
        install_packages([uri], SimpleNamespace(python=Path("python")), tmp_path, make_buckets())

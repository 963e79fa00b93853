"""The clients' sources: fetched from the package index by release and hash, and unpacked as they are."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from localcloud_conformance.errors import ConformanceError

FETCH = ("download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:")


def read_releases(listed: Path) -> dict[str, str]:
    """Return the release of each project of a file of `name==release --hash=…` lines."""
    lines = [line.split()[0] for line in listed.read_text(encoding="utf-8").splitlines() if "==" in line]
    return dict(line.split("==") for line in lines)


def unpack_sources(listed: Path, python: Path, home: Path) -> dict[str, Path]:
    """Fetch what is not there yet, and return the folder of each project's source.

    Args:
        listed: File of the releases with their hashes.
        python: Interpreter that has pip and setuptools.
        home: Where they go; a folder that is there is taken as it is.

    Raises:
        ConformanceError: The package index did not give a source of that hash.
    """
    folders = {name: home / f"{name.replace('-', '_')}-{release}" for name, release in read_releases(listed).items()}
    if not all(folder.is_dir() for folder in folders.values()):
        home.mkdir(parents=True, exist_ok=True)
        _fetch(listed, python, home)
        for folder in folders.values():
            _unpack(home / f"{folder.name}.tar.gz", folder)
    return folders


def put_data(folder: Path, data: Mapping[str, str], home: Path) -> None:
    """Put the data that tests look for, and their source does not have, into its folder."""
    for place, name in data.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(home / name, folder / place)


def _fetch(listed: Path, python: Path, home: Path) -> None:
    # Metadata is built with the setuptools of the environment: nothing comes that has no hash.
    words = [str(python), "-m", "pip", *FETCH, "--no-build-isolation", "--require-hashes"]
    done = subprocess.run([*words, "--dest", str(home), "-r", str(listed)], text=True, capture_output=True, check=False)
    if done.returncode:
        raise ConformanceError(
            listed.name,
            found=f"the package index gave no such source: {done.stderr.strip()}",
            expected="each release with the hash that stands there",
            way_out="Look at the connection to the package index, or correct the line",
        )


def _unpack(archive: Path, folder: Path) -> None:
    if folder.is_dir():
        return
    with tarfile.open(archive) as packed:
        packed.extractall(folder.parent, filter="data")

"""A model's own packages, installed into a folder of the job when it begins.

Comes in: wheels in a bucket, or names with versions, each with its digests. Goes out: a folder at the front of
`sys.path`. pip checks the digests, takes nothing that is not named (`--no-deps`), builds nothing, and asks an index
only for names. The image's own environment stays as it is.
https://pip.pypa.io/en/stable/topics/secure-installs/
"""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from trainer.contract.documents import Package
from trainer.errors import DataError, RequestError, StorageError, TrainerError
from trainer.storage import Storage, path_below

LOGGER = logging.getLogger(__name__)
_PIP = ("install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--require-hashes")
_ASKED_INDEX = ("--timeout", "15", "--retries", "1")
_WHERE = "training.packages"


def install_packages(packages: Sequence[Package], storage: Storage) -> None:
    """Fetch and install packages, and let this process and those that it starts import them.

    Raises:
        DataError: One is not there, is not what its digest says, or does not fit this Python.
        RequestError: This Python has no pip.
        TrainerError: The package index did not answer.
    """
    if not packages:
        return
    began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    lines = [_requirement(package, folder / f"wheel-{number}", storage) for number, package in enumerate(packages)]
    (folder / "requirements.txt").write_text("\n".join(lines), encoding="utf-8")
    _run_pip(packages, folder)
    site = str(folder / "site")
    sys.path.insert(0, site)
    os.environ["PYTHONPATH"] = os.pathsep.join([site, *filter(None, [os.environ.get("PYTHONPATH")])])
    importlib.invalidate_caches()
    names = ", ".join(map(_name, packages))
    LOGGER.info("packages: %s in %.1f s", names, time.monotonic() - began)


def import_packages(packages: Sequence[Package]) -> None:
    """Import the modules that models need before they are loaded.

    Raises:
        DataError: One cannot be imported.
    """
    for package in packages:
        if package.imports:
            try:
                importlib.import_module(package.imports)
            except Exception as error:  # whatever a foreign module does when it is imported
                raise DataError(
                    f"{_WHERE}, {_name(package)}",
                    f"import {package.imports}: {type(error).__name__}: {error}",
                    "a module that can be imported",
                    "Packages are installed without what they depend on: name what is missing too",
                ) from error


def _requirement(package: Package, folder: Path, storage: Storage) -> str:
    """Return a package's line for pip; a wheel is fetched into a folder of its own."""
    hashes = " ".join(f"--hash=sha256:{digest}" for digest in package.sha256)
    if not package.wheel:
        return f"{package.requirement} {hashes}"
    folder.mkdir()
    path = path_below(folder, _name(package))
    if not storage.download(package.wheel, path):
        raise DataError(_WHERE, f"there is no {package.wheel}", "a wheel", "Upload it, or correct the address")
    return f"{path} {hashes}"


def _run_pip(packages: Sequence[Package], folder: Path) -> None:
    asks = any(package.requirement for package in packages)
    index = _ASKED_INDEX if asks else ("--no-index",)
    place = ("--only-binary=:all:", "--target", str(folder / "site"), "--requirement", str(folder / "requirements.txt"))
    done = subprocess.run(
        [sys.executable, "-m", "pip", *_PIP, *index, *place], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise _error(done.stderr, packages)


def _error(stderr: str, packages: Sequence[Package]) -> TrainerError:
    """Return pip's refusal in our form."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    named = next((_name(package) for package in packages if _name(package) in stderr), "")
    where = f"{_WHERE}, {named}" if named else _WHERE
    if "No module named pip" in stderr:
        return RequestError(_WHERE, f"{sys.executable} has no pip", "an image with pip", "Install it in the image")
    if "DO NOT MATCH THE HASHES" in stderr:
        got = re.search(r"Got\s+([0-9a-f]{64})", stderr)
        found = f"its SHA-256 is {got[1]}" if got else "its SHA-256 is another"
        return DataError(
            where, found, "the one in sha256", "Someone replaced the file, or the digest is old: look which"
        )
    if "is not a supported wheel" in stderr:
        return DataError(where, f"it does not fit {python} of this machine", "a wheel for it", "Upload one that does")
    if "Retrying (" in stderr or "connection" in stderr.lower():
        return StorageError(
            where, "the package index did not answer", "an answer", "Put the wheel into a bucket instead"
        )
    if "No matching distribution" in stderr:
        return DataError(
            where,
            f"the package index has no wheel of it for {python}",
            "one",
            "Correct it, or put a wheel into a bucket",
        )
    return DataError(where, " / ".join(stderr.strip().splitlines()[-3:]), "packages that pip can install")


def _name(package: Package) -> str:
    return package.requirement or str(package.wheel).rpartition("/")[2]

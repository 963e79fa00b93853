"""The environments that the demonstration needs beside Airflow's: the local cloud's, and the trainer's with TensorFlow.

Comes in: a folder, and the locked requirements that lie in this package. Goes out: an interpreter of each. Airflow, the
local cloud and TensorFlow ask for versions of common packages that do not go together, so each has its own. They are
made once for a lock and a version: pip installs by hash what is locked, and the packages of this software by their
version, from the index that pip is set up for.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retraining.core.errors import SettingsError

NEEDED_DISK_BYTES = 6 * 1024**3
"""For both: TensorFlow alone has 2 GB."""
LOCKS_PATH = Path(__file__).resolve().parents[1] / "requirements"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One of them: its name, its lock, and the packages of this software that go into it."""

    name: str
    packages: tuple[str, ...]

    @property
    def lock_path(self) -> Path:
        """Of its requirements, with hashes."""
        return LOCKS_PATH / f"{self.name}.txt"


ENVIRONMENTS = (
    Environment(name="localcloud", packages=("localcloud", "retraining-laptop")),
    Environment(name="trainer", packages=("retraining-trainer",)),
)


def python_of(folder: Path, name: str) -> Path:
    """Return the interpreter of one that was made in a folder."""
    return folder / name / "bin" / "python"


def make_environments(folder: Path, version: str, say: Callable[[str], None]) -> int:
    """Make those that are missing or were made for another lock or version.

    This process, and what takes its place, uses them from then on: until it ends nobody makes them anew.

    Args:
        folder: Has a folder for each.
        version: Of this software's packages.
        say: Takes one line of progress at a time.

    Returns:
        The file descriptor that holds them; what takes this process's place has it too.

    Raises:
        SettingsError: One could not be made, or others use or make them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(lock, True)  # held by whatever this process becomes
    try:
        _take(lock, fcntl.LOCK_SH, folder)
        if any(_is_missing(folder, each, version) for each in ENVIRONMENTS):
            _take(lock, fcntl.LOCK_EX, folder)
            _make_missing(folder, version, say)
            _take(lock, fcntl.LOCK_SH, folder)
    except BaseException:  # whatever it is, also Ctrl-C: it is raised again
        os.close(lock)
        raise
    return lock


def _take(lock: int, how: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SettingsError(
            str(folder),
            "another `retraining demo` makes or uses its environments",
            "one at a time",
            "Wait for it, or end it with Ctrl-C where it runs; --home names another folder",
        ) from None


def _make_missing(folder: Path, version: str, say: Callable[[str], None]) -> None:
    missing = [each for each in ENVIRONMENTS if _is_missing(folder, each, version)]
    free = shutil.disk_usage(folder).free
    if free < NEEDED_DISK_BYTES:
        raise SettingsError(
            str(folder),
            f"{free / 1e9:.1f} GB free on its disk",
            f"at least {NEEDED_DISK_BYTES / 1e9:.0f} GB, for TensorFlow and the local cloud",
            "Free some space, or name another folder with --home",
        )
    for environment in missing:
        say(f"making the environment {environment.name} in {folder / environment.name} (once, some minutes)")
        _make(folder / environment.name, environment, version)
        _mark_path(folder, environment).write_text(_mark(environment, version))


def _make(path: Path, environment: Environment, version: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    pip = [str(path / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([sys.executable, "-m", "venv", str(path)], environment)
    _run([*pip, "--no-deps", "--require-hashes", "-r", str(environment.lock_path)], environment)  # the lock is whole
    _run([*pip, "--no-deps", *(f"{name}=={version}" for name in environment.packages)], environment)


def _run(command: list[str], environment: Environment) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        last = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise SettingsError(
            f"environment {environment.name}",
            last,
            f"`{' '.join(command[1:4])}` to succeed",
            "Let pip reach an index that has these packages (PIP_INDEX_URL, PIP_FIND_LINKS), then try again",
        )


def _is_missing(folder: Path, environment: Environment, version: str) -> bool:
    path = _mark_path(folder, environment)
    there = python_of(folder, environment.name).exists() and path.exists()
    return not (there and path.read_text() == _mark(environment, version))


def _mark_path(folder: Path, environment: Environment) -> Path:
    return folder / f"{environment.name}.made"


def _mark(environment: Environment, version: str) -> str:
    lock = hashlib.sha256(environment.lock_path.read_bytes()).hexdigest()
    return f"{version} {lock} {sys.version_info[0]}.{sys.version_info[1]}\n"

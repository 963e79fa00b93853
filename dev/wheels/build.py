"""Files that git tracks → wheels, the same bytes for the same files, under one version number.

In: the checkout, whose `pyproject.toml` has the number, and `uv`. Out: a wheel for each package. The sources are laid
out in a folder of their own first: what lies in the checkout and git does not track is in no wheel. `uv` brings the
backend that builds them, so nothing is downloaded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
EPOCH = "315532800"
"""1980-01-01 as `SOURCE_DATE_EPOCH`, unless the environment has another: the earliest that a wheel can say."""
_VERSION = re.compile(r'^version = ".*"$', re.MULTILINE)


class BuildError(Exception):
    """What keeps a package from being built, with the way out."""


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A package: the folder that its paths are relative to, its description, its sources, what is left out of them.

    `copies` are files of the repository with their paths in the package's sources.
    """

    root: str
    project: str
    sources: tuple[str, ...]
    left_out: str = r"(?!)"
    copies: Mapping[str, str] = field(default_factory=dict)


WHEELS = {
    "retraining": Wheel(root=".", project="pyproject.toml", sources=("plugins/retraining", "README.md")),
    "retraining-trainer": Wheel(
        root=".",
        project="dev/wheels/trainer.toml",
        sources=("trainer",),
        left_out=r"trainer/(Dockerfile|pyproject\.toml|overrides\.txt|requirements.*)",
    ),
    "localcloud": Wheel(
        root="packages/localcloud", project="packages/localcloud/pyproject.toml", sources=("src", "README.md")
    ),
    "retraining-laptop": Wheel(
        root="packages/laptop",
        project="packages/laptop/pyproject.toml",
        sources=("src", "README.md"),
        copies={
            "dev/requirements.txt": "src/retraining_laptop/requirements/localcloud.txt",
            "trainer/requirements.txt": "src/retraining_laptop/requirements/trainer.txt",
        },
    ),
}


def read_version(repository: Path = REPOSITORY_PATH) -> str:
    """Return the number of all packages."""
    version: str = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def build_all(uv: str, out_path: Path, repository: Path = REPOSITORY_PATH) -> list[Path]:
    """Build every package; return the wheels.

    Args:
        uv: The program that builds.
        out_path: Folder of the results; made if need be.
        repository: A checkout.

    Raises:
        BuildError: It is no git checkout, or one could not be built.
    """
    version = read_version(repository)
    return [_build(uv, wheel, version, out_path, repository) for wheel in WHEELS.values()]


def _build(uv: str, wheel: Wheel, version: str, out_path: Path, repository: Path) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / "staged"
        _stage(wheel, version, staged, repository)
        environ = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH)}
        command = [uv, "build", "--wheel", "--offline", "--quiet", "--out-dir", folder, str(staged)]
        built = subprocess.run(command, env=environ, text=True, capture_output=True, check=False)
        if built.returncode:
            last = " / ".join(built.stderr.strip().splitlines()[-3:])
            raise BuildError(f"{wheel.project}: {last}. Expected a wheel. Correct it, or the program: {uv}")
        (made,) = Path(folder).glob("*.whl")
        out_path.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(made, out_path / made.name))


def _stage(wheel: Wheel, version: str, staged: Path, repository: Path) -> None:
    """Lay the package's sources out, with its description above them, the version in it."""
    root = repository / wheel.root
    for name in _tracked(root, wheel.sources):
        if not re.fullmatch(wheel.left_out, name):
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, target)  # without its mode, which depends on who made the checkout
            target.chmod(0o644)
    for name, place in wheel.copies.items():
        (staged / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(repository / name, staged / place)
    shutil.copyfile(repository / "LICENSE", staged / "LICENSE")
    project = (repository / wheel.project).read_text(encoding="utf-8")
    (staged / "pyproject.toml").write_text(_VERSION.sub(f'version = "{version}"', project, count=1), encoding="utf-8")


def _tracked(root: Path, sources: Sequence[str]) -> list[str]:
    """Return the files that git tracks below some paths, and that are there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *sources], cwd=root, text=True, capture_output=True, check=False
    )
    names = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    if listed.returncode or not names:
        raise BuildError(f"{root}: git tracks no {', '.join(sources)}. Expected a git checkout. Clone the repository")
    return sorted(names)

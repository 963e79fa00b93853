"""`python -m trainer.package --out dist`: the source distribution for Vertex AI's pre-built containers.

Comes in: this checkout. Goes out: `trainer-<version>.tar.gz` with the contracts' schemas inside the package. Made by
setuptools alone, which every environment here has: nothing is downloaded.
https://cloud.google.com/vertex-ai/docs/training/create-python-pre-built-container
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trainer.contract import contracts_path
from trainer.errors import TrainerError

PACKAGE_PATH = Path(__file__).resolve().parent
_BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and print the file's path; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.package", description="Build the trainer's source distribution."
    )
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder of the result (default: dist)")
    options = parser.parse_args(arguments)
    try:
        print(build_sdist(options.out))
    except TrainerError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def build_sdist(out_path: Path) -> Path:
    """Build the source distribution.

    Args:
        out_path: Folder of the result; made if need be.

    Raises:
        TrainerError: setuptools could not build it; its last lines are in the message.
    """
    out_path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage_sources(Path(folder))
        built = subprocess.run(
            [sys.executable, "-c", _BUILD, str(out_path.resolve())],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if built.returncode:
        last = " / ".join(built.stderr.strip().splitlines()[-3:])
        raise TrainerError("setuptools", last, "a source distribution", "Run it in the trainer's environment")
    return out_path / built.stdout.strip().splitlines()[-1]


def stage_sources(folder_path: Path) -> None:
    """Lay out the distribution: the package with its contracts, and `pyproject.toml` above it."""
    ignored = shutil.ignore_patterns(
        "__pycache__", "*.pyc", "contracts", "Dockerfile", "requirements*", "overrides.txt"
    )
    package_path = folder_path / "trainer"
    shutil.copytree(PACKAGE_PATH, package_path, ignore=ignored)
    shutil.copy(PACKAGE_PATH / "pyproject.toml", folder_path / "pyproject.toml")
    (package_path / "contracts").mkdir()
    for schema_path in sorted(contracts_path().glob("*.schema.json")):
        shutil.copy(schema_path, package_path / "contracts" / schema_path.name)


if __name__ == "__main__":
    sys.exit(main())

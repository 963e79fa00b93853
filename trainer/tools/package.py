"""`python -m trainer.tools.package --framework 2.15 --out dist`: the source distribution for a pre-built container.

Comes in: this checkout, the container's TensorFlow version. Goes out: `trainer-<version>+tf2.15.tar.gz`. It asks
for the `tf_keras` of that version: the newest one would bring its own TensorFlow along, in place of the container's,
which its GPU libraries fit. Made by setuptools alone, which every environment here has: nothing is downloaded.
https://cloud.google.com/vertex-ai/docs/training/create-python-pre-built-container
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trainer.errors import RequestError, TrainerError

PACKAGE_PATH = Path(__file__).resolve().parents[1]
_PROTOBUF_5_SINCE = 18  # TensorFlow 2.18 was the first to take it
_BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and print the file's path; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.tools.package", description="Build the trainer's source distribution."
    )
    parser.add_argument("--framework", help="TensorFlow of the container, 2.15; default: whatever is there, for a look")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder of the result (default: dist)")
    options = parser.parse_args(arguments)
    try:
        print(build_sdist(options.out, options.framework))
    except TrainerError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def build_sdist(out_path: Path, framework: str | None = None) -> Path:
    """Build the source distribution.

    Args:
        out_path: Folder of the result; made if need be.
        framework: TensorFlow's version in the container, 2.15; None: nothing is asked of `tf_keras`.

    Raises:
        RequestError: That is no such version.
        TrainerError: setuptools could not build it; its last lines are in the message.
    """
    if framework is not None and not re.fullmatch(r"2\.\d{1,2}", framework):
        raise RequestError("flag --framework", repr(framework), "TensorFlow's major and minor version, 2.15")
    out_path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage_sources(Path(folder))
        if framework is not None:
            _pin(Path(folder), framework)
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
    """Lay out the distribution: the package, and `pyproject.toml` above it."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "Dockerfile", "requirements*", "overrides.txt")
    shutil.copytree(PACKAGE_PATH, folder_path / "trainer", ignore=ignored)
    shutil.copy(PACKAGE_PATH / "pyproject.toml", folder_path / "pyproject.toml")


def _pin(folder_path: Path, framework: str) -> None:
    """Fit the distribution to a TensorFlow: its `tf_keras`, a protobuf that it can read, a version that says so."""
    project_path, package_path = folder_path / "pyproject.toml", folder_path / "trainer" / "__init__.py"
    requirements = f'"tf-keras=={framework}.*"'
    if int(framework.partition(".")[2]) < _PROTOBUF_5_SINCE:
        requirements += ', "protobuf<5"'
    project_path.write_text(project_path.read_text().replace('"tf-keras"', requirements))
    text = package_path.read_text()
    package_path.write_text(re.sub(r'^(__version__ = "[^"]*)', rf"\1+tf{framework}", text, flags=re.MULTILINE))


if __name__ == "__main__":
    sys.exit(main())

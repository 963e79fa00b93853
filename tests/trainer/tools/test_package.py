"""What is shipped: the source distribution and the image hold all that the trainer reads."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import trainer
from trainer.tools.package import PACKAGE_PATH, build_sdist, main

REPOSITORY_PATH = PACKAGE_PATH.parent

SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4 and later


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked somewhere else."""
    out = tmp_path_factory.mktemp("dist")
    path = build_sdist(out)
    assert path.name == f"trainer-{trainer.__version__}.tar.gz"
    with tarfile.open(path) as archive:
        archive.extractall(out, **SAFELY)  # noqa: S202 - made above
    return out / f"trainer-{trainer.__version__}"


def test_every_module_is_in_the_source_distribution(unpacked: Path) -> None:
    modules = {path.relative_to(PACKAGE_PATH) for path in PACKAGE_PATH.rglob("*.py")}
    assert {path.relative_to(unpacked / "trainer") for path in (unpacked / "trainer").rglob("*.py")} == modules


def test_it_runs_where_there_is_no_checkout(unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text("{}")
    ended = subprocess.run(
        [sys.executable, "-m", "trainer.task", "train", "--request", "request.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "the document has no key 'kind'" in ended.stderr


def test_it_fits_the_tensorflow_of_a_pre_built_container(tmp_path: Path) -> None:
    """`tf_keras` of another version would bring its own TensorFlow along."""
    path = build_sdist(tmp_path, "2.15")
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, **SAFELY)  # noqa: S202 - made above
    name = f"trainer-{trainer.__version__}+tf2.15"
    assert path.name == f"{name}.tar.gz"
    needs = re.findall(r"^Requires-Dist: (.*)$", (tmp_path / name / "PKG-INFO").read_text(), re.MULTILINE)
    assert {"tf-keras==2.15.*", "protobuf<5", "numpy<2"} <= set(needs)
    assert f'__version__ = "{trainer.__version__}+tf2.15"' in (tmp_path / name / "trainer/__init__.py").read_text()


def test_a_framework_that_is_none_is_refused(tmp_path: Path, capsys) -> None:
    assert main(["--framework", "tensorflow-2.15", "--out", str(tmp_path)]) == 2
    assert "flag --framework: 'tensorflow-2.15'" in capsys.readouterr().err


def test_every_module_can_be_read_by_the_python_of_the_pre_built_containers() -> None:
    """Vertex AI's have 3.10."""
    for path in PACKAGE_PATH.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        ast.parse(text, str(path), feature_version=(3, 10))
        assert "file_digest" not in text, f"{path}: hashlib has it since 3.11"
        assert "import UTC" not in text, f"{path}: datetime has it since 3.11"


def test_every_file_that_the_image_copies_is_there() -> None:
    """And the command is the one that the jobs' specs name."""
    dockerfile = (PACKAGE_PATH / "Dockerfile").read_text()
    for lock in {*re.findall(r"REQUIREMENTS=(\S+\.txt)", dockerfile)}:
        for source in re.findall(r"^COPY (\S+) ", dockerfile, re.MULTILINE):
            assert list(REPOSITORY_PATH.glob(source.replace("${REQUIREMENTS}", lock))), (source, lock)
    assert 'ENTRYPOINT ["python", "-m", "trainer.task"]' in dockerfile
    assert "--require-hashes" in dockerfile
    assert re.search(r"^USER trainer$", dockerfile, re.MULTILINE)


def test_the_distribution_needs_nothing_that_the_image_does_not_lock() -> None:
    locked = (PACKAGE_PATH / "requirements.txt").read_text()
    text = (PACKAGE_PATH / "pyproject.toml").read_text()
    names = re.findall(r'^  "([a-z0-9-]+)', text, re.MULTILINE)
    assert len(names) >= 7
    for name in names:
        assert re.search(rf"^{name}==", locked, re.MULTILINE), name

"""A model's own packages: installed by digest, imported before anything else, refused by name."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wheels import write_wheel
from trainer.contract.documents import Package
from trainer.errors import DataError, StorageError
from trainer.packages import import_packages, install_packages
from trainer.storage import Storage
from trainer.storage.disk import Disk

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
ARCHITECTURE = """
import tf_keras
from dataclasses import dataclass
from trainer.models.hyperparameters import Hyperparameters
from trainer.models.registry import Architecture
from trainer.models import dense

ONE_LAYER = Architecture(build=dense.build, hyperparameters=dense.DenseHyperparameters)
"""


class Bucket(Storage):
    """Storage whose `gs://` is a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def download(self, uri: str, path: Path) -> bool:
        """Copy a file of the folder."""
        return Disk().download(uri.replace("gs:/", str(self.folder)), path)


@pytest.fixture
def bucket(tmp_path, monkeypatch) -> Bucket:
    """A bucket `b`, and an environment that is as before afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    (tmp_path / "b").mkdir()
    return Bucket(tmp_path)


def test_wheels_are_installed_and_imported_here_and_in_programs_that_are_started(bucket, capfd) -> None:
    """From the bucket alone: no index is asked."""
    _, digest = write_wheel(bucket.folder / "b", "own_tools", {"own_tools.py": "ANSWER = 42"})
    package = Package(wheel="gs://b/own_tools-1.0-py3-none-any.whl", sha256=(digest,), imports="own_tools")
    install_packages((package,), bucket)
    import_packages((package,))
    assert sys.modules["own_tools"].ANSWER == 42
    started = subprocess.run(
        [sys.executable, "-c", "import own_tools; print(own_tools.ANSWER)"], capture_output=True, text=True, check=True
    )
    assert started.stdout == "42\n"
    assert capfd.readouterr().err == ""


def test_a_name_comes_from_the_index_of_the_image(bucket, tmp_path, monkeypatch) -> None:
    """As pip is told there, by its own variables or file."""
    (tmp_path / "index").mkdir()
    _, digest = write_wheel(tmp_path / "index", "own_words", {"own_words.py": "WORD = 'hello'"}, version="2.1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    install_packages((Package(requirement="own-words==2.1", sha256=("0" * 64, digest)),), bucket)
    assert importlib.import_module("own_words").WORD == "hello"


@pytest.mark.parametrize(
    ("wheel", "tag", "digest", "words"),
    [
        pytest.param("own-1.0-py3-none-any.whl", "py3-none-any", "0" * 64, r"its SHA-256 is [1-9a-f]", id="digest"),
        pytest.param("gone-1.0-py3-none-any.whl", "py3-none-any", None, "there is no gs://b/gone-1.0", id="not-there"),
        pytest.param("own-1.0-cp27-none-any.whl", "cp27-none-any", None, "does not fit Python 3", id="other-python"),
    ],
)
def test_a_wheel_that_will_not_do_is_refused_by_name(bucket, wheel, tag, digest, words) -> None:
    _, right = write_wheel(bucket.folder / "b", "own", {"own.py": ""}, tag=tag)
    with pytest.raises(DataError, match=words) as refused:
        install_packages((Package(wheel=f"gs://b/{wheel}", sha256=(digest or right,)),), bucket)
    assert wheel in str(refused.value)


@pytest.mark.parametrize(
    ("links", "error", "words"),
    [
        pytest.param(
            "1", DataError, "training.packages, own==1.0: the package index has no wheel of it", id="not-there"
        ),
        pytest.param("0", StorageError, "own==1.0: the package index did not answer", id="no-answer"),
    ],
)
def test_an_index_without_the_package_and_one_that_is_away(bucket, monkeypatch, links, error, words) -> None:
    """The first is nothing that a repetition mends; the second may be."""
    monkeypatch.setenv("PIP_NO_INDEX", links)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(error, match=words):
        install_packages((Package(requirement="own==1.0", sha256=("0" * 64,)),), bucket)


def test_a_module_that_cannot_be_imported_is_named(bucket) -> None:
    """Nothing that a package depends on is installed with it."""
    _, digest = write_wheel(bucket.folder / "b", "needy", {"needy.py": "import what_it_needs"})
    package = Package(wheel="gs://b/needy-1.0-py3-none-any.whl", sha256=(digest,), imports="needy")
    install_packages((package,), bucket)
    with pytest.raises(DataError, match=r"No module named 'what_it_needs'.*name what is missing too"):
        import_packages((package,))


def test_an_architecture_comes_from_a_package(exported, tmp_path) -> None:
    """By an entry point: the training, in a process of its own, knows the name only from there."""
    _, digest = write_wheel(
        tmp_path,
        "own_layers",
        {
            "own_layers.py": ARCHITECTURE,
            "entry_points.txt": "[trainer.architectures]\none_layer = own_layers:ONE_LAYER\n",
        },
    )
    packages = [{"wheel": "gs://b/own_layers-1.0-py3-none-any.whl", "sha256": [digest], "imports": "own_layers"}]
    document = exported.train_json(out=str(tmp_path / "out"))
    document["training"] |= {"model": "one_layer", "hyperparameters": {}, "packages": packages, "epochs": 1}
    program = (
        "import sys; from trainer.storage import Storage; from trainer.storage.disk import Disk;"
        "Storage.download = lambda self, uri, path: Disk().download(uri.replace('gs://b', sys.argv[1]), path);"
        "from trainer.task import main; sys.exit(main(sys.argv[2:]))"
    )
    request = exported.write("train_packages.json", document)
    arguments = ["train", "--request", request, "--job-dir", str(tmp_path / "job")]
    trained = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), *arguments],
        cwd=REPOSITORY_PATH,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert trained.returncode == 0, trained.stderr
    assert "packages: own_layers-1.0-py3-none-any.whl in " in trained.stdout
    assert json.loads((tmp_path / "job/report.json").read_bytes())["epochs_run"] == 1

"""`up --config`: bucket, variables and images of whoever uses the local cloud; without it, nobody's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from localcloud.environment.config import Config, read_config, remember_config, remembered_config
from localcloud.environment.variables import client_environment, google_environment
from localcloud.errors import LocalCloudError
from localcloud.state import Settings, State
from localcloud.vertex.processes.images import Images

FILE = {
    "bucket": "mine",
    "variables": {"MY_FOLDER": "gs://$bucket/$project/$region", "MY_PRICE": "5 $ or ${more}"},
    "environments": {"mine": {"python": "venv/bin/python", "variable": "MY_PYTHON"}},
    "images": [
        {
            "pattern": "*/mine:*",
            "use": "training",
            "environment": "mine",
            "import_roots": ["..", "code"],
            "entrypoint": ["python", "./code/main.py", "--fast"],
        }
    ],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A config file in a folder of its own."""
    made = tmp_path / "project" / "cloud.json"
    made.parent.mkdir()
    made.write_text(json.dumps(FILE))
    return made


@pytest.fixture
def state(tmp_path: Path) -> State:
    """A state directory of a cloud that was started."""
    made = State(tmp_path / "state")
    made.path.mkdir()
    made.write_settings(Settings(bucket="mine", ports={"gateway": 1}))
    return made


def test_variables_reach_clients_and_not_containers(state: State, path: Path) -> None:
    """With the cloud's names in them; other dollars stay."""
    remember_config(state, path)
    client = client_environment(state.path)
    assert client["MY_FOLDER"] == "gs://mine/local-project/us-central1"
    assert client["MY_PRICE"] == "5 $ or ${more}"
    assert set(client) - set(google_environment(state)) == {"MY_FOLDER", "MY_PRICE"}


def test_paths_start_from_the_file(state: State, path: Path) -> None:
    """Also once it is remembered elsewhere, and the file is gone."""
    remember_config(state, path)
    path.unlink()
    found = Images(state.config_path).find_image("host/mine:1", "training")
    assert found is not None
    assert found.python == path.parent / "venv/bin/python"
    assert found.import_roots == (path.parent.parent, path.parent / "code")
    assert found.entrypoint == ("python", str(path.parent / "code/main.py"), "--fast")


def test_nothing_is_remembered_of_no_file(state: State) -> None:
    """Then a client gets Google's variables alone."""
    assert remembered_config(state) == Config()
    assert client_environment(state.path).keys() == google_environment(state).keys()


def test_a_variable_names_another_python(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without changing the file."""
    monkeypatch.setenv("MY_PYTHON", "/other/python")
    found = Images(path).find_image("host/mine:1", "training")
    assert found is not None
    assert found.python == Path("/other/python")


def test_images_without_an_environment_run_in_the_clouds_own(path: Path) -> None:
    """Python's and Google's own containers, until somebody names a Python with TensorFlow."""
    for uri in ("python:3.11", "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-15.py310:latest"):
        found = Images().find_image(uri, "training")
        assert found is not None
        assert found.python == Path(sys.executable)
    path.write_text(json.dumps({"environments": {"tensorflow": {"python": "tf/python"}}}))
    found = Images(path).find_image("us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-15.py310:latest", "training")
    assert found is not None
    assert found.python == path.parent / "tf/python"


def test_the_first_file_goes_first(path: Path, tmp_path: Path) -> None:
    """One in the state directory overrules the config."""
    mine = {"environments": {"own": {"python": "/mine"}}, "images": [{**FILE["images"][0], "environment": "own"}]}
    (tmp_path / "images.json").write_text(json.dumps(mine))
    found = Images(tmp_path / "images.json", path).find_image("host/mine:1", "training")
    assert found is not None
    assert found.python == Path("/mine")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("{", "Expecting property name"),
        ("[]", "must be a mapping"),
        ('{"buckets": "x"}', "buckets"),
        ('{"images": 1}', "not iterable"),
    ],
    ids=["missing", "no-json", "no-object", "unknown-key", "no-table"],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    """With what is wrong, and the keys that there are."""
    path = tmp_path / "cloud.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(LocalCloudError, match=words) as caught:
        read_config(path)
    assert str(caught.value).startswith(str(path))
    assert "bucket, variables, environments, images" in str(caught.value)


def test_an_older_state_directory_is_read(state: State) -> None:
    """It has a key that this local cloud does not know any more."""
    document = json.loads(state.settings_path.read_text())
    state.settings_path.write_text(json.dumps({**document, "dataset": "old"}))
    assert state.read_settings().bucket == "mine"

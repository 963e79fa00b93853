"""What the kit says of the contract is what the contract says, and what it refuses."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from trainer_kit import job
from trainer_kit.data import MOST_CATEGORIES, Encoder
from trainer_kit.errors import RequestError
from trainer_kit.model import StoredModel
from trainer_kit.server import MODEL_DIGEST, answer, fetch_model
from trainer_kit.storage import Storage, digest_folder

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("kind", "name"), [("train_request", "TRAIN_KEYS"), ("score_request", "SCORE_KEYS")])
def test_the_keys_of_requests_are_those_of_the_schema(kind: str, name: str) -> None:
    """A new key of a request is known here too, or the examples' images refuse every request."""
    schema = json.loads(
        (REPOSITORY / "plugins" / "retraining" / "package_data" / "contracts" / f"{kind}.schema.json").read_bytes()
    )
    assert getattr(job, name) == set(schema["properties"])


def test_what_training_did_not_see_is_missing() -> None:
    """So are rare categories of very many, and NULL; whole numbers are categories by their text."""
    features = [{"name": "zone", "kind": "categorical"}, {"name": "weight", "kind": "numeric", "missing": "zero"}]
    many = [b"common", b"common", *(f"rare {number:03d}".encode() for number in range(MOST_CATEGORIES + 5))]
    encoder = Encoder.fit(features, {"zone": many, "weight": [1.0] * len(many)})
    assert len(encoder.categories["zone"]) == MOST_CATEGORIES
    matrix = encoder.encode({"zone": [b"common", b"rare 204", b"new", None], "weight": [1, True, 2.5, None]})
    np.testing.assert_array_equal(matrix, np.array([[0, 1], [np.nan, 1], [np.nan, 2.5], [np.nan, np.nan]], np.float32))
    whole = Encoder.fit([features[0]], {"zone": [7, 7, -1]})
    np.testing.assert_array_equal(whole.encode({"zone": [-1, 7, 8]}), np.array([[1], [0], [np.nan]], np.float32))


class Adding:
    """A framework whose answer is the sum of the features, NaN as 0."""

    packages = {"adding": "1"}
    hyperparameters: dict[str, float] = {}

    def predict(self, _model: object, matrix: np.ndarray, _classes: int | None) -> np.ndarray:
        """Answer."""
        return np.nansum(matrix, axis=1)


FEATURES = [{"name": "zone", "kind": "categorical"}, {"name": "weight", "kind": "numeric"}]


@pytest.fixture
def stored() -> StoredModel:
    """A model of two features."""
    encoder = Encoder(features=FEATURES, categories={"zone": ["north", "south"]})
    return StoredModel(framework=Adding(), model=None, encoder=encoder, label={"kind": "regression"})


def test_the_server_answers_instances(stored) -> None:
    """Texts, numbers, null; further keys are left alone."""
    asked = [{"zone": "south", "weight": 2}, {"zone": None, "weight": None, "more": 1}, {"zone": "new", "weight": 0.5}]
    assert answer(stored, json.dumps({"instances": asked}).encode()) == [3.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("body", "saying"),
    [
        pytest.param("{}", "instances", id="no-instances"),
        pytest.param("[]", "instances", id="list"),
        pytest.param('{"instances": []}', "instances", id="empty"),
        pytest.param('{"instances": [1]}', "instances", id="no-object"),
        pytest.param('{"instances": [{"zone": "a"}]}', "without 'weight'", id="feature-missing"),
        pytest.param('{"instances": [{"zone": "a", "weight": "2"}]}', "expected a number", id="text-for-number"),
        pytest.param("not json", "Expecting value", id="no-json"),
        pytest.param('{"instances": [{"zone": "a", "weight": NaN}]}', "not finite", id="nan"),
        pytest.param("[" * 10_000, "levels", id="deep"),
    ],
)
def test_the_server_refuses_by_name(stored, body, saying) -> None:
    """What becomes a 400."""
    with pytest.raises(ValueError, match=saying):
        answer(stored, body.encode())


@pytest.mark.parametrize(
    ("changes", "saying"),
    [
        pytest.param({"trial_metric": "val_loss"}, "takes no trials", id="trial"),
        pytest.param({"auxiliary_labels": [{"name": "x"}]}, "learns one label", id="auxiliary"),
        pytest.param({"key_input": True}, "features alone", id="key as an input"),
        pytest.param({"label": {"name": "y", "kind": "regression", "loss": "huber"}}, "Expected mse", id="loss"),
        pytest.param({"label": {"name": "y", "kind": "binary", "classes": ["no", "yes"]}}, "'y'.*texts", id="names"),
        pytest.param({"initial": {"version_id": "3"}}, "champion's weights", id="warm start"),
        pytest.param({"crosses": [{"columns": ["a", "b"]}]}, "features crossed", id="cross"),
        pytest.param({"features": [{"name": "a", "transform": "log1p"}]}, "'a'.*transform", id="transform"),
        pytest.param({"features": [{"name": "a", "hash_buckets": 9}]}, "'a'.*hash_buckets", id="hashes"),
    ],
)
def test_what_is_not_learnt_is_refused_by_name(changes, saying) -> None:
    """Before anything is read."""
    request = {"label": {"name": "y", "kind": "binary"}, "features": [], "training": {"hyperparameters": {}}, **changes}
    with pytest.raises(RequestError, match=saying):
        job.require_trainable(Adding(), request)


def test_weights_are_numbers_from_0_on() -> None:
    assert job.weights_of("w", {"w": [0, 2.5]}).tolist() == [0.0, 2.5]
    with pytest.raises(RequestError, match=r"weight 'w': 3 are missing or wrong"):
        job.weights_of("w", {"w": [1.0, None, -1.0, float("inf")]})


class Reported:
    """Storage that lists names as a bucket may have them."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def list_blobs(self, _bucket: str, prefix: str) -> list[SimpleNamespace]:
        """List them below the prefix."""
        return [SimpleNamespace(name=f"{prefix}{name}") for name in self._names]


@pytest.mark.parametrize("name", ["../outside", "//etc/outside", "a/../../outside", "./x", "a//b", "a\0b"])
def test_no_object_is_written_outside_the_folder(name, tmp_path, monkeypatch) -> None:
    """Nor is any other of the model: the names are looked at before the first is fetched."""
    storage = Storage()
    monkeypatch.setattr(storage, "_client", Reported(["trainer.json", name]))
    monkeypatch.setattr(storage, "read", lambda _uri: b"written")
    folder = tmp_path / "model"
    with pytest.raises(RequestError, match="no place below a folder"):
        storage.download_folder("gs://bucket/model", folder)
    assert list(tmp_path.rglob("*")) == []


class Pickled(Adding):
    """A framework whose files are code, as joblib's are."""

    def save(self, model: object, folder: Path) -> None:
        """Write it."""
        (folder / "model.joblib").write_bytes(pickle.dumps(model))

    def load(self, folder: Path) -> object:
        """Read it."""
        return pickle.loads((folder / "model.joblib").read_bytes())  # noqa: S301 - what the test is about


class Trap:
    """What runs when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


@pytest.fixture
def exchanged(stored, tmp_path) -> tuple[Path, str, Path]:
    """Folder of a model that was exchanged after its training, the digest of its report, and what the new one does."""
    folder, trap = tmp_path / "model", tmp_path / "it-ran"
    folder.mkdir()
    StoredModel(framework=Pickled(), model=None, encoder=stored.encoder, label=stored.label).save(folder)
    digest = digest_folder(folder)
    Pickled().save(Trap(trap), folder)
    return folder, digest, trap


def test_an_exchanged_model_is_not_loaded_to_be_scored(exchanged, tmp_path) -> None:
    """A score request names the digest of the training report: files of another one are code that nobody trained."""
    folder, digest, trap = exchanged
    request = {"schema_version": 1, "kind": "score_request", "model": "m", "run_key": "r", "key": "id"}
    request |= {"manifest_uri": str(tmp_path / "manifest.json"), "splits": ["test"], "label": {"kind": "binary"}}
    request["models"] = [
        {"model_uri": str(folder), "scores_uri": str(tmp_path / "scores.json"), "model_digest": digest}
    ]
    (tmp_path / "request.json").write_text(json.dumps(request))
    (tmp_path / "manifest.json").write_text(json.dumps({"schema_version": 1, "kind": "manifest", "schema": []}))
    with pytest.raises(RequestError, match=rf"written again since its training.*{digest}"):
        job.score(Pickled(), str(tmp_path / "request.json"), Storage())
    assert not trap.exists()
    assert not (tmp_path / "scores.json").exists()


def test_an_exchanged_model_is_not_served(exchanged) -> None:
    """The registry keeps the digest with the version, and the container proves the files before it loads them."""
    folder, digest, trap = exchanged
    with pytest.raises(RequestError, match="written again since its training"):
        fetch_model(Pickled(), {"AIP_STORAGE_URI": str(folder), MODEL_DIGEST: digest})
    assert not trap.exists()


def test_the_registry_and_the_server_call_the_digest_the_same() -> None:
    source = REPOSITORY / "plugins" / "retraining" / "core" / "spec" / "deployment.py"
    assert f'MODEL_DIGEST_VARIABLE = "{MODEL_DIGEST}"' in source.read_text()

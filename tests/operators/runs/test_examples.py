"""Every example is a valid model, and a whole night of it makes a champion that answers."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud import storage

from retraining.__main__ import main
from retraining.core.catalog.capabilities import load_capabilities
from retraining.core.spec.files import load_query, load_spec
from retraining.core.spec.model import ModelSpec
from retraining.operators.planning import run_plan
from tests.support.scenes.examples import EXAMPLES, ROOT, copy_example, make_include
from tests.support.scenes.whole_run import run_whole

TRAINER_PYTHON = ROOT / ".venv" / "trainer" / "bin" / "python"
WEIGHTS = "modules/mobilenetv3_small_notop.h5"
OTHERS = {
    "dense": ("smallest", {}, 0.55),
    "linear": ("smallest", {}, 0.55),
    "random_forest": ("smallest", {}, 0.55),
    "deep_cross": ("smallest", {"learning_rate": 0.003}, 0.55),
    "lstm": ("sequences", {"learning_rate": 0.005, "units": [16]}, 0.6),
    "conv1d": ("sequences", {"learning_rate": 0.002, "filters": [16, 16, 16], "causal": True}, 0.6),
    "transformer": ("sequences", {"learning_rate": 0.002, "blocks": 1, "heads": 2, "width": 16}, 0.6),
    "transfer": ("images", {"backbone": "mobilenetv3_small", "weights": f"gs://local-retraining/{WEIGHTS}"}, 0.0),
}
"""The architectures that no example has: the example with features for each, hyperparameters, and the least AUC.

Nothing is learned from a frozen backbone of random numbers.
"""
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if (path / "models").is_dir())


@pytest.fixture
def examples_include(tmp_path: Path) -> Path:
    """A copy of `include` as DAGs read it, without its models."""
    return make_include(tmp_path)


def spec_of(name: str, include: Path) -> ModelSpec:
    """The example's spec, once its files lie where the page says."""
    spec = load_spec(copy_example(name, include))
    assert load_query(spec, include)
    return spec


def run_script(python: str, script: str, uri: str) -> None:
    """As the example's page says."""
    subprocess.run([python, str(EXAMPLES / script), uri], check=True, timeout=120)


def make_weights(path: Path) -> None:
    """Write a backbone's weights, drawn from random numbers: nobody has Keras's own file here."""
    code = (
        f"from trainer.models.backbones import *; BACKBONES['mobilenetv3_small'].build_network().save_weights('{path}')"
    )
    subprocess.run([str(TRAINER_PYTHON), "-c", code], cwd=ROOT, check=True, timeout=120)


def with_architecture(name: str, include: Path) -> ModelSpec:
    """An example's spec with another architecture, all of it in its YAML file."""
    example, hyperparameters, _ = OTHERS[name]
    spec = spec_of(example, include)
    path = include / "models" / f"{spec.name}.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    values["name"] = f"{spec.name}_{name}"  # each has no champion yet
    values["training"] |= {"model": name, "hyperparameters": hyperparameters}
    path = path.rename(path.with_stem(values["name"]))
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return load_spec(path)


def test_the_page_lists_every_example() -> None:
    """A row per folder, with the model's file."""
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in NAMES:
        (path,) = (EXAMPLES / name / "models").glob("*.yaml")
        assert f"| [{name}]({path.relative_to(EXAMPLES)}) |" in page


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid(name: str, examples_include: Path) -> None:
    """As `make check-models` says."""
    spec_of(name, examples_include)
    assert main(["check-models", f"--include={examples_include}"]) == 0


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_a_night_of_it_makes_a_champion(name: str, examples_include: Path, local_cloud, make_run, monkeypatch) -> None:
    """Export to endpoint, on the demonstration's tables."""
    local_cloud.seed()
    if name == "text":
        run_script(str(TRAINER_PYTHON), "text/make_module.py", f"gs://{local_cloud.bucket}/modules/words")
    if name == "files":
        run_script(sys.executable, "files/make_files.py", f"gs://{local_cloud.bucket}/files/flights")
    if name == "objects":
        run_script(sys.executable, "objects/make_objects.py", f"gs://{local_cloud.bucket}/photos/digits")
    monkeypatch.setattr(run_plan, "include_path", lambda: examples_include)
    found = night_of(spec_of(name, examples_include), make_run)
    assert found["decision"]["verdict"] == "promote", found["decision"]["words"]
    assert found["deployment"]["deployed"]
    assert ("tuning" in found) == (name == "tuning")
    auxiliary = {label["name"] for label in found["plan"]["spec"]["auxiliary_labels"]}
    assert set(found["evaluation"]["challenger"]["auxiliary"]) == auxiliary


def night_of(spec: ModelSpec, make_run) -> dict[str, Any]:
    """The documents of a night."""
    night = datetime(2013, 11, 20, 3, tzinfo=UTC)
    return run_whole(spec, make_run(run_id=f"manual__{spec.name}", logical_date=night))


def test_every_architecture_has_a_night() -> None:
    """An example, or one of the nights below."""
    paths = [next((EXAMPLES / name / "models").glob("*.yaml")) for name in NAMES]
    shown = {load_spec(path).training.model for path in paths}
    assert set(OTHERS) == set(load_capabilities().architectures) - shown


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", OTHERS)
def test_a_night_of_each_other_architecture(
    name: str, examples_include: Path, local_cloud, make_run, monkeypatch, tmp_path_factory
) -> None:
    """From an example's YAML file with that architecture: exported, trained, judged and registered."""
    local_cloud.seed()
    if name == "transfer":
        weights = tmp_path_factory.mktemp("weights") / "notop.h5"
        make_weights(weights)
        storage.Client().bucket(local_cloud.bucket).blob(WEIGHTS).upload_from_filename(str(weights))
    spec = with_architecture(name, examples_include)
    monkeypatch.setattr(run_plan, "include_path", lambda: examples_include)
    found = night_of(spec, make_run)
    assert found["plan"]["spec"]["training"]["model"] == name
    assert found["evaluation"]["challenger"]["metrics"]["auc"] >= OTHERS[name][2]
    assert found["registration"]["version_id"] == "1"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_nights_of_three_frameworks_meet(examples_include: Path, local_cloud, make_run, monkeypatch) -> None:
    """Scikit-learn's champion meets XGBoost's challenger and TensorFlow's: all are judged on the same rows."""
    local_cloud.seed()
    spec = spec_of("sklearn", examples_include)
    monkeypatch.setattr(run_plan, "include_path", lambda: examples_include)
    path = examples_include / "models" / f"{spec.name}.yaml"
    first = path.read_text(encoding="utf-8")
    dense = "  model: dense\n  epochs: 1\n  hyperparameters: {learning_rate: 0.0001}\n"
    changes = {
        "xgboost": first.replace("sklearn-trainer", "xgboost-trainer").replace("max_leaf_nodes: 15", "max_depth: 2"),
        "tensorflow": re.sub(r"(?s)  model: boosted_trees.*?models: own}\n", dense, first).partition("deployment:")[0],
    }
    seen = {}
    for day, (framework, text) in enumerate({"sklearn": first, **changes}.items(), start=20):
        path.write_text(text, encoding="utf-8")
        made = make_run(run_id=f"manual__{framework}", logical_date=datetime(2013, 11, day, 3, tzinfo=UTC))
        seen[framework] = run_whole(load_spec(path), made, last="decide")
        if framework == "sklearn":
            seen[framework] = run_whole(load_spec(path), made)
    assert seen["sklearn"]["evaluation"]["champion"] is None
    for framework in changes:
        evaluation, request = seen[framework]["evaluation"], seen[framework]["evaluate_request"]
        assert evaluation["champion_skipped"] is None
        assert evaluation["difference"]["metric"] == "auc"
        assert evaluation["champion"]["metrics"]["auc"] > 0.55
        assert request["champion"]["scores_uri"].endswith("/scores/champion/scores.json")
        assert (request["challenger"]["scores_uri"] is None) == (framework == "tensorflow")

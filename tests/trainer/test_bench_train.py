"""`make bench-train` on a few flights: the examples are the demo's, and figures are what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench import train_files, train_runs, train_step
from bench.train import render
from trainer.contract.documents import TrainRequest
from trainer.contract.reading import parse_document
from trainer.tools.package import PACKAGE_PATH

SAID = """\
train: 1000 examples, 200 to validate, strategy one_device, 1 replicas
train: first steps 6.13 s after the start (imports 3.02, read 1.31, first call 1.33)
epoch 1/3 step 352/479 loss=0.4312 999 examples/s 0:23 left
epoch 1/3 loss=0.4291 val_auc=0.7031 val_loss=0.4301 10 examples/s
epoch 2/3 loss=0.4291 val_auc=0.7031 val_loss=0.4301 30 examples/s
epoch 3/3 loss=0.4291 val_auc=0.7031 val_loss=0.4301 50 examples/s
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few flights."""
    path = tmp_path_factory.mktemp("bench") / "run"
    try:
        assert train_files.write_training_files(path, 4096) == 4096
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return path


def test_the_model_is_the_demos(run: Path) -> None:
    """Features, architecture and batch, as the spec has them."""
    spec = (PACKAGE_PATH.parent / "include/models/flight_delays.yaml").read_text()  # no YAML reader in this environment
    path = train_files.write_request(run, "as-the-demo", epochs=1)
    request = parse_document(TrainRequest, path.read_bytes(), "request")
    found = {
        f"{{name: {feature.name}, kind: {feature.kind}"
        + (f", embedding_dim: {feature.embedding_dim}}}" if feature.kind == "categorical" else "}")
        for feature in request.features
    }
    assert found == set(re.findall(r"^  - (\{name: .*\})$", spec.partition("features:")[2], re.MULTILINE))
    values = request.training.hyperparameters
    wanted = f"{{learning_rate: {values['learning_rate']}, dropout: {values['dropout']}, hidden_units: [16]}}"
    assert f"  hyperparameters: {wanted}" in spec
    assert values["hidden_units"] == (16,)
    assert f"  model: {request.training.model}\n" in spec
    assert f"  batch_size: {request.training.batch_size} " in spec
    assert f"label: {{name: {request.label.name}, kind: {request.label.kind}}}" in spec


def test_labels_and_derived_columns_are_those_of_the_query(run: Path) -> None:
    """The year has 327,346 flights that arrived, and 77,630 of them more than 15 minutes late."""
    examples = train_files.flights_examples()
    assert examples.num_rows == 327_346
    assert sum(examples["arrived_late"].to_pylist()) == 77_630
    first = next(
        row
        for row in examples.to_pylist()
        if (row["carrier"], row["origin"], row["dest"], row["departure_minute"]) == ("UA", "EWR", "IAH", 5 * 60 + 15)
    )
    assert first["distance"] == 1400
    assert 1 <= first["day_of_week"] <= 7


def test_steps_are_timed_by_feed(run: Path, capsys) -> None:
    path = train_files.write_request(run, "steps", epochs=1)
    train_step.main(str(path), 1, 1)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["batch_size"], set(found["seconds_per_step"])) == (512, {"files", "cache", "memory", "alone"})
    assert all(len(taken) == 1 and taken[0] > 0 for taken in found["seconds_per_step"].values())


def test_the_rate_is_that_of_the_epochs_after_the_first() -> None:
    assert train_runs.rate_of(SAID.splitlines()) == 40


def test_a_cluster_has_one_chief() -> None:
    chief, worker = train_runs.lockstep(2)
    assert chief["cluster"] == worker["cluster"]
    assert {role: len(hosts) for role, hosts in chief["cluster"].items()} == {"chief": 1, "worker": 1}
    assert (chief["task"], worker["task"]) == ({"type": "chief", "index": 0}, {"type": "worker", "index": 0})


def test_the_table_says_what_was_measured() -> None:
    taken = {"files": [0.0105], "cache": [0.0102], "memory": [0.01], "alone": [0.001]}
    row = {"model": "heavy", "parameters": 1000, "batch_size": 512, "seconds_per_step": taken}
    scaling = {
        "examples_per_s": {"one": [100.0], "two_apart": [160.0], "two_workers": [120.0]},
        "ideal": 200,
        "exchange_share": 0.25,
    }
    text = render(
        {
            "reader": [{**row, "slower": {"files": 0.05, "cache": 0.02}}],
            "start": {"total": 6.5, "interpreter": 0.3, "imports": 3.0},
            "scaling": scaling,
        }
    )
    assert "+2.0%" in text
    assert "first steps 6.5 s after the process was started: interpreter 0.3, imports 3.0" in text
    assert "two workers in lockstep" in text
    assert "60%" in text
    assert "exchange of gradients and waiting: 25.0% of a step of two workers" in text

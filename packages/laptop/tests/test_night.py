"""What the local cloud is told, and what a person reads of a night."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localcloud.environment.config import read_config
from retraining_laptop.night import cloud_config
from retraining_laptop.summary import answer_lines, model_lines

ROOT = Path(__file__).resolve().parents[3]


def test_the_local_cloud_takes_its_config(tmp_path: Path) -> None:
    """With the interpreter as it was named, and what this checkout's demonstration has, but for its own images."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(cloud_config("1.2.3", tmp_path / "python", tmp_path / "include")))
    config = read_config(path)
    assert config.environments["trainer"]["python"] == str(tmp_path / "python")
    shipped = read_config(ROOT / "dev" / "demo" / "localcloud.json")
    varying = {"RETRAINING_TRAINER_IMAGE": "…:1.2.3", "RETRAINING_INCLUDE": str(tmp_path / "include")}
    same = {name: value for name, value in config.variables.items() if name not in varying}
    assert same == {name: value for name, value in shipped.variables.items() if name not in varying}
    assert config.variables["RETRAINING_TRAINER_IMAGE"].endswith("/trainer:1.2.3")


@pytest.mark.parametrize(
    ("metric", "measured", "lines"),
    [
        ("mae", {"mae": 1.5, "rmse": 2.0, "auc": None}, ["mae", "rmse"]),
        ("mcc", {"mcc": 0.5, "auc": 0.7, "log_loss": 0.4}, ["mcc", "auc", "log_loss"]),
    ],
)
def test_each_label_has_its_own_metrics(metric: str, measured: dict[str, float | None], lines: list[str]) -> None:
    """The one that decides among them; no line of what a label has not."""
    documents = {
        "plan": {"spec": {"evaluation": {"metric": metric}}},
        "evaluation": {"challenger": {"metrics": measured}, "champion": None, "baseline": None},
        "decision": {"words": "promoted"},
    }
    told = model_lines(documents)
    assert sorted(line.split()[0] for line in told[1:-1]) == sorted(lines)
    assert told[-1] == "decision   promoted"


@pytest.mark.parametrize(
    ("prediction", "shown"), [(0.25, "0.2500"), ({"class": "a", "scores": [0.5]}, '{"class": "a", "scores": [0.5]}')]
)
def test_an_answer_is_told_as_it_came(prediction: object, shown: str) -> None:
    """A number in four digits, anything else as JSON."""
    answer = {"predictions": [prediction], "modelVersionId": "3"}
    assert answer_lines({"x": 1}, answer, "it answers {}")[1] == f"           -> it answers {shown}, says version 3"

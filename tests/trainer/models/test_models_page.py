"""docs/models.md is true: every architecture and hyperparameter stands in its tables, and its example works."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from trainer.models import registry
from trainer.models.dense import DenseHyperparameters

PAGE = Path(__file__).resolve().parents[3] / "docs" / "models.md"
TEXT = PAGE.read_text(encoding="utf-8")


def rows(columns: int) -> list[list[str]]:
    """Cells of the tables with so many columns, without heads and rules."""
    lines = [line for line in TEXT.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if len(row) == columns]


def hyperparameters(name: str) -> dict[str, str]:
    """What is an architecture's own, with the default as JSON has it."""
    shared = {field.name for field in dataclasses.fields(DenseHyperparameters)}
    known = registry.ARCHITECTURES[name].hyperparameters()
    return {key: written(value) for key, value in vars(known).items() if key not in shared}


def written(value: object) -> str:
    if isinstance(value, tuple):
        return str(list(value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_architecture_stands_in_the_table() -> None:
    listed = {row[0].strip("`"): row[1] for row in rows(3)}
    for name, known in registry.ARCHITECTURES.items():
        assert (", ".join(known.reads) or "numbers, categories") == listed[name]


def test_every_hyperparameter_stands_in_a_table_with_its_default() -> None:
    common = {row[0].strip("`"): row[1] for row in rows(3)}
    for field in dataclasses.fields(DenseHyperparameters):
        assert common[field.name] == written(field.default)
    found: dict[str, dict[str, str]] = {}
    for architectures, name, default, _ in rows(4):
        for architecture in re.findall(r"`(\w+)`", architectures):
            found.setdefault(architecture, {})[name.strip("`")] = default
    assert set(found) == {name for name in registry.ARCHITECTURES if hyperparameters(name)}
    for architecture, listed in found.items():
        own = hyperparameters(architecture)
        assert set(listed) == set(own)
        for name, default in own.items():
            assert default in ("", "[]") or listed[name] == default, (architecture, name)


def imported(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The module of a text."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


def test_the_example_is_an_architecture(exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file and its line are taken from the page; it trains, is stored, and scores."""
    file, line = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    towers = imported(tmp_path / "towers.py", file, monkeypatch)
    monkeypatch.setattr(registry, "towers", towers, raising=False)
    entry = imported(
        tmp_path / "towers_line.py", f"from trainer.models.registry import *\nENTRY = {{{line}}}\n", monkeypatch
    )
    monkeypatch.setitem(registry.ARCHITECTURES, "towers", entry.ENTRY["towers"])
    wanted = {"model": "towers", "hyperparameters": {"width": 8, "learning_rate": 0.01}}
    report = exported.train(exported.train_request_in(tmp_path, training=wanted))
    assert report.hyperparameters == {"height": 2, "width": 8, "learning_rate": 0.01, "weight_decay": 0.0}
    assert report.metrics["val_auc"] > 0.7
    served = tf.saved_model.load(report.model_uri).signatures["serving_default"]
    golden = report.golden[0]
    instance = {
        name: tf.constant([value], tf.string if isinstance(value, str) else tf.float32)
        for name, value in golden.instance.items()
    }
    np.testing.assert_allclose(served(**instance)["score"], [golden.prediction], atol=1e-6)

"""Days are clusters: what is alike on one day says less than as many rows, and the interval knows."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.conftest import Run
from trainer.contract.documents import EvaluateRequest, Evaluation
from trainer.contract.reading import parse_document
from trainer.evaluation.days import find_days
from trainer.evaluation.job import evaluate
from trainer.input import open_source
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics

ROWS, RUNS = 100, 400
"""Of a day, and simulated comparisons."""


def share_promoted(days: int, effect: float, *, by_day: bool) -> float:
    """Return how often one of two equally good models is promoted.

    Args:
        days: Test days.
        effect: Deviation of what a day adds to the difference, in standard errors of a day's rows.
        by_day: Whether days are drawn, or rows.
    """
    of_row, promoted = np.repeat(np.arange(days), ROWS), 0
    for seed in range(RUNS):
        random = np.random.default_rng(seed)
        errors = 20 + random.normal(size=(2, days * ROWS))
        errors[0] += effect * np.sqrt(2 / ROWS) * random.normal(size=days)[of_row]
        pair = Pair(labels=np.zeros(days * ROWS), challenger=errors[0], champion=errors[1])
        drawn = Resampling(samples=100, seed=seed, confidence=0.95, groups=of_row if by_day else None, unit="days")
        promoted += bootstrap_metrics(pair, ["mae"], drawn)["mae"].high < 0
    return promoted / RUNS


def test_rows_promise_too_much_where_days_have_effects() -> None:
    """The field's figures: effects that double the true error promote 18 % by rows, by days what is promised."""
    assert share_promoted(14, np.sqrt(3), by_day=False) > 0.12
    assert share_promoted(14, np.sqrt(3.5**2 - 1), by_day=False) > 0.22
    for effect in (0, np.sqrt(3), np.sqrt(3.5**2 - 1)):
        assert share_promoted(14, effect, by_day=True) <= 0.05


@pytest.fixture(scope="module")
def models(exported: Run, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two trained models."""
    uris = []
    for rate in (0.01, 1e-4):
        folder = tmp_path_factory.mktemp("model")
        training = {"epochs": 1, "model": "dense", "hyperparameters": {"learning_rate": rate, "hidden_units": [8]}}
        uris.append(exported.train(exported.train_request_in(folder, training=training)).model_uri)
    return uris


@pytest.fixture
def compare(exported: Run, models: list[str], tmp_path: Path) -> Callable[..., Evaluation]:
    """Compares the two, anew each time."""

    def compare_models(**changes: Any) -> Evaluation:
        uri = tmp_path / "evaluation.json"
        uri.unlink(missing_ok=True)
        request = exported.evaluate_json(*models, evaluation_uri=str(uri), **changes)
        request["challenger"]["report_uri"] = str(Path(models[0]).parent / "report.json")
        document = parse_document(EvaluateRequest, json.dumps(request).encode(), "evaluate_request")
        manifest = exported.manifest()
        with open_source(manifest, manifest.splits, exported.storage) as source:
            return evaluate(document, manifest, source, exported.storage)

    return compare_models


def test_each_example_has_the_day_of_its_file(exported: Run) -> None:
    """Whatever the sequence in which the split was read."""
    manifest = exported.manifest()
    tested = exported.rows.to_pylist()
    days = {row["parcel_id"]: row["span"] for row in tested if str(row["span"]) in _days(manifest)}
    keys = np.array([key.encode() for key in reversed(days)], object)
    found = find_days(manifest.splits["test"], "parcel_id", keys, exported.storage)
    assert found.names == _days(manifest)
    named = [datetime.date.fromisoformat(found.names[day]) for day in found.of_row]
    assert named == list(reversed(days.values()))


def _days(manifest: Any) -> tuple[str, ...]:
    return tuple(sorted({file.span for file in manifest.splits["test"].files}))


def test_the_differences_of_days_stand_in_the_evaluation(exported: Run, compare) -> None:
    """Rows where there are too few days, days where there are enough; a group takes their place."""
    few = compare(by_day=True)
    assert few.drawn_by == "rows"
    assert tuple(item.value for item in few.day_differences) == _days(exported.manifest())
    assert sum(item.rows for item in few.day_differences) == few.rows
    least = len(few.day_differences)
    enough = compare(by_day=True, bootstrap={"samples": 200, "seed": 3, "confidence": 0.9, "min_days": least})
    assert enough.drawn_by == "days"
    assert enough.difference is None, "fewer days than five say too little"
    assert enough.difference_evidence is not None
    assert enough.difference_evidence.units.startswith("days with ")
    assert enough.difference_evidence.count == least
    assert compare(by_day=True, group="carrier").drawn_by == "groups"
    counted = few.challenger.counted
    assert counted is not None
    assert counted.by_day is not None
    assert [sum(counts) for counts in counted.by_day] == [item.rows for item in few.day_differences]
    assert np.sum(counted.by_day, axis=0).tolist() == list(counted.counts)
    assert few.champion is not None
    assert few.champion.counted is not None
    assert few.champion.counted.by_day is None, "its own run counted them"
    plain = compare()
    assert (plain.drawn_by, plain.day_differences) == ("rows", ())
    assert plain.difference == few.difference


def test_the_metrics_of_days_stand_where_they_are_asked_for(exported: Run, compare) -> None:
    """As of the day's rows alone; their mean by rows is the whole split's."""
    assert compare().challenger.by_day == ()
    asked = compare(metrics_by_day=True)
    days = asked.challenger.by_day
    assert tuple(item.value for item in days) == _days(exported.manifest())
    assert {item.column for item in days} == {"day"}
    assert sum(item.rows for item in days) == asked.rows
    loss = sum(item.rows * item.metrics.log_loss for item in days) / asked.rows
    assert loss == pytest.approx(asked.challenger.metrics.log_loss)
    assert len({item.metrics.log_loss for item in days}) == len(days)
    assert asked.drawn_by == "rows", "what is resampled together is another question"

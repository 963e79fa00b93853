"""What trackers are told of a run: of each document what it says, and the same for the same documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.report.run import Run, read_failures, read_reported_run
from retraining.core.report.tracking.tracked_run import Status, TrackedRun, track
from tests.support.contracts import EXAMPLES

PAGE = "https://airflow.example.com/retraining/models/late/runs/1/report.html"
WHOLE = (
    "plan__scheduled",
    "snapshot__three_new_spans",
    "statistics__two_features",
    "checks__passed",
    "manifest__three_spans",
    "train_request__wide_deep",
    "report__first_attempt",
    "evaluate_request__duel",
    "evaluation__duel",
    "decision__promote",
    "registration__challenger",
    "deployment__champion",
    "timings__run",
)


def raw(name: str) -> dict[str, Any]:
    """An example as it is stored."""
    found: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())
    return found


def run_of(*names: str, failures: tuple[dict[str, Any], ...] = ()) -> Run:
    """A run that left these documents."""
    left = {f"gs://b/late/runs/r/failures/{number}.json": json.dumps(each) for number, each in enumerate(failures)}
    read = read_failures({uri: text.encode() for uri, text in left.items()})
    return read_reported_run({name.split("__")[0]: raw(name) for name in names}, read)


def tracked(*names: str, failures: tuple[dict[str, Any], ...] = ()) -> TrackedRun:
    """What is told of it."""
    return track(run_of(*names, failures=failures), PAGE)


def test_a_whole_run_is_told_whole() -> None:
    """What went in, what came out, the epochs, and where its page is."""
    run = tracked(*WHOLE)
    assert (run.model, run.run_key, run.status) == ("late", "20131120t030000z-4be2344f8642", Status.FINISHED)
    given = run.parameters
    assert given["training.model"] == raw("train_request__wide_deep")["training"]["model"]
    assert (given["window.start"], given["window.test_days"], given["window.days"]) == ("2013-11-09", 2, 10)
    assert given["query.sha256"] == raw("plan__scheduled")["query"]["sha256"]
    assert given["trainer_image"] == raw("plan__scheduled")["trainer_image"]
    assert given["training.hyperparameters.learning_rate"] == 0.001
    assert given["training.hyperparameters.hidden_units"] == "[64, 32]"
    assert (run.metrics["auc"], run.metrics["champion_auc"]) == (0.71, 0.7)
    assert run.metrics["usd"] == pytest.approx(0.0001 + 0.0028 + 0.0322 + 0.0024)
    assert run.metrics["seconds_train"] == 118.0
    assert run.curves["epoch/val_auc"] == (0.66, 0.7, 0.69)
    assert run.tags["retraining.verdict"] == "promote"
    assert run.tags["retraining.version"].endswith("models/late@4")
    assert run.tags["retraining.page"] == PAGE
    assert "retraining.failure" not in run.tags


def test_the_same_documents_are_the_same_value() -> None:
    """And any other one has another digest."""
    assert tracked(*WHOLE) == tracked(*WHOLE)
    assert tracked(*WHOLE).digest == tracked(*WHOLE).digest
    assert tracked(*WHOLE).digest != tracked(*WHOLE[:-1]).digest
    assert tracked(*WHOLE).digest != track(run_of(*WHOLE), "elsewhere").digest


@pytest.mark.parametrize(("metric", "sign"), [("auc", 1), ("log_loss", -1)])
def test_more_gain_is_better_whatever_the_metric(metric: str, sign: int) -> None:
    """Of a loss the difference turns around, its ends too."""
    evaluation = raw("evaluation__duel")
    difference = {**evaluation["difference"], "metric": metric, "mean": 0.02, "low": -0.01, "high": 0.05}
    documents = {"plan": raw("plan__scheduled"), "evaluation": {**evaluation, "difference": difference}}
    found = track(read_reported_run(documents), PAGE)
    gain = [found.metrics[name] for name in ("gain", "gain_low", "gain_high")]
    assert gain == ([0.02, -0.01, 0.05] if sign > 0 else [-0.02, -0.05, 0.01])
    assert found.tags["retraining.gain_metric"] == metric


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, Status.FAILED),
        ({"error": "EndedByHand"}, Status.KILLED),
        ({"retried": True}, Status.RUNNING),
    ],
    ids=["failed", "ended by hand", "tried again"],
)
def test_a_run_that_failed_says_so(changes: dict[str, Any], status: Status) -> None:
    """By its messages; what it came to is told too."""
    run = tracked("plan__scheduled", "snapshot__three_new_spans", failures=({**raw("failure__final"), **changes},))
    assert run.status == status
    assert run.tags["retraining.failure"]
    assert "training.model" not in run.parameters  # of a training that never was


def test_a_run_under_way_and_one_that_its_checks_ended() -> None:
    """Neither has a deployment."""
    assert tracked("plan__scheduled").status == Status.RUNNING
    assert tracked("plan__scheduled", "snapshot__three_new_spans", "checks__blocked").status == Status.FINISHED


def test_no_text_of_the_data_is_told() -> None:
    """What a failure quotes stays out: it may be a row, or another service's words."""
    failure = {**raw("failure__final"), "found": "the row of Jane Doe", "quotes": True}
    assert "Jane" not in str(tracked("plan__scheduled", failures=(failure,)))


def test_names_of_a_teams_own_epochs_are_such_as_trackers_take() -> None:
    """A trainer of one's own may call them anything."""
    report = {**raw("report__first_attempt"), "history": {"val/auc@1": [0.5], "empty": []}}
    found = track(read_reported_run({"plan": raw("plan__scheduled"), "report": report}), PAGE)
    assert list(found.curves) == ["epoch/val_auc_1"]

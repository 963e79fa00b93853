"""MLflow's requests for a run: within its limits, and nothing that the server has."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from retraining.core.report.tracking import mlflow as forms
from retraining.core.report.tracking.mlflow import StoredRun, batches, kept_parameters, oldest
from retraining.core.report.tracking.tracked_run import Status, TrackedRun

AS_OF = datetime(2013, 11, 20, 3, tzinfo=UTC)
RUN = TrackedRun(
    model="late",
    run_key="20131120t030000z-4be2344f8642",
    as_of=AS_OF,
    status=Status.FINISHED,
    parameters={"training.epochs": 3},
    metrics={"auc": 0.7},
    curves={"epoch/loss": (0.5, 0.4)},
    tags={"retraining.run_key": "20131120t030000z-4be2344f8642", "retraining.decision": "Promoted."},
)
EMPTY = StoredRun(run_id="1", started_ms=5, status="RUNNING", parameters={}, metrics={}, tags={})


def told(run: TrackedRun, stored: StoredRun) -> StoredRun:
    """What a server has after it took the requests for a run."""
    metrics, parameters, tags = dict(stored.metrics), dict(stored.parameters), dict(stored.tags)
    for batch in batches(run, stored):
        metrics |= {each["key"]: (each["value"], each["timestamp"]) for each in batch["metrics"]}
        parameters |= {each["key"]: each["value"] for each in batch["params"]}
        tags |= {each["key"]: each["value"] for each in batch["tags"]}
    return replace(stored, metrics=metrics, parameters=parameters, tags=tags)


def test_what_is_there_is_not_sent_again() -> None:
    """A second time there is nothing to say."""
    there = told(RUN, EMPTY)
    assert (there.parameters, there.metrics["auc"][0]) == ({"training.epochs": "3"}, 0.7)
    assert there.tags[forms.DESCRIPTION_TAG] == "Promoted."
    assert list(batches(RUN, there)) == []


def test_a_number_that_changed_is_the_latest() -> None:
    """A server shows the one of the latest time, and of two of one time the larger."""
    there = told(replace(RUN, metrics={"auc": 0.6}), told(RUN, EMPTY))
    assert there.metrics["auc"] == (0.6, forms.milliseconds(AS_OF) + 1)


def test_a_parameter_that_changed_is_kept_and_named() -> None:
    """A server refuses another value."""
    other = replace(RUN, parameters={"training.epochs": 4})
    there = told(RUN, EMPTY)
    assert list(batches(other, there)) == []
    assert kept_parameters(other, there) == ["training.epochs"]


def test_each_request_is_within_the_limits() -> None:
    """Of a long training with many hyperparameters; all of it is sent."""
    long = replace(
        RUN,
        parameters={f"p{number}": "x" * 9000 for number in range(250)},
        curves={f"epoch/{name}": tuple(map(float, range(500))) for name in "abc"},
    )
    sent = list(batches(long, EMPTY))
    for batch in sent:
        counts = [len(batch[part]) for part in ("metrics", "params", "tags")]
        assert counts[0] <= 1000
        assert max(counts[1:]) <= 100
        assert sum(counts) <= 1000
        assert all(len(each["value"]) <= 500 for each in batch["params"])
    assert sum(len(batch["metrics"]) for batch in sent) == 1501
    assert sum(len(batch["params"]) for batch in sent) == 250


def test_the_oldest_counts() -> None:
    """And of equally old ones the same for everybody."""
    runs = [replace(EMPTY, run_id=name, started_ms=time) for name, time in (("c", 5), ("b", 5), ("a", 6))]
    assert oldest(runs).run_id == oldest(runs[::-1]).run_id == "b"


def test_a_run_is_shown_once_its_digest_is_there() -> None:
    """And its status."""
    marked = replace(EMPTY, tags={forms.DIGEST_TAG: RUN.digest})
    assert not marked.shows(RUN)
    assert replace(marked, status="FINISHED").shows(RUN)
    assert not replace(marked, status="FINISHED").shows(replace(RUN, metrics={}))

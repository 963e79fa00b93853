"""A run in the form of MLflow's REST API 2.0: what is told of it, in parts that one request may have.

Limits: https://mlflow.org/docs/latest/api_reference/rest-api.html (log-batch: 1,000 metrics, 100 parameters, 100 tags,
1,000 in all). A parameter does not change once it is there; a metric's newest value is that of the latest time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from retraining.core.report.tracking.tracked_run import Status, TrackedRun
from retraining.core.untyped import JsonObject

RUN_KEY_TAG, DIGEST_TAG, RUN_NAME_TAG = "retraining.run_key", "retraining.digest", "mlflow.runName"
DESCRIPTION_TAG = "mlflow.note.content"
STATUSES: Mapping[Status, str] = {
    Status.RUNNING: "RUNNING",
    Status.FINISHED: "FINISHED",
    Status.FAILED: "FAILED",
    Status.KILLED: "KILLED",
}
MOST_METRICS, MOST_PARAMETERS = 800, 100
MOST_OF_PARAMETER, MOST_OF_TAG = 500, 4000
"""Characters: those of servers since 1.28; newer ones take more."""
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run as the server has it.

    Attributes:
        run_id: The server's.
        started_ms: When it was made, in milliseconds.
        status: As the server spells it.
        parameters: As texts.
        metrics: The newest of each name: value, and its time in milliseconds.
        tags: All.
    """

    run_id: str
    started_ms: int
    status: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, tuple[float, int]]
    tags: Mapping[str, str]

    def shows(self, run: TrackedRun) -> bool:
        """Return whether the server was told all of a run."""
        return self.tags.get(DIGEST_TAG) == run.digest and self.status == STATUSES[run.status]


def experiment_name(environment: str, model: str) -> str:
    """Return the name of a model's experiment.

    Args:
        environment: Label of the Airflow environment.
        model: Its name.
    """
    return f"{environment}/{model}"


def milliseconds(time: datetime) -> int:
    """Return a time as MLflow has it."""
    return round(time.timestamp() * 1000)


def oldest(runs: Sequence[StoredRun]) -> StoredRun:
    """Return the run that counts, of several of one key: the oldest, and of equally old ones the first by its id."""
    return min(runs, key=lambda each: (each.started_ms, each.run_id))


def new_run(run: TrackedRun, experiment_id: str, now: datetime) -> JsonObject:
    """Return the request that makes a run.

    Args:
        run: What is tracked.
        experiment_id: The server's.
        now: When it is made: of two that are made at once the older one counts.
    """
    return {
        "experiment_id": experiment_id,
        "run_name": run.run_key,
        "start_time": milliseconds(now),
        "tags": _pairs({RUN_NAME_TAG: run.run_key, **_tags(run)}),
    }


def batches(run: TrackedRun, stored: StoredRun) -> Iterator[JsonObject]:
    """Yield the requests that bring a run to what is tracked; what is there already is left out.

    A metric that is another one now gets a later time than the one that is there, for the latest counts.
    """
    parameters = {name: _cut(str(value), MOST_OF_PARAMETER) for name, value in run.parameters.items()}
    missing = [{"key": key, "value": value} for key, value in parameters.items() if key not in stored.parameters]
    metrics = [*_changed(run, stored), *_epochs(run, stored)]
    tags = _pairs({name: value for name, value in _tags(run).items() if stored.tags.get(name) != value})
    parts = list(itertools.zip_longest(_parts(metrics, MOST_METRICS), _parts(missing, MOST_PARAMETERS)))
    for number, (some_metrics, some_parameters) in enumerate(parts or [(None, None)] if tags else parts):
        yield {
            "run_id": stored.run_id,
            "metrics": some_metrics or [],
            "params": some_parameters or [],
            "tags": [] if number else tags,
        }


def kept_parameters(run: TrackedRun, stored: StoredRun) -> list[str]:
    """Return the names of parameters that the server has with another value, and keeps."""
    return sorted(
        name
        for name, value in run.parameters.items()
        if name in stored.parameters and stored.parameters[name] != _cut(str(value), MOST_OF_PARAMETER)
    )


def _changed(run: TrackedRun, stored: StoredRun) -> Iterator[JsonObject]:
    begins = milliseconds(run.as_of)
    for name, value in run.metrics.items():
        there, time = stored.metrics.get(name, (None, begins - 1))
        if there != value:
            yield {"key": name, "value": value, "timestamp": max(begins, time + 1), "step": 0}


def _epochs(run: TrackedRun, stored: StoredRun) -> Iterator[JsonObject]:
    """Yield the curves by their epochs, but for those whose last point is there.

    A point of the same time, epoch and value is one to a server with a database, however often it comes.
    """
    time = milliseconds(run.as_of)
    for name, values in run.curves.items():
        if stored.metrics.get(name) == (values[-1], time):
            continue
        for epoch, value in enumerate(values, start=1):
            yield {"key": name, "value": value, "timestamp": time, "step": epoch}


def _tags(run: TrackedRun) -> dict[str, str]:
    tags = {name: _cut(value, MOST_OF_TAG) for name, value in run.tags.items()}
    said = run.tags.get("retraining.failure") or run.tags.get("retraining.decision")
    return {**tags, **({DESCRIPTION_TAG: _cut(said, MOST_OF_TAG)} if said else {})}


def _pairs(values: Mapping[str, str]) -> list[JsonObject]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _parts(items: Sequence[_T], size: int) -> Iterator[list[_T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"

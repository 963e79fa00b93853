"""A run in the form of Vertex AI Experiments: contexts of ML Metadata, as `google.cloud.aiplatform` reads them.

An experiment is a context of the schema `system.Experiment`, a run one of `system.ExperimentRun`, its child, with the
parameters in `_params`, the metrics in `_metrics` and the state in `_state`
(google/cloud/aiplatform/metadata/constants.py). There are no tags: what they say stands among the parameters. What each
epoch reported is a run of a TensorBoard, to which an artifact `<run>-tb-run` of the run's context refers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from retraining.core.documents import digest
from retraining.core.documents.document import format_time
from retraining.core.report.tracking.tracked_run import Status, TrackedRun
from retraining.core.untyped import JsonObject

STORE = "default"
EXPERIMENT_SCHEMA, RUN_SCHEMA, SCHEMA_VERSION = "system.Experiment", "system.ExperimentRun", "0.0.1"
EXPERIMENT_METADATA = {"experiment_deleted": False}
"""Without it the console shows no experiment."""
DIGEST_KEY, BOARD_KEY = "retraining_digest", "retraining_tensorboard"
"""In a run's metadata: what it was last told, and in which TensorBoard its epochs are (empty: in none)."""
ARTIFACT_SCHEMA = "google.VertexTensorboardRun"
BOARD_LABELS = {"vertex_tensorboard_experiment_source": "vertex_experiment"}
"""Of a TensorBoard's experiment that belongs to one of Vertex AI Experiments."""
MOST_POINTS = 5000
"""Of one request that writes them."""
STATES: Mapping[Status, str] = {
    Status.RUNNING: "RUNNING",
    Status.FINISHED: "COMPLETE",
    Status.FAILED: "FAILED",
    Status.KILLED: "CANCELLED",
}
MOST_OF_ID = 128 - len("-tb-run")
"""Characters of a run's id: the SDK keeps the rest for a TensorBoard's."""
_RUN_KEY = 29
_MOST_OF_EXPERIMENT = MOST_OF_ID - 1 - _RUN_KEY
MOST_OF_TEXT = 1000
"""Characters of a text: all metadata of a context may have 200 KB."""


def experiment_id(environment: str, model: str) -> str:
    """Return the id of a model's experiment: 4 to 91 lower-case letters, digits and dashes.

    Args:
        environment: Label of the Airflow environment.
        model: Its name.
    """
    name = re.sub("[^a-z0-9-]", "-", f"{environment}-{model}").strip("-")
    if len(name) <= _MOST_OF_EXPERIMENT:
        return name
    short = digest(name.encode())[:8]
    return f"{name[: _MOST_OF_EXPERIMENT - 9].rstrip('-')}-{short}"


def run_id(experiment: str, run_key: str) -> str:
    """Return the id of a run, as the SDK makes it."""
    return f"{experiment}-{run_key}"


def artifact_id(run: str) -> str:
    """Return the id of the artifact by which the SDK finds the TensorBoard's run of a run, by the run's id."""
    return f"{run}-tb-run"


def artifact_metadata(board_run: str) -> JsonObject:
    """Return the metadata of that artifact.

    Args:
        board_run: Full name of the TensorBoard's run.
    """
    return {"resourceName": board_run, "vertex_experiment_tracking": True}


def points(curves: Mapping[str, tuple[float, ...]]) -> Iterator[list[tuple[str, int, float]]]:
    """Yield all points of curves in parts that a request may have: name, epoch (from 1), value.

    Args:
        curves: What each epoch reported, by name.
    """
    found = [(name, epoch, value) for name, values in curves.items() for epoch, value in enumerate(values, start=1)]
    for start in range(0, len(found), MOST_POINTS):
        yield found[start : start + MOST_POINTS]


def run_metadata(run: TrackedRun, board: str = "") -> JsonObject:
    """Return the metadata of a run's context.

    Args:
        run: What is tracked.
        board: The TensorBoard that has its epochs; empty: none.
    """
    said = {name.removeprefix("retraining."): _cut(value) for name, value in run.tags.items()}
    params = {name: _cut(value) if isinstance(value, str) else value for name, value in run.parameters.items()}
    return {
        "_params": {**said, **params},
        "_metrics": dict(run.metrics),
        "_state": STATES[run.status],
        "as_of": format_time(run.as_of),
        DIGEST_KEY: run.digest,
        BOARD_KEY: board,
    }


def _cut(text: str) -> str:
    return text if len(text) <= MOST_OF_TEXT else f"{text[: MOST_OF_TEXT - 1]}…"

"""A run in the form of Vertex AI Experiments: contexts of ML Metadata, as `google.cloud.aiplatform` reads them.

An experiment is a context of the schema `system.Experiment`, a run one of `system.ExperimentRun`, its child, with the
parameters in `_params`, the metrics in `_metrics` and the state in `_state`
(google/cloud/aiplatform/metadata/constants.py). There are no tags: what they say stands among the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from retraining.core.documents import digest
from retraining.core.documents.document import format_time
from retraining.core.report.tracking.tracked_run import Status, TrackedRun
from retraining.core.untyped import JsonObject

STORE = "default"
EXPERIMENT_SCHEMA, RUN_SCHEMA, SCHEMA_VERSION = "system.Experiment", "system.ExperimentRun", "0.0.1"
EXPERIMENT_METADATA = {"experiment_deleted": False}
"""Without it the console shows no experiment."""
DIGEST_KEY = "retraining_digest"
"""In a run's metadata: what it was last told."""
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


def run_metadata(run: TrackedRun) -> JsonObject:
    """Return the metadata of a run's context."""
    said = {name.removeprefix("retraining."): _cut(value) for name, value in run.tags.items()}
    params = {name: _cut(value) if isinstance(value, str) else value for name, value in run.parameters.items()}
    return {
        "_params": {**said, **params},
        "_metrics": dict(run.metrics),
        "_state": STATES[run.status],
        "as_of": format_time(run.as_of),
        DIGEST_KEY: run.digest,
    }


def _cut(text: str) -> str:
    return text if len(text) <= MOST_OF_TEXT else f"{text[: MOST_OF_TEXT - 1]}…"

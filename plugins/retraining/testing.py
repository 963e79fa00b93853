"""What a team's own tests start from: gates answer whatever a run may bring, and notifiers get what they would get.

    from retraining.testing import check_gate, run_to_judge

    check_gate("late.py:enough_late_flights", "include")

In: how a model's file names the gate. Out: its answers, or an AssertionError that names the run that it failed on.
A notifier is called with `message_parts()`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from retraining.core import team_code
from retraining.core.metrics import Kind
from retraining.core.notification import notices
from retraining.core.notification.messages import render_message
from retraining.core.notification.notices import Link
from retraining.core.promotion.own_gates import Interval, RunToJudge, SliceOfRun, ask
from retraining.core.spec.own_gates import gate_place
from retraining.core.untyped import ApiJson, YamlValues

__all__ = ["Interval", "RunToJudge", "SliceOfRun", "check_gate", "message_parts", "run_to_judge", "runs_to_judge"]

_METRICS = {"auc": 0.75, "log_loss": 0.42, "accuracy": 0.82, "brier": 0.13}
_WORSE = {"auc": 0.73, "log_loss": 0.44, "accuracy": 0.81, "brier": 0.14}
_PAGE = "https://airflow.example.com/retraining/page"
_OF_KIND: Mapping[Kind, Mapping[str, Any]] = {
    "binary": {},
    "multiclass": {"metric": "accuracy", "label_rate": None, "label_counts": (4000, 900, 100)},
    "regression": {
        "metric": "mae",
        "higher_is_better": False,
        "label_rate": None,
        "challenger": {"mae": 3.5, "rmse": 5.0, "r2": 0.6},
        "champion": {"mae": 3.6, "rmse": 5.1, "r2": 0.59},
        "slices": (),
    },
}
_GAIN = Interval(mean=0.02, low=0.01, high=0.03, confidence=0.95)


def run_to_judge(**changes: object) -> RunToJudge:
    """Return a run of a binary label that meets a champion, as a gate is given it; `changes` replace attributes."""
    slices = (
        SliceOfRun(column="carrier", value="AA", rows=900, challenger=_METRICS, champion=_WORSE, difference=_GAIN),
    )
    values: YamlValues = {
        "model": "example",
        "as_of": datetime(2026, 1, 16, 3, tzinfo=UTC),
        "is_backfill": False,
        "metric": "auc",
        "higher_is_better": True,
        "rows": 5000,
        "label_rate": 0.2,
        "label_counts": (),
        "challenger": _METRICS,
        "champion": _WORSE,
        "difference": _GAIN,
        "slices": slices,
        **changes,
    }
    for side in ("challenger", "champion"):
        if values[side] is not None:
            values[side] = MappingProxyType(dict(values[side]))
    return RunToJudge(**values)


def runs_to_judge(kind: Kind = "binary") -> Mapping[str, RunToJudge]:
    """Return what a gate of a model whose label is of a kind must have an answer for, by what is special about it."""
    usual = run_to_judge(**_OF_KIND[kind])
    names = usual.challenger
    alone = tuple(dataclasses.replace(each, champion=None, difference=None) for each in usual.slices)
    undefined = MappingProxyType(dict.fromkeys(names, None))
    return {
        "a champion": usual,
        "the first model": dataclasses.replace(usual, champion=None, difference=None, slices=alone),
        "too little evidence": dataclasses.replace(usual, difference=None, rows=3),
        "no slices": dataclasses.replace(usual, slices=()),
        "metrics that are not defined": dataclasses.replace(
            usual, challenger=undefined, champion=undefined, difference=None
        ),
        "a backfill": dataclasses.replace(usual, is_backfill=True),
    }


def message_parts(**changes: object) -> ApiJson:
    """Return what a notifier gets, of a trial message; `changes` replace parts."""
    notice = dataclasses.replace(notices.of_trial("example"), links=(Link(label="Run page", address=_PAGE),))
    return {**render_message(notice).parts, "id": "<0123456789ab@my-bucket.retraining>", **changes}


def check_gate(
    function: str,
    include: str | Path = "include",
    *,
    kind: Kind = "binary",
    runs: Mapping[str, RunToJudge] | None = None,
) -> dict[str, tuple[bool, str]]:
    """Load a gate as a run does, and ask it about each run twice.

    Args:
        function: As the model's file has it: `file.py:name` below `include/gates`, or an entry point's name.
        include: The folder with `models`.
        kind: Of the model's label.
        runs: What it is asked about, by name; None: `runs_to_judge(kind)`.

    Returns:
        Its answers by the runs' names: whether it passes, and why.

    Raises:
        SpecError: It cannot be loaded.
        AssertionError: It raised something, took too long, or did not answer the same twice as `(True, "why")`.
    """
    found = team_code.load(function, "check_gate", gate_place(Path(include)))
    answers = {}
    for name, run in (runs or runs_to_judge(kind)).items():
        answer = ask(found, run)
        if isinstance(answer, Exception):
            raise AssertionError(f"{function}, asked about {name}: {team_code.explain(answer)}") from answer
        answers[name] = answer
    return answers

"""A run of a model as an experiment tracker has it: parameters, metrics, curves, tags, status.

In: the run's stored documents. Out: one value, the same for the same documents, whichever task asks and however often.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum

from retraining.core.documents import Evaluation, Plan, Report, Timings, canonical_json, digest
from retraining.core.documents.document import format_time
from retraining.core.metrics import METRICS
from retraining.core.report.failures import ENDED_BY_HAND, heading
from retraining.core.report.run import Run
from retraining.core.report.timings import costs

Parameter = int | float | str
CHAMPION = "champion_"
"""Before the name of a metric: the champion's, on the same rows."""
VERTEX, MLFLOW = "vertex", "mlflow"
TRACKERS = (VERTEX, MLFLOW)
"""The words of the setting."""


class Status(StrEnum):
    """How a run ended, by its documents; `RUNNING`: it did not yet."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"


@dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """A run.

    Attributes:
        model: Its name.
        run_key: Its key.
        as_of: The run's time, which a tracker has as its start.
        status: How it ended.
        parameters: What went in, by the paths that it has in the run's documents.
        metrics: What came out: the challenger's as they are called, others by names of their own.
        curves: What each epoch reported, by name; the first one is of epoch 1.
        tags: By which it is found again, and what is said of it.
    """

    model: str
    run_key: str
    as_of: datetime
    status: Status
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of all of it: a tracker that has the same one need not be told again."""
        return digest(canonical_json({**asdict(self), "as_of": format_time(self.as_of)}))


def track(run: Run, page_address: str) -> TrackedRun:
    """Return what a tracker is told of a run.

    Args:
        run: Its documents, as they are stored.
        page_address: Where people find the run's page.
    """
    plan = run.plan
    return TrackedRun(
        model=plan.model,
        run_key=plan.run_key,
        as_of=plan.as_of,
        status=_status(run),
        parameters={**_planned(plan), **_trained(run)},
        metrics={**_quality(run.evaluation), **_training(run.report), **_spent(run.timings)},
        curves=_curves(run.report),
        tags={name: value for name, value in _tags(run, page_address) if value},
    )


def _status(run: Run) -> Status:
    failure = run.failure
    if failure is not None:
        if failure.retried:
            return Status.RUNNING
        return Status.KILLED if failure.error == ENDED_BY_HAND else Status.FAILED
    return Status.FINISHED if run.next_task is None else Status.RUNNING


def _planned(plan: Plan) -> dict[str, Parameter]:
    window = plan.window
    return {
        "as_of": format_time(plan.as_of),
        "mode": plan.mode,
        "trigger.kind": plan.trigger.kind,
        "window.start": str(window.start),
        "window.test_start": str(window.test_start),
        "window.end": str(window.end),
        "window.days": (window.end - window.start).days,
        "window.test_days": (window.end - window.test_start).days,
        "query.sha256": plan.query.sha256,
        "spec_sha256": plan.spec_sha256,
        "trainer_image": plan.trainer_image,
        "serving_image": plan.serving_image,
        **({"taken_from": plan.taken_from.name} if plan.taken_from else {}),
    }


def _trained(run: Run) -> dict[str, Parameter]:
    """Return what the training was asked, and the hyperparameters that it used: those of a study, or of another stage.

    Before there is a request nothing is said: a tracker's parameters do not change.
    """
    asked, report, taken = run.train_request, run.report, run.plan.taken_from
    found: dict[str, Parameter] = {}
    if asked is not None:
        training = asked.training
        found |= {
            "training.model": training.model,
            "training.epochs": training.epochs,
            "training.batch_size": training.batch_size,
        }
    used = report.hyperparameters if report else taken.hyperparameters if taken else {}
    return found | {f"training.hyperparameters.{name}": _plain(value) for name, value in sorted(used.items())}


def _quality(evaluation: Evaluation | None) -> dict[str, float]:
    """Return the test metrics; of the gain more is always better, of a loss too."""
    if evaluation is None:
        return {}
    champion, difference = evaluation.champion, evaluation.difference
    found = {"test_rows": float(evaluation.rows), **_numbers(evaluation.challenger.metrics.model_dump())}
    if champion is not None:
        found |= {f"{CHAMPION}{name}": value for name, value in _numbers(champion.metrics.model_dump()).items()}
    if difference is not None:
        ends = difference.low, difference.high
        higher = METRICS[difference.metric].higher_is_better
        low, high = ends if higher else (-ends[1], -ends[0])
        found |= {"gain": difference.mean if higher else -difference.mean, "gain_low": low, "gain_high": high}
    return found


def _training(report: Report | None) -> dict[str, float]:
    if report is None:
        return {}
    return {
        "train_rows": float(report.train_rows),
        "validation_rows": float(report.validation_rows),
        "best_epoch": float(report.best_epoch),
        "epochs_run": float(report.epochs_run),
        "model_parameters": float(report.parameters),
    }


def _curves(report: Report | None) -> dict[str, tuple[float, ...]]:
    """Return what each epoch reported, by names that every tracker takes: a team's own trainer may have others."""
    history = sorted(report.history.items()) if report else []
    return {f"epoch/{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}": values for name, values in history if values}


def _spent(timings: Timings | None) -> dict[str, float]:
    """Return the seconds of each task and of the run, and the list price of what has one."""
    if timings is None:
        return {}
    known = {f"seconds_{task.task}": task.seconds for task in timings.tasks}
    prices = [task.estimated_usd for task in timings.tasks if costs(task) and task.estimated_usd is not None]
    sums = {"seconds": timings.elapsed_seconds, "usd": sum(prices) if prices else None}
    return {name: float(value) for name, value in {**sums, **known}.items() if value is not None}


def _tags(run: Run, page_address: str) -> Iterator[tuple[str, str]]:
    plan, decision, difference = run.plan, run.decision, run.evaluation.difference if run.evaluation else None
    yield "retraining.run_key", plan.run_key
    yield "retraining.model", plan.model
    yield "retraining.environment", plan.environment or plan.bucket
    yield "retraining.stage", plan.stage or ""
    yield "retraining.dag_id", plan.dag_id
    yield "retraining.dag_run_id", plan.dag_run_id
    yield "retraining.verdict", decision.verdict if decision else ""
    yield "retraining.decision", decision.message if decision else ""
    yield "retraining.gain_metric", difference.metric if difference else ""
    yield "retraining.version", run.registration.version_name if run.registration else ""
    yield "retraining.deployment", run.deployment.message if run.deployment else ""
    yield "retraining.failure", heading(run.failure) if run.failure else ""
    yield "retraining.page", page_address


def _numbers(metrics: Mapping[str, object]) -> dict[str, float]:
    """Return the metrics that are one number and defined."""
    return {name: float(value) for name, value in sorted(metrics.items()) if isinstance(value, float | int)}


def _plain(value: object) -> Parameter:
    """Return a hyperparameter as trackers take them: a number or a text, of a list its JSON."""
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return json.dumps(value)

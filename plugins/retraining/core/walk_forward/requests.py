"""What the job is asked that scores a version of a walk-forward on the days that followed its date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import cast

from retraining.core.catalog.machines import planned_machines
from retraining.core.documents.evaluation import EvaluateRequest, Evaluation
from retraining.core.documents.export import Manifest, ManifestSplit
from retraining.core.documents.plan import Plan
from retraining.core.documents.training import Report
from retraining.core.documents.walk_forward import DayQuality
from retraining.core.errors import DataError
from retraining.core.jobs import requests
from retraining.core.jobs.requests import JobRequest
from retraining.core.metrics import Metric
from retraining.core.naming import storage
from retraining.core.promotion.slices import value_of

NOT_MEASURED: Mapping[str, object] = {
    "lite": None,
    "importance": None,
    "reference": None,
    "threshold": None,
    "golden": False,
}
"""What a run's evaluation has beside its metrics, and these scorings need not."""


def days_after(version: Plan, days: Manifest) -> Manifest:
    """Return the manifest of the days from a version's date on, as its test split; nothing else of it is read.

    Args:
        version: Plan of its run.
        days: Manifest of all days of the walk-forward.

    Raises:
        DataError: There is none.
    """
    files = tuple(file for file in days.splits["test"].files if _is_after(version, file.span))
    if not files:
        raise DataError(
            f"version as of {version.as_of:%Y-%m-%d}",
            "no example on any day from its date on",
            "rows of the query on these days",
            "Look at the source tables, or take an earlier last date",
        )
    nothing = ManifestSplit(rows=0, files=())
    splits = {
        "train": nothing,
        "validation": nothing,
        "test": ManifestSplit(rows=sum(file.rows for file in files), files=files),
    }
    return days.model_copy(update={"run_key": version.run_key, "splits": splits})


def _is_after(version: Plan, span: date | str) -> bool:
    return isinstance(span, date) and span >= version.as_of.date()


def scoring_job(
    version: Plan, report: Report, folder_uri: str, results_uri: str, service_account: str | None
) -> JobRequest:
    """Return the job that scores a version.

    Args:
        version: Plan of its run.
        report: Of its training.
        folder_uri: Where the walk-forward keeps the request and the result.
        results_uri: Where the job writes.
        service_account: Whom it runs as; None: Vertex AI's own account.
    """
    asked = requests.evaluation_job(version, None, service_account, report=report)
    request = cast("EvaluateRequest", asked.request)
    evaluation_uri = storage.document_uri(results_uri, Evaluation.kind_name())
    request = request.model_copy(
        update={
            **NOT_MEASURED,
            "manifest_uri": storage.document_uri(folder_uri, Manifest.kind_name()),
            "scores_uri": storage.scores_uri(results_uri),
            "evaluation_uri": evaluation_uri,
            "slices": (),
            "crossed_slices": (),
            "metrics_by_day": True,
        }
    )
    request_uri = storage.document_uri(folder_uri, request.kind_name())
    machines = planned_machines(version, "evaluate")
    return replace(
        asked,
        request=request,
        request_uri=request_uri,
        result_uri=evaluation_uri,
        adopted_uri=storage.document_uri(folder_uri, Evaluation.kind_name()),
        artifact_uri="",
        submission_uri="",
        custom_job=requests.custom_job(
            version, "evaluate", request_uri, storage.job_uri(results_uri, "evaluate"), machines, service_account
        ),
    )


def day_qualities(evaluation: Evaluation, metric: Metric) -> tuple[DayQuality, ...]:
    """Return how good a version was on each day on which the metric is defined, the first day first."""
    found = []
    for part in evaluation.challenger.by_day:
        quality = value_of(part.metrics, metric)
        if quality is not None:
            found.append(DayQuality(day=date.fromisoformat(str(part.value)), rows=part.rows, quality=quality))
    return tuple(found)

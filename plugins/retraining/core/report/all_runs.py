"""All runs of a model side by side: what each was trained on and with, how good it came out, what it took and cost.

In: the newest runs' documents. Out: one self-contained page without scripts; what sorts and filters it is CSS.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from retraining.core.documents import Failure
from retraining.core.naming import pages, storage
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.report.failures import (
    ENDED_BY_HAND,
    ENDED_BY_PLAN,
    NOT_FAILED,
    heading,
    newest_failure,
    one_line,
    shorten,
)
from retraining.core.report.page import headline, outcome
from retraining.core.report.quality import Interval, MetricRow, interval, metric_rows
from retraining.core.report.rendering import duration, render_template
from retraining.core.report.run import Run
from retraining.core.report.started import started_by
from retraining.core.report.timings import run_seconds, total_usd
from retraining.core.spec.training import Scalar

KINDS = ("plan", "checks", "manifest", "report", "evaluation", "decision", "deployment", "timings")
"""Documents that the page is made of."""
SHOWN = 30
"""Newest runs; of the others the keys are listed."""
SORTINGS = {"newest": "newest first", "metric": "best metric", "usd": "cheapest", "seconds": "quickest"}
OUTCOMES = {
    "failed": "failed",
    "working": "under way",
    "promote": "promoted",
    "reject": "rejected",
    "record": "recorded",
    "skipped": "skipped",
    "stopped": "without a decision",
}
"""How a run stands, as it can be chosen; what a person looks for first comes first."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What there is of a model's runs beside their documents.

    Attributes:
        unplanned: Messages of runs that came to no plan, by their folders.
        reported: Addresses of the pages that there are: a run without one is under way.
    """

    unplanned: Mapping[str, Sequence[Failure]] = field(default_factory=dict)
    reported: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run as a row.

    Attributes:
        run: Its documents.
        address: Of its page; of a run under way that of its documents.
        is_reported: Whether its page is there.
        hyperparameters: Architecture and hyperparameters that are not alike in all rows.
        places: Its place in each sorting.
    """

    run: Run
    address: str
    is_reported: bool
    hyperparameters: Mapping[str, Scalar]
    places: Mapping[str, int]

    @property
    def tone(self) -> str:
        """How it stands, as in `OUTCOMES`."""
        run, failure = self.run, self.run.failure
        if failure and failure.error in NOT_FAILED:
            return "stopped"
        if (failure and not failure.retried) or (run.checks and not run.checks.passed):
            return "failed"
        if run.decision:
            return run.decision.verdict
        if run.repetition:
            return "skipped"
        return "stopped" if self.is_reported else "working"

    @property
    def started(self) -> str:
        """What started it, in a few words."""
        more = len(self.run.plan.trigger.events) - 1
        return started_by(self.run.plan.trigger) + (f", and {more} more" if more > 0 else "")

    @property
    def headline(self) -> str:
        """How it stands, in a few words."""
        if self.tone == "working" and not self.run.failure:
            return f"Under way, at the task {self.run.next_task}"
        return headline(self.run)

    @property
    def why(self) -> str:
        """Why it did not come to its end, in a line; empty: it did, or nothing is known."""
        if self.run.failure:
            return one_line(self.run.failure)
        return shorten(outcome(self.run)) if self.tone == "failed" else ""

    @property
    def metrics(self) -> Sequence[MetricRow]:
        """The challenger's metrics, the one that decides first."""
        return metric_rows(self.run, self.run.evaluation) if self.run.evaluation else ()

    @property
    def gain(self) -> Interval | None:
        """The gain over the champion."""
        return interval(self.run, self.run.evaluation) if self.run.evaluation else None

    @property
    def rows(self) -> Mapping[str, int]:
        """Examples by split."""
        return {name: split.rows for name, split in self.run.manifest.splits.items()} if self.run.manifest else {}

    @property
    def took(self) -> str:
        """How long it took."""
        return duration(run_seconds(self.run.timings)) if self.run.timings else "-"

    @property
    def usd(self) -> str:
        """What it cost at list price."""
        return (total_usd(self.run.timings) if self.run.timings else None) or "-"


@dataclass(frozen=True, kw_only=True)
class UnplannedRow:
    """A run that came to no plan, as a row: it failed before, or was ended by hand or by its plan.

    Attributes:
        failure: Why.
        name: Of its folder, which begins with the time that it was due.
        address: Of its page.
        places: Its place in each sorting.
    """

    failure: Failure
    name: str
    address: str
    places: Mapping[str, int]

    @property
    def due(self) -> datetime:
        """When it was due."""
        return storage.rollback_time(self.name)

    @property
    def tone(self) -> str:
        """How it stands, as in `OUTCOMES`."""
        return {ENDED_BY_PLAN: "skipped", ENDED_BY_HAND: "stopped"}.get(self.failure.error, "failed")

    @property
    def headline(self) -> str:
        """How it stands, in a few words."""
        return heading(self.failure)

    @property
    def why(self) -> str:
        """Why, in a line."""
        return one_line(self.failure)


@dataclass(frozen=True, kw_only=True)
class AllRuns:
    """What the page shows; its template reads nothing else."""

    model: str
    rows: Sequence[RunRow | UnplannedRow]
    alike: Mapping[str, Scalar]
    unreadable: Mapping[str, str]
    others: Sequence[str]
    sortings: Mapping[str, str]
    outcomes: Mapping[str, str]


def render_all_runs(
    model: str,
    runs: Iterable[Run],
    unreadable: Mapping[str, str],
    others: Sequence[str],
    airflow: str = "",
    beside: Beside | None = None,
) -> str:
    """Return the page: the same documents give the same bytes.

    Args:
        model: Whose runs.
        runs: Newest first.
        unreadable: Why the documents of a run could not be read, by its key.
        others: Keys of runs that are too old to be shown, newest first.
        airflow: Address of Airflow's UI, which shows the runs' pages; empty: it is not configured.
        beside: What there is beside the documents.
    """
    shown, beside = list(runs), beside or Beside()
    settings = [_settings(run) for run in shown]
    alike = {
        name: value
        for name, value in (settings[0].items() if settings else ())
        if all(each.get(name, _NONE) == value for each in settings)
    }
    entries = [_Entry(name=run.plan.run_key, run=run) for run in shown]
    entries += [_Entry(name=ObjectAddress.parse(folder).stem) for folder in beside.unplanned]
    places = _places(entries)
    rows: list[RunRow | UnplannedRow] = [
        _run_row(
            run, {name: value for name, value in own.items() if name not in alike}, places[entry.name], airflow, beside
        )
        for run, own, entry in zip(shown, settings, entries, strict=False)
    ]
    for folder, failures in beside.unplanned.items():
        name, address = ObjectAddress.parse(folder).stem, pages.page_address(storage.report_page_uri(folder), airflow)
        rows.append(UnplannedRow(failure=newest_failure(failures), name=name, address=address, places=places[name]))
    rows.sort(key=lambda row: row.places["newest"])
    there = {row.tone for row in rows}
    page = AllRuns(
        model=model,
        rows=rows,
        alike=alike,
        unreadable=unreadable,
        others=others,
        sortings=SORTINGS,
        outcomes={name: message for name, message in OUTCOMES.items() if name in there},
    )
    return render_template("report/all_runs.html.j2", page=page)


_NONE = object()


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """What a row is sorted by: the name of its folder, and the run; None: it came to no plan."""

    name: str
    run: Run | None = None


def _run_row(run: Run, own: Mapping[str, Scalar], places: Mapping[str, int], airflow: str, beside: Beside) -> RunRow:
    page_uri = storage.report_page_uri(run.plan.run_uri)
    is_reported = page_uri in beside.reported
    shown_uri = page_uri if is_reported or not pages.is_whole(airflow) else run.plan.run_uri
    return RunRow(
        run=run,
        address=pages.page_address(shown_uri, airflow),
        is_reported=is_reported,
        hyperparameters=own,
        places=places,
    )


def _settings(run: Run) -> dict[str, Scalar]:
    """Return architecture and hyperparameters: those of the training, or where it was not reached those planned."""
    training = run.plan.spec.training
    values = run.report.hyperparameters if run.report else training.hyperparameters
    shown = {name: ", ".join(map(str, value)) if isinstance(value, tuple) else value for name, value in values.items()}
    asked = run.train_request.training if run.train_request else training
    steps = {"epochs": asked.epochs, "batch_size": asked.batch_size}
    known = {name: value for name, value in steps.items() if value is not None}
    return {"model": training.model, **known, **shown}


def _places(entries: Sequence[_Entry]) -> dict[str, dict[str, int]]:
    """Return the places of each entry in the sortings, by its name; those without the number come last."""
    ordered = sorted(entries, key=lambda entry: entry.name, reverse=True)
    numbers: dict[str, list[float | None]] = {"newest": [float(number) for number in range(len(ordered))]}
    for sorting, number_of in (("metric", _badness), ("usd", _usd), ("seconds", _seconds)):
        numbers[sorting] = [number_of(entry.run) if entry.run else None for entry in ordered]
    ranks = {sorting: _ranks(values) for sorting, values in numbers.items()}
    return {
        entry.name: {sorting: ranks[sorting][number] for sorting in SORTINGS} for number, entry in enumerate(ordered)
    }


def _ranks(values: Sequence[float | None]) -> list[int]:
    order = sorted(range(len(values)), key=lambda index: (values[index] is None, values[index] or 0.0, index))
    return [order.index(index) for index in range(len(values))]


def _badness(run: Run) -> float | None:
    """Return the metric that decides, so that less is better."""
    if run.evaluation is None:
        return None
    first = metric_rows(run, run.evaluation)[0]
    if first.challenger is None:
        return None
    return -first.challenger if first.higher_is_better else first.challenger


def _usd(run: Run) -> float | None:
    known = [task.estimated_usd for task in run.timings.tasks if task.estimated_usd is not None] if run.timings else []
    return sum(known) if known else None


def _seconds(run: Run) -> float | None:
    return run_seconds(run.timings) if run.timings else None

"""All runs of a model side by side: what each was trained on and with, how good it came out, what it took and cost.

In: the newest runs' documents. Out: one self-contained page without scripts; what sorts and filters it is CSS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from retraining.core.naming import pages, storage
from retraining.core.report.costs import run_seconds, total_usd
from retraining.core.report.page import duration, headline, render_template
from retraining.core.report.quality import Interval, MetricRow, interval, metric_rows
from retraining.core.report.run import Run
from retraining.core.report.started import started_by
from retraining.core.spec.training import Scalar

KINDS = ("plan", "checks", "manifest", "report", "evaluation", "decision", "deployment", "timings")
"""Documents that the page is made of."""
SHOWN = 30
"""Newest runs; of the others the keys are listed."""
SORTINGS = {"newest": "newest first", "metric": "best metric", "usd": "cheapest", "seconds": "quickest"}
OUTCOMES = {"promote": "promoted", "reject": "rejected", "record": "recorded", "stopped": "without a decision"}


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run as a row.

    Attributes:
        run: Its documents.
        address: Of its page.
        hyperparameters: Architecture and hyperparameters that are not alike in all rows.
        places: Its place in each sorting.
    """

    run: Run
    address: str
    hyperparameters: Mapping[str, Scalar]
    places: Mapping[str, int]

    @property
    def tone(self) -> str:
        """The verdict, or `stopped`."""
        return self.run.decision.verdict if self.run.decision else "stopped"

    @property
    def started(self) -> str:
        """What started it, in a few words."""
        more = len(self.run.plan.trigger.events) - 1
        return started_by(self.run.plan.trigger) + (f", and {more} more" if more > 0 else "")

    @property
    def headline(self) -> str:
        """How it ended, in a few words."""
        if self.run.decision or (self.run.checks and not self.run.checks.passed):
            return headline(self.run)
        return "No decision"

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
class AllRuns:
    """What the page shows; its template reads nothing else."""

    model: str
    rows: Sequence[RunRow]
    alike: Mapping[str, Scalar]
    unreadable: Mapping[str, str]
    others: Sequence[str]
    sortings: Mapping[str, str]
    outcomes: Mapping[str, str]


def render_all_runs(
    model: str, runs: Iterable[Run], unreadable: Mapping[str, str], others: Sequence[str], airflow: str = ""
) -> str:
    """Return the page: the same documents give the same bytes.

    Args:
        model: Whose runs.
        runs: Newest first.
        unreadable: Why the documents of a run could not be read, by its key.
        others: Keys of runs that are too old to be shown, newest first.
        airflow: Address of Airflow's UI, which shows the runs' pages; empty: it is not configured.
    """
    shown = list(runs)
    settings = [_settings(run) for run in shown]
    alike = {
        name: value
        for name, value in (settings[0].items() if settings else ())
        if all(each.get(name, _NONE) == value for each in settings)
    }
    places = _places(shown)
    rows = [
        RunRow(
            run=run,
            address=pages.page_address(storage.report_page_uri(run.plan.run_uri), airflow),
            hyperparameters={name: value for name, value in own.items() if name not in alike},
            places={sorting: places[sorting][number] for sorting in SORTINGS},
        )
        for number, (run, own) in enumerate(zip(shown, settings, strict=True))
    ]
    there = {row.tone for row in rows}
    page = AllRuns(
        model=model,
        rows=rows,
        alike=alike,
        unreadable=unreadable,
        others=others,
        sortings=SORTINGS,
        outcomes={name: words for name, words in OUTCOMES.items() if name in there},
    )
    return render_template("report/all_runs.html.j2", page=page)


_NONE = object()


def _settings(run: Run) -> dict[str, Scalar]:
    """Return architecture and hyperparameters: those of the training, or where it was not reached those planned."""
    training = run.plan.spec.training
    values = run.report.hyperparameters if run.report else training.hyperparameters
    shown = {name: ", ".join(map(str, value)) if isinstance(value, tuple) else value for name, value in values.items()}
    return {"model": training.model, "epochs": training.epochs, "batch_size": training.batch_size, **shown}


def _places(runs: Sequence[Run]) -> dict[str, list[int]]:
    """Return the place of each run in each sorting; runs without the number come last."""
    numbers: dict[str, list[float | None]] = {"newest": [float(number) for number in range(len(runs))]}
    numbers["metric"] = [_badness(run) for run in runs]
    numbers["usd"] = [_usd(run) for run in runs]
    numbers["seconds"] = [run_seconds(run.timings) if run.timings else None for run in runs]
    return {name: _ranks(values) for name, values in numbers.items()}


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

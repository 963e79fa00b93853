"""What a model's page shows: its versions, its comparisons, what is watched, and what was done, over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import ModuleType

from retraining.core.documents import Signals
from retraining.core.documents.overview import (
    ModelOverview,
    ModelSummary,
    ShownRollback,
    ShownRun,
    ShownSignal,
    ShownVersion,
    WatchRow,
)
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.naming import pages, storage
from retraining.core.report import charts
from retraining.core.report.models_page import drawing
from retraining.core.report.models_page.all_models import OUTCOMES, ModelRow
from retraining.core.report.models_page.drawing import Measured, SmallChart, TimeChart
from retraining.core.report.models_page.places import Places
from retraining.core.report.rendering import duration

SHOWN_AT_ONCE = 12
MULTIPLES_AT_ONCE = 24
SIGNALS_DRAWN = 100
"""Of the last window, in the table and with their histories; those over or nearest to their limit come first."""
UNREADABLE_NAMED = 20
BY_FEATURE = ("skew", "drift", "prediction_drift", "multivariate", "attributions")
"""Kinds of signals that are drawn, each subject by itself."""
SCORED = {"performance": "of its answers, once labels came", "estimate": "estimated, before labels come"}
GAIN_WIDTH = 150.0
SECTIONS = (
    ("head", ""),
    ("score", "Score over time"),
    ("watched", "What is watched"),
    ("ledger", "Ledger"),
    ("runs", "Runs and comparisons"),
    ("versions", "Versions"),
    ("readiness", "ML Test Score"),
    ("unreadable", "Not readable"),
)
"""Parts of the page, each drawn by itself: stem of its template after `model_`, and its title."""


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The gain over the champion, oriented so that right is better; x in SVG units."""

    mean: float
    low: float
    high: float
    x: float
    x_low: float
    x_high: float
    x_zero: float
    tone: str


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run of the history."""

    run: ShownRun
    page: str
    folder: str
    dag_run: str | None
    version: str | None
    gain: Gain | None

    @property
    def outcome(self) -> str:
        """How it ended."""
        return OUTCOMES[self.run.outcome]

    @property
    def tone(self) -> str:
        """How that looks."""
        return {"promote": "good", "stopped": "bad"}.get(self.run.outcome, "calm")

    @property
    def took(self) -> str:
        """How long it took."""
        return duration(self.run.seconds)

    @property
    def cost(self) -> str:
        """What it cost at list price."""
        if self.run.usd is None:
            return "-"
        return f"{'at least ' if self.run.unpriced else ''}{self.run.usd:,.2f} USD"


@dataclass(frozen=True, kw_only=True)
class VersionRow:
    """A version with its address in the registry, the run that made it, and its model card."""

    version: ShownVersion
    address: str | None
    run: ShownRun | None
    card: str | None
    left: ShownRollback | None
    """The last way back from it, since which it was not gone to again."""


@dataclass(frozen=True, kw_only=True)
class Multiple:
    """One thing that is watched, over time."""

    signal: ShownSignal
    chart: SmallChart

    @property
    def name(self) -> str:
        """What it is."""
        return self.signal.subject or "the model"


@dataclass(frozen=True, kw_only=True)
class OneModel:
    """A model's page; its template reads nothing else. `waiting`: which of its jobs wait for room, in sentences."""

    overview: ModelOverview
    now: datetime
    places: Places
    waiting: Sequence[str] = ()
    chart: ModuleType = drawing
    shown_at_once: int = SHOWN_AT_ONCE
    multiples_at_once: int = MULTIPLES_AT_ONCE
    gain_width: float = GAIN_WIDTH
    sections: Sequence[tuple[str, str]] = SECTIONS

    @property
    def summary(self) -> ModelSummary:
        """Its row."""
        return self.overview.summary

    @cached_property
    def row(self) -> ModelRow:
        """The same, as the page of all models shows it."""
        return ModelRow(summary=self.summary, now=self.now, address="", waits=self.waiting)

    @property
    def failure_links(self) -> list[tuple[str, str]]:
        """Where a reader goes on from the message of the newest run's failure: its page, and the task's log."""
        failure = self.summary.failure
        if failure is None:
            return []
        page = self.places.failed_run_page(self.summary.model, failure.folder_uri) if failure.folder_uri else None
        log = failure.log if failure.log and pages.is_whole(failure.log) else None
        return [(name, address) for name, address in (("Run page", page), (f"Log of {failure.task}", log)) if address]

    @property
    def watches(self) -> Sequence[WatchRow]:
        """Looks of the monitor, newest first."""
        return self.overview.watches

    @property
    def dags(self) -> list[tuple[str, str | None]]:
        """Its DAGs, with their addresses."""
        ids = [f"{kind}__{self.summary.model}" for kind in ("retrain", "monitor", "rollback")]
        return [(dag_id, self.places.dag(dag_id)) for dag_id in ids]

    @cached_property
    def runs(self) -> list[RunRow]:
        """Runs, newest first."""
        differences = [run.difference for run in self.overview.runs if run.difference]
        ends = [end for each in differences for end in (each.low, each.high, -each.low, -each.high)]
        x = charts.Scale(low=min(ends), high=max(ends), start=6, end=GAIN_WIDTH - 6) if any(ends) else None
        return [
            RunRow(
                run=run,
                page=self.places.run_page(run),
                folder=self.places.run_documents(run, self.overview.project),
                dag_run=self.places.dag_run(run.dag_id, run.dag_run_id),
                version=self.places.version(run.version_name) if run.version_name else None,
                gain=_gain(run, x) if x else None,
            )
            for run in self.overview.runs
        ]

    @property
    def versions(self) -> list[VersionRow]:
        """Versions, newest first."""
        by_key = {run.run_key: run for run in self.overview.runs}
        return [
            VersionRow(
                version=version,
                address=self.places.version(version.version_name),
                run=by_key.get(version.run_key or ""),
                card=self.places.model_card(version.run_key),
                left=self._left(version.version_id),
            )
            for version in self.overview.versions
        ]

    def _left(self, version_id: str) -> ShownRollback | None:
        for each in self.overview.rollbacks:
            if each.version_id == version_id:
                return None
            if each.from_version_id == version_id:
                return each
        return None

    @property
    def all_runs(self) -> str:
        """Address of the page with all runs."""
        return self.places.all_runs(self.overview.bucket, self.summary.model)

    @cached_property
    def scores(self) -> TimeChart | None:
        """Scores over time: of each run on its test days, and of the champion's answers with their intervals."""
        metric = self.summary.metric
        runs = [run for run in self.overview.runs[::-1] if run.score is not None and run.mode == "live"]
        tested = [
            Measured(
                at=run.as_of,
                value=run.score or 0.0,
                message=f"{run.as_of:%Y-%m-%d %H:%M}: {metric} {run.score:.4f}, {OUTCOMES[run.outcome]}",
                tone="" if run.deployed else "hollow",
            )
            for run in runs
        ]
        watched = [(kind, message, self._watched(kind, metric)) for kind, message in SCORED.items()]
        return drawing.time_chart([("runs", "of each run on its test days", tested), *watched], self._marks)

    @property
    def _marks(self) -> list[Measured]:
        """Moments at which the champion changed."""
        return [
            Measured(at=run.as_of, value=0.0, message=f"version {run.version_id} became champion")
            for run in self.overview.runs[::-1]
            if run.deployed and run.version_id
        ] + [
            Measured(at=each.at, value=0.0, message=f"went back to version {each.version_id} {each.who}")
            for each in self.overview.rollbacks[::-1]
            if not each.stopped
        ]

    def _watched(self, kind: str, metric: str) -> list[Measured]:
        found = []
        for row in self.watches[::-1]:
            for signal in row.signals:
                if (signal.kind, signal.subject, signal.measure) == (kind, "", metric) and signal.value is not None:
                    message = f"{row.as_of:%Y-%m-%d %H:%M}: {signal.value:.4f}{_interval(signal)}"
                    found.append(
                        Measured(at=row.as_of, value=signal.value, message=message, low=signal.low, high=signal.high)
                    )
        return found

    @property
    def signals(self) -> Sequence[ShownSignal]:
        """What the monitor saw last, as far as it is drawn."""
        return self.watches[0].signals[:SIGNALS_DRAWN] if self.watches else ()

    @property
    def signals_left_out(self) -> int:
        """How many more signals the last window had."""
        return self.watches[0].left_out + len(self.watches[0].signals) - len(self.signals) if self.watches else 0

    @property
    def signals_source(self) -> str:
        """Address of the document that has all of the last window."""
        return storage.document_uri(f"{self._monitors}/{self.watches[0].key}", Signals.kind_name())

    @property
    def _monitors(self) -> str:
        return storage.monitors_uri(self.overview.bucket, self.summary.model)

    @cached_property
    def multiples(self) -> list[tuple[str, list[Multiple]]]:
        """What is drawn by feature, by kind; what is nearest to its limit comes first."""
        drawn = []
        for kind in BY_FEATURE:
            of_kind = [signal for signal in self.signals if signal.kind == kind]
            charts_of_kind = [(signal, self._history(signal)) for signal in of_kind]
            if multiples := [Multiple(signal=signal, chart=chart) for signal, chart in charts_of_kind if chart]:
                drawn.append((kind, multiples))
        return drawn

    def _history(self, newest: ShownSignal) -> SmallChart | None:
        return drawing.small_chart(self._values.get(_subject(newest), ()), newest.threshold)

    @cached_property
    def _values(self) -> Mapping[tuple[str, str, str], Sequence[Measured]]:
        """Values over time of each thing that is drawn, from one pass over all rows."""
        drawn: dict[tuple[str, str, str], list[Measured]] = {_subject(signal): [] for signal in self.signals}
        for row in self.watches[::-1]:
            for signal in row.signals:
                values = drawn.get(_subject(signal))
                if values is not None and signal.value is not None:
                    message = f"{row.as_of:%Y-%m-%d %H:%M}: {signal.value:.4f}"
                    tone = "bad" if signal.state == "exceeded" else ""
                    values.append(Measured(at=row.as_of, value=signal.value, message=message, tone=tone))
        return drawn

    @property
    def source(self) -> str:
        """Address of the object that the page is made of."""
        return storage.model_overview_uri(self.overview.bucket, self.summary.model)

    @property
    def unreadable(self) -> list[tuple[str, str]]:
        """What could not be read, as far as it is named."""
        return list(self.overview.unreadable.items())[:UNREADABLE_NAMED]

    @property
    def results(self) -> Mapping[str, str]:
        """What came of what the monitor ordered, by the row's key."""
        return self.watches[0].results if self.watches else {}

    @cached_property
    def timeline(self) -> tuple[drawing.Dot, ...]:
        """What the monitor came to, as moments on a line."""
        return drawing.strip(
            [
                (row.as_of, _tone(row), f"{row.as_of:%Y-%m-%d %H:%M}: {row.outcome}, {row.reason}")
                for row in self.watches[::-1]
            ]
        )

    @property
    def jobs(self) -> str:
        """The project's jobs in the console."""
        return self.places.jobs(self.overview.project)

    @property
    def endpoint(self) -> str | None:
        """The endpoint in the console."""
        return self.places.endpoint(self.summary.endpoint_name)


def _gain(run: ShownRun, x: charts.Scale) -> Gain | None:
    difference = run.difference
    if difference is None:
        return None
    sign = 1 if difference.metric in HIGHER_IS_BETTER else -1
    low, high = sorted((sign * difference.low, sign * difference.high))
    return Gain(
        mean=sign * difference.mean,
        low=low,
        high=high,
        x=x(sign * difference.mean),
        x_low=x(low),
        x_high=x(high),
        x_zero=x(0),
        tone="good" if low > 0 else "bad" if high < 0 else "",
    )


def _subject(signal: ShownSignal) -> tuple[str, str, str]:
    return signal.kind, signal.subject, signal.measure


def _tone(row: WatchRow) -> str:
    if row.outcome in ("retrain", "tune", "rollback"):
        return "acted"
    return "warn" if row.outcome == "warn" or row.severity != "info" else ""


def _interval(signal: ShownSignal) -> str:
    return f", from {signal.low:.4f} to {signal.high:.4f}" if signal.low is not None and signal.high is not None else ""

"""Putting the page together: what each section shows, and the template that shows it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from retraining.core.documents import Failure, Plan, TaskTiming, Timings, TriggerEvent
from retraining.core.jobs.submission import Submission
from retraining.core.naming import pages, storage
from retraining.core.naming.spans import label_span
from retraining.core.report import charts
from retraining.core.report.changes import Change, Day, days, noteworthy, since_champion
from retraining.core.report.classes import Cell, ClassRow, answers, class_rows
from retraining.core.report.curves import CurveChart, curve_charts
from retraining.core.report.failures import heading, next_step, origin, parts_of
from retraining.core.report.features import FeatureRow, feature_rows
from retraining.core.report.forest import Forest, forest
from retraining.core.report.importance import ImportanceTable, importance_table, most_important
from retraining.core.report.quality import (
    INTERVAL_WIDTH,
    SLICES_SHOWN,
    TRACK_WIDTH,
    DayRow,
    Interval,
    MetricRow,
    ReferenceRow,
    SliceRow,
    day_rows,
    interval,
    metric_rows,
    not_judged,
    quality_warnings,
    reference_rows,
    slice_rows,
    training_charts,
)
from retraining.core.report.regression import Agreement, BaselineRow, Residuals, agreement, baseline_rows, residuals
from retraining.core.report.rendering import duration, render_template
from retraining.core.report.run import CHAMPION_PLAN, TASK_OF_KIND, Run, expected_kinds, read_reported_run
from retraining.core.report.started import explain_trigger, further_causes
from retraining.core.report.study import NAMES, ROW, Importance, StudyChart, importances, study_chart
from retraining.core.report.timings import costs, total_seconds, total_usd
from retraining.core.report.training import (
    Setting,
    describe_beginning,
    describe_members,
    training_settings,
    training_warnings,
)
from retraining.core.spec.features import class_names, class_text

NOTHING_NEW = "Nothing new"
VERDICT_WORDS = {"promote": "Promoted", "reject": "Rejected", "record": "Recorded"}
DAYS_SHOWN = 6
PNG_START = b"\x89PNG\r\n\x1a\n"
MOST_PNG_BYTES = 4 << 20


def render(
    raw: Mapping[str, Mapping[str, Any]],
    submissions: Mapping[str, Submission] | None = None,
    contact_sheet: bytes | None = None,
    airflow: str = "",
    standing: Standing | None = None,
    runbook_url: str | None = None,
) -> str:
    """Return the run's page: one self-contained HTML file without scripts; the same documents give the same bytes.

    Args:
        raw: Stored JSON by kind, the plan at least; beside them, under `champion_plan`, the plan of the run that made
            the champion. Kinds that the page does not show are left out.
        submissions: The run's jobs by task, as people submit them.
        contact_sheet: PNG of the training's changed images, if it left one.
        airflow: Address of Airflow's UI, which shows the other pages; empty: it is not configured.
        standing: How it stands with the run beside its documents.
        runbook_url: Address of the run-book; None: it is named as a file.

    Raises:
        ContractError: There is no plan, or a document does not obey its contract.
    """
    standing = standing or Standing()
    run = read_reported_run(
        {kind: values for kind, values in raw.items() if kind in TASK_OF_KIND or kind == CHAMPION_PLAN},
        standing.failures,
        standing.asked,
    )
    page = Page(
        run=run,
        submissions=submissions or {},
        contact_sheet=png_address(contact_sheet),
        runbook_url=runbook_url,
        standing=standing,
        airflow=airflow,
    )
    return render_template("report/page.html.j2", page=page)


def png_address(content: bytes | None) -> str | None:
    """Return a picture as an address that holds it; None of one that is no PNG or too large for the page."""
    if content is None or not content.startswith(PNG_START) or len(content) > MOST_PNG_BYTES:
        return None
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How it stands with a run beside its documents.

    Attributes:
        failures: What its failed tries left.
        asked: What a person may answer until when, where the run waits for it.
        answer_url: Where the person answers.
        gone_back: That somebody went back after the run was ordered, as a sentence.
    """

    failures: tuple[Failure, ...] = ()
    asked: str = ""
    answer_url: str = ""
    gone_back: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What the sections of a run's page show; the templates in `package_data/templates/report` read nothing else."""

    run: Run
    submissions: Mapping[str, Submission]
    contact_sheet: str | None = None
    airflow: str = ""
    runbook_url: str | None = None
    standing: Standing = Standing()
    chart: ModuleType = charts
    days_shown: int = DAYS_SHOWN
    bar_start: int = NAMES
    bar_row: int = ROW
    interval_width: float = INTERVAL_WIDTH
    track_width: float = TRACK_WIDTH

    @property
    def plan(self) -> Plan:
        """The run's plan."""
        return self.run.plan

    @property
    def all_runs(self) -> str:
        """Address of the page with all runs of the model."""
        return pages.page_address(storage.all_runs_page_uri(self.plan.bucket, self.plan.model), self.airflow)

    @property
    def serving_image(self) -> str:
        """Image of what serves the run's model."""
        own = self.plan.spec.deployment.container
        return own.image if own else self.plan.serving_image

    @property
    def headline(self) -> str:
        """The outcome in a few words."""
        return headline(self.run)

    @property
    def outcome(self) -> str:
        """The outcome in a sentence."""
        return outcome(self.run)

    @property
    def started(self) -> str:
        """Who started the run, and why, in a sentence."""
        return explain_trigger(self.plan.trigger)

    @property
    def further_causes(self) -> list[tuple[TriggerEvent, str]]:
        """What else asked for the run."""
        return list(further_causes(self.plan.trigger))

    @property
    def tone(self) -> str:
        """How the outcome looks: a verdict, or `stopped`."""
        if self.run.failure:
            return "stopped"
        if self.run.decision:
            return self.run.decision.verdict
        return "skipped" if self.run.repetition else "stopped"

    @property
    def failure(self) -> Failure | None:
        """The message of the task that failed."""
        return self.run.failure

    @property
    def failure_parts(self) -> list[tuple[str, str]]:
        """Its parts, by name."""
        return list(parts_of(self.failure)) if self.failure else []

    @property
    def failure_origin(self) -> str:
        """Which try left it."""
        return origin(self.failure) if self.failure else ""

    @property
    def next_step(self) -> str:
        """What the run-book says of it."""
        return next_step(self.failure) if self.failure else ""

    @property
    def not_reached(self) -> list[str]:
        """Sections of which there is nothing, because the run did not come so far."""
        found = {"quality": self.run.evaluation, "training": self.run.report, "time and list price": self.run.timings}
        return [name for name, document in found.items() if document is None]

    @property
    def tested(self) -> str:
        """What the test split is called."""
        return self.plan.spec.data.tested_name

    @property
    def spans(self) -> list[tuple[str, str]]:
        """What the spans of examples without a time are called, and what was done with each because of what."""
        snapshot = self.run.snapshot
        return [(label_span(self.plan, span.span), span.reason) for span in snapshot.spans] if snapshot else []

    @cached_property
    def days(self) -> list[Day]:
        """Days of the window."""
        return days(self.run)

    @property
    def noteworthy(self) -> list[Day]:
        """Those that are told of one by one."""
        return noteworthy(self.days)

    @property
    def tallest(self) -> int:
        """Rows of the largest day, at least 1."""
        return max((day.rows for day in self.days), default=0) or 1

    @property
    def features(self) -> list[FeatureRow]:
        """Rows of the table of features."""
        return feature_rows(self.run, self.run.statistics) if self.run.statistics else []

    @property
    def changes(self) -> list[Change] | None:
        """What is other than in the champion's run."""
        return since_champion(self.run)

    @property
    def metrics(self) -> list[MetricRow]:
        """Rows of the table of metrics."""
        return metric_rows(self.run, self.run.evaluation) if self.run.evaluation else []

    @property
    def quality_warnings(self) -> list[str]:
        """What speaks against the comparison, by its numbers."""
        return list(quality_warnings(self.run.evaluation)) if self.run.evaluation else []

    @property
    def gain(self) -> Interval | None:
        """The gain over the champion."""
        return interval(self.run, self.run.evaluation) if self.run.evaluation else None

    @cached_property
    def curves(self) -> list[CurveChart]:
        """Curves of both models."""
        return curve_charts(self.run.evaluation) if self.run.evaluation else []

    @property
    def not_judged(self) -> str | None:
        """Why the gain over the champion has no interval."""
        return not_judged(self.run.evaluation) if self.run.evaluation else None

    @property
    def classes(self) -> list[ClassRow]:
        """Rows of the table of classes."""
        return class_rows(self.run.evaluation, self.plan.spec.label) if self.run.evaluation else []

    @property
    def answers(self) -> list[list[Cell]]:
        """Rows of the table of answers by class."""
        return answers(self.run.evaluation) if self.run.evaluation else []

    def class_text(self, number: float) -> str | None:
        """Return the name of the label's class; None: it has none."""
        label = self.plan.spec.label
        return class_text(label, int(number)) if class_names(label) and number == int(number) else None

    @property
    def baselines(self) -> list[BaselineRow]:
        """Rows of the table of answers without a model."""
        metric = self.plan.spec.evaluation.metric
        return baseline_rows(metric, self.run.evaluation) if self.run.evaluation else []

    @property
    def references(self) -> list[ReferenceRow]:
        """Rows of the table of reference lines."""
        return reference_rows(self.run, self.run.evaluation) if self.run.evaluation else []

    @property
    def importance(self) -> ImportanceTable | None:
        """Which features the models rely on."""
        return importance_table(self.run.evaluation) if self.run.evaluation else None

    @property
    def most_important(self) -> tuple[str, ...]:
        """Features that the version surely relies on, for its card."""
        return most_important(self.run.model_card.importance if self.run.model_card else None)

    @property
    def residuals(self) -> Residuals | None:
        """A regression's errors."""
        return residuals(self.run.evaluation) if self.run.evaluation else None

    @property
    def agreement(self) -> Agreement | None:
        """A regression's answers against the labels."""
        return agreement(self.run.evaluation) if self.run.evaluation else None

    @cached_property
    def _slices(self) -> list[SliceRow]:
        return slice_rows(self.run, self.run.evaluation) if self.run.evaluation else []

    @property
    def slices(self) -> list[SliceRow]:
        """Slices that are shown at once."""
        return self._slices[:SLICES_SHOWN]

    @property
    def more_slices(self) -> list[SliceRow]:
        """The rest of them."""
        return self._slices[SLICES_SHOWN:]

    @property
    def forest(self) -> Forest | None:
        """Gains of the slices with their intervals."""
        return forest(self._slices, self.gain, self.plan.spec.evaluation.promote.max_slice_loss)

    @property
    def day_gains(self) -> list[DayRow]:
        """Gains of the test days."""
        return day_rows(self.run.evaluation) if self.run.evaluation else []

    @property
    def drawn_by(self) -> str:
        """What the gain's interval takes as independent."""
        drawn_by = self.run.evaluation.drawn_by if self.run.evaluation else None
        return drawn_by or "rows"

    @property
    def study(self) -> StudyChart | None:
        """The study's chart."""
        return study_chart(self.run.tuning) if self.run.tuning else None

    @property
    def importances(self) -> list[Importance]:
        """What the hyperparameters meant for the score."""
        return importances(self.run.tuning) if self.run.tuning else []

    @property
    def charts(self) -> list[charts.LineChart]:
        """Curves of the training."""
        return training_charts(self.run.report) if self.run.report else []

    @property
    def training_warnings(self) -> list[str]:
        """What speaks against the training, by its report."""
        report, model = self.run.report, self.plan.spec.training.model
        return list(training_warnings(report, model)) if report else []

    @property
    def beginning(self) -> str | None:
        """What the training's weights began as, where it is not the seed alone."""
        return describe_beginning(self.run.train_request, self.run.report)

    @property
    def members(self) -> str | None:
        """How far the networks differ that answer together."""
        return describe_members(self.run.report)

    @property
    def training_settings(self) -> list[Setting]:
        """What the training went by, and whence each number came; nothing of a run without its request."""
        run = self.run
        if run.report is None or run.train_request is None:
            return []
        return training_settings(run.plan, run.train_request, run.report, run.tuning)

    @property
    def unpriced(self) -> list[TaskTiming]:
        """Tasks on which money was spent whose price is unknown."""
        tasks = self.run.timings.tasks if self.run.timings else ()
        return [task for task in tasks if costs(task) and task.estimated_usd is None]

    @property
    def slowest(self) -> float:
        """Seconds of the slowest task."""
        timings = self.run.timings
        return max((task.seconds or 0 for task in timings.tasks), default=0) if timings else 0

    @property
    def took(self) -> str:
        """How long the run took."""
        return _took(self.run.timings) if self.run.timings else ""

    @property
    def elapsed(self) -> str:
        """How long the run took from its start on, with all waiting; empty: not known."""
        seconds = self.run.timings.elapsed_seconds if self.run.timings else None
        if seconds is not None and 600 <= seconds < 3570:
            return f"{round(seconds / 60)} min"
        return duration(seconds) if seconds is not None else ""

    @property
    def usd(self) -> str | None:
        """What it cost."""
        return total_usd(self.run.timings) if self.run.timings else None


def headline(run: Run) -> str:
    """Return the run's outcome in a few words, or where it stopped."""
    if run.asked:
        return "Waits for approval"
    failure = run.failure
    if run.decision:
        verdict = VERDICT_WORDS[run.decision.verdict]
        waits = run.decision.verdict == "promote" and not (run.deployment and run.deployment.deployed)
        if failure:
            return f"{verdict}, {heading(failure)[:1].lower()}{heading(failure)[1:]}"
        return f"{verdict}, not deployed" if waits else verdict
    if run.repetition:
        return NOTHING_NEW
    if run.checks and not run.checks.passed:
        return "Stopped by the data checks"
    if failure:
        return heading(failure)
    return f"Stopped at {next(TASK_OF_KIND[kind] for kind in expected_kinds(run.plan) if not run.has(kind))}"


def outcome(run: Run) -> str:
    """Return the decision's sentence; without a decision, why there is none."""
    if run.decision:
        return run.decision.message
    if run.repetition:
        return run.repetition.message
    findings = run.checks.findings if run.checks else ()
    if blocking := [finding.message.rstrip(".") for finding in findings if finding.severity == "block"]:
        sentence = "; ".join(blocking)
        return sentence if sentence.endswith(("?", "!")) else f"{sentence}."
    return run.progress


def _took(timings: Timings) -> str:
    seconds, unknown = total_seconds(timings)
    return f"{'at least ' if unknown else ''}{duration(seconds)}"

"""Putting the page together: what each section shows, and the template that shows it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jinja2

from retraining.core.documents import Timings
from retraining.core.report import charts
from retraining.core.report.changes import days, noteworthy, since_champion
from retraining.core.report.classes import answers, class_rows
from retraining.core.report.costs import total_seconds, total_usd
from retraining.core.report.features import feature_rows
from retraining.core.report.quality import (
    INTERVAL_WIDTH,
    SLICES_SHOWN,
    TRACK_WIDTH,
    interval,
    metric_rows,
    slice_rows,
    training_charts,
)
from retraining.core.report.run import CHAMPION_PLAN, TASK_OF_KIND, Run, expected_kinds, read_run
from retraining.core.report.study import NAMES, ROW, importances, study_chart
from retraining.core.settings import include_path

VERDICT_WORDS = {"promote": "Promoted", "reject": "Rejected", "record": "Recorded"}
DAYS_SHOWN = 6


def render(raw: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the run's page: one self-contained HTML file without scripts; the same documents give the same bytes.

    Args:
        raw: Stored JSON by kind, the plan at least; beside them, under `champion_plan`, the plan of the run that made
            the champion. Kinds that the page does not show are left out.

    Raises:
        ContractError: There is no plan, or a document does not obey its contract.
    """
    run = read_run({kind: values for kind, values in raw.items() if kind in TASK_OF_KIND or kind == CHAMPION_PLAN})
    slices = slice_rows(run, run.evaluation) if run.evaluation else []
    found = days(run)
    return (
        _environment()
        .get_template("report/page.html.j2")
        .render(
            run=run,
            plan=run.plan,
            headline=headline(run),
            outcome=outcome(run),
            tone=run.decision.verdict if run.decision else "stopped",
            days=found,
            noteworthy=noteworthy(found),
            days_shown=DAYS_SHOWN,
            tallest=max((day.rows for day in found), default=0) or 1,
            features=feature_rows(run, run.statistics) if run.statistics else [],
            changes=since_champion(run),
            metrics=metric_rows(run, run.evaluation) if run.evaluation else [],
            gain=interval(run, run.evaluation) if run.evaluation else None,
            classes=class_rows(run.evaluation) if run.evaluation else [],
            answers=answers(run.evaluation) if run.evaluation else [],
            slices=slices[:SLICES_SHOWN],
            more_slices=slices[SLICES_SHOWN:],
            study=study_chart(run.tuning) if run.tuning else None,
            importances=importances(run.tuning) if run.tuning else [],
            bar_start=NAMES,
            bar_row=ROW,
            charts=training_charts(run.report) if run.report else [],
            chart=charts,
            interval_width=INTERVAL_WIDTH,
            track_width=TRACK_WIDTH,
            slowest=max((task.seconds or 0 for task in run.timings.tasks), default=0) if run.timings else 0,
            took=_took(run.timings) if run.timings else "",
            usd=total_usd(run.timings) if run.timings else None,
        )
    )


def headline(run: Run) -> str:
    """Return the run's outcome in a few words, or where it stopped."""
    if run.decision:
        verdict = VERDICT_WORDS[run.decision.verdict]
        waits = run.decision.verdict == "promote" and not (run.deployment and run.deployment.deployed)
        return f"{verdict}, not deployed" if waits else verdict
    if run.checks and not run.checks.passed:
        return "Stopped by the data checks"
    return f"Stopped at {next(TASK_OF_KIND[kind] for kind in expected_kinds(run.plan) if not run.has(kind))}"


def outcome(run: Run) -> str:
    """Return the decision's sentence; without a decision, why there is none."""
    if run.decision:
        return run.decision.words
    findings = run.checks.findings if run.checks else ()
    if blocking := [finding.words.rstrip(".") for finding in findings if finding.severity == "block"]:
        sentence = "; ".join(blocking)
        return sentence if sentence.endswith(("?", "!")) else f"{sentence}."
    return run.why_missing("decision")


def duration(seconds: float | None) -> str:
    """Return seconds as people read them: `41.5 s`, `1 min 58 s`, `2 h 05 min`."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _took(timings: Timings) -> str:
    seconds, unknown = total_seconds(timings)
    return f"{'at least ' if unknown else ''}{duration(seconds)}"


def size(count: int) -> str:
    """Return bytes as people read them, in powers of 1000: `97.1 kB`."""
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


@functools.cache  # templates are compiled once
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(include_path() / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number
    environment.filters["signed"] = lambda value: "-" if value is None else f"{value:+.4f}"
    environment.filters["count"] = lambda value: f"{value:,}"
    environment.filters["duration"] = duration
    environment.filters["size"] = size
    environment.filters["usd"] = lambda value: "-" if value is None else f"{value:.4f}"
    return environment


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"

"""Putting the page together: what each section shows, and the template that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jinja2

from retraining.core.report import charts
from retraining.core.report.changes import days, since_champion
from retraining.core.report.quality import SLICES_SHOWN, interval, metric_rows, slice_rows, training_charts
from retraining.core.report.run import CHAMPION_PLAN, TASK_OF_KIND, Run, read_run
from retraining.core.settings import include_path

VERDICT_WORDS = {"promote": "Promoted", "reject": "Rejected", "record": "Recorded"}


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
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            run=run,
            plan=run.plan,
            headline=headline(run),
            tone=run.decision.verdict if run.decision else "stopped",
            days=days(run),
            tallest=max((day.rows for day in days(run)), default=0) or 1,
            changes=since_champion(run),
            metrics=metric_rows(run, run.evaluation) if run.evaluation else [],
            gain=interval(run, run.evaluation) if run.evaluation else None,
            slices=slices[:SLICES_SHOWN],
            slices_left=max(0, len(slices) - SLICES_SHOWN),
            charts=training_charts(run.report) if run.report else [],
            chart=charts,
        )
    )


def headline(run: Run) -> str:
    """Return the run's outcome in one or two words, or where it stopped."""
    if run.decision:
        return VERDICT_WORDS[run.decision.verdict]
    if run.checks and not run.checks.passed:
        return "Stopped by the data checks"
    order = list(TASK_OF_KIND)
    return f"Stopped at {next(TASK_OF_KIND[kind] for kind in order if not run.has(kind))}"


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
    environment.filters["usd"] = lambda value: "-" if value is None else f"{value:.4f}"
    return environment


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"

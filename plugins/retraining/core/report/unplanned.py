"""The page of a run that came to no plan: it has no documents but the messages of its failed tries.

In: these. Out: one self-contained page without scripts, whose top is that of every failed run's page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retraining.core.documents import Failure
from retraining.core.naming import pages, storage
from retraining.core.report.failures import ENDED_BY_PLAN, heading, newest_failure, next_step, origin, parts_of
from retraining.core.report.rendering import render_template


@dataclass(frozen=True, kw_only=True)
class UnplannedPage:
    """What the page shows; its template reads nothing else.

    Attributes:
        failure: The newest message.
        earlier: The others, newest first.
        all_runs: Address of the page with all runs of the model.
        runbook_url: Address of the run-book; None: it is named as a file.
    """

    failure: Failure
    earlier: Sequence[Failure]
    all_runs: str
    runbook_url: str | None

    @property
    def headline(self) -> str:
        """The outcome in a few words."""
        return heading(self.failure)

    @property
    def tone(self) -> str:
        """How that looks."""
        return "skipped" if self.failure.error == ENDED_BY_PLAN else "stopped"

    @property
    def failure_parts(self) -> list[tuple[str, str]]:
        """Parts of the message, by name."""
        return list(parts_of(self.failure))

    @property
    def failure_origin(self) -> str:
        """Which try left it."""
        return origin(self.failure)

    @property
    def next_step(self) -> str:
        """What the run-book says."""
        return next_step(self.failure)


def render_unplanned(
    failures: Sequence[Failure], bucket: str, airflow: str = "", runbook_url: str | None = None
) -> str:
    """Return the page; the same messages give the same bytes.

    Args:
        failures: The messages of the run's tries, at least one.
        bucket: This environment's.
        airflow: Address of Airflow's UI, which shows the other pages; empty: it is not configured.
        runbook_url: Address of the run-book; None: it is named as a file.
    """
    newest = newest_failure(failures)
    page = UnplannedPage(
        failure=newest,
        earlier=sorted((each for each in failures if each is not newest), key=lambda each: each.failed_at)[::-1],
        all_runs=pages.page_address(storage.all_runs_page_uri(bucket, newest.model), airflow),
        runbook_url=runbook_url,
    )
    return render_template("report/unplanned.html.j2", page=page)

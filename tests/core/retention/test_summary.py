"""What a cleaning says of itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from retraining.core.documents import CleanedSpan, Maintenance, MaintenancePlan
from retraining.core.retention.summary import SHOWN, conclude, plan_lines, result_lines, untouched
from tests.support.contracts import EXAMPLES


@pytest.fixture
def plan() -> MaintenancePlan:
    """Two spans go."""
    return MaintenancePlan.parse((EXAMPLES / "maintenance_plan__one_span_goes.json").read_bytes())


def test_the_plan_is_a_table_and_a_line_per_fact(plan) -> None:
    """Columns stand under each other; what goes, which jobs end, which tables do not."""
    lines = plan_lines(plan)
    assert lines[:3] == [
        "as of 2013-12-24 12:30 UTC, older than 30 days",
        "model  kept  goes  MB   because",
        "late   41    2     1.5  10 of a version with an alias, 31 of recent runs",
    ]
    assert sum(line.startswith("goes: gs://") for line in lines) == 2
    assert any(line.startswith("job 17 of 20131220t030000z-ffeeddccbbaa ends: nobody has looked") for line in lines)
    assert any(line.startswith("table my-project.retraining.run_late") for line in lines)
    assert "dry run" not in lines[-1]


def test_a_long_list_is_cut_in_the_log_only(plan) -> None:
    """The document has all."""
    (found,) = plan.models
    many = found.model_copy(update={"delete": found.delete[:1] * (SHOWN + 7)})
    lines = plan_lines(plan.model_copy(update={"models": (many,)}))
    assert sum(line.startswith("goes: gs://") for line in lines) == SHOWN
    assert "goes: 7 more, all of" in "".join(lines)


def test_a_refusal_stands_where_the_reason_stands(plan) -> None:
    """And in the sentence."""
    (found,) = plan.models
    refused = untouched(found, "nothing of late is deleted: x.json: not JSON.")
    done = conclude(plan, plan.digest(), [refused], [], [])
    assert done.message.startswith("0 spans and 0")
    assert "Nothing of late" in done.message
    assert result_lines(done)[1].endswith("nothing of late is deleted: x.json: not JSON.")


def test_the_result_counts_what_is_gone_not_what_was_meant(plan) -> None:
    """A spared span is kept, and named with its reason."""
    done = Maintenance.parse((EXAMPLES / "maintenance__one_span_went.json").read_bytes())
    lines = result_lines(done)
    assert lines[1].split()[:4] == ["late", "42", "1", "1.0"]
    assert lines[1].endswith("1 spared after all")
    spared = [span for span in done.models[0].spans if span.outcome == "spared"]
    assert [line for line in lines if line.startswith("spared")] == [
        f"spared: {span.uri}: {span.message}" for span in spared
    ]
    assert lines[-1] == done.message
    assert isinstance(spared[0], CleanedSpan)


def test_times_are_the_runs_own(plan) -> None:
    """The result carries the plan's time and its digest: what was decided on what can be found again."""
    done = conclude(plan, plan.digest(), [], [], [])
    assert (done.as_of, done.plan_sha256) == (datetime(2013, 12, 24, 12, 30, tzinfo=UTC), plan.digest())

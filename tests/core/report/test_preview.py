"""What a preview says of a run's data."""

from __future__ import annotations

from retraining.core.checks import dataset
from retraining.core.checks.history import build_history
from retraining.core.report.preview import describe_preview
from tests.support.small_model import make_plan, make_snapshot, make_statistics


def test_it_says_splits_export_and_verdict():
    plan = make_plan()
    taken, counted = make_snapshot(plan), make_statistics(plan)
    judged = dataset.check_data(plan, taken, counted, build_history([]))
    lines = list(describe_preview(plan, taken, counted, judged))
    assert lines[0].startswith("late as of 2013-11-20 03:00:00 UTC: a preview")
    assert "train     80 rows, mean label 0.2" in lines
    assert "export    300 rows of 3 of 3 days; earlier runs exported the others" in lines
    assert lines[-1] == "data      fit to train on"


def test_a_finding_that_blocks_is_the_verdict():
    plan = make_plan()
    taken, counted = make_snapshot(plan), make_statistics(plan, rate=0.9)
    judged = dataset.check_data(plan, taken, counted, build_history([]))
    lines = list(describe_preview(plan, taken, counted, judged))
    assert any(line.startswith("block     label_rate: ") for line in lines)
    assert lines[-1] == "data      NOT fit to train on: a run would end here"

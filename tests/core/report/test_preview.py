"""What a preview says of a run's data."""

from __future__ import annotations

from retraining.core.checks import dataset
from retraining.core.checks.history import build_history
from retraining.core.report.terminal import describe_preview
from tests.support.small_model import make_plan, make_snapshot, make_statistics


def test_it_says_splits_export_and_verdict():
    plan = make_plan()
    taken, counted = make_snapshot(plan), make_statistics(plan)
    judged = dataset.check_data(plan, taken, counted, build_history([]))
    lines = list(describe_preview(plan, taken, counted, judged))
    assert lines[0].startswith("late as of 2013-11-20 03:00:00")
    assert "train     80 rows, mean label 0.2" in lines
    assert any(line.startswith("export    300 rows") for line in lines)
    assert lines[-1].startswith("data      fit")


def test_it_names_the_stage():
    plan = make_plan()
    taken, counted = make_snapshot(plan), make_statistics(plan)
    judged = dataset.check_data(plan, taken, counted, build_history([]))
    staged = plan.model_copy(update={"stage": "dev"})
    assert list(describe_preview(staged, taken, counted, judged))[1] == "stage     dev"
    assert not any(line.startswith("stage") for line in describe_preview(plan, taken, counted, judged))


def test_examples_without_a_time_have_no_days():
    plan = make_plan()
    data = plan.spec.data.model_copy(update={"split": "hash", "event_time": None, "test_percent": 20})
    timeless = plan.model_copy(update={"spec": plan.spec.model_copy(update={"data": data})})
    taken, counted = make_snapshot(plan), make_statistics(plan)
    judged = dataset.check_data(plan, taken, counted, build_history([]))
    reused = taken.spans[0].model_copy(update={"action": "reuse"})
    lines = list(
        describe_preview(timeless, taken.model_copy(update={"spans": (reused, *taken.spans[1:])}), counted, judged)
    )
    (export,) = [line for line in lines if line.startswith("export")]
    assert "2 of 3 parts" in export
    assert not any(line.startswith("window") for line in lines)


def test_a_finding_that_blocks_is_the_verdict():
    plan = make_plan()
    taken, counted = make_snapshot(plan), make_statistics(plan, rate=0.9)
    judged = dataset.check_data(plan, taken, counted, build_history([]))
    lines = list(describe_preview(plan, taken, counted, judged))
    assert any(line.startswith("block     label_rate: ") for line in lines)
    assert lines[-1].startswith("data      NOT fit")

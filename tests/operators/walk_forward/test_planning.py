"""The plan of a walk-forward in the cloud in memory: a dry run writes nothing, versions wait for their turn."""

from __future__ import annotations

from typing import Any

import pytest

from retraining.core.documents import Plan, Spending, WalkForward, WalkForwardPlan
from retraining.core.naming import storage
from retraining.operators.airflow.params import walk_forward_params
from retraining.operators.walk_forward.planning import ListDatesOperator, PlanVersionOperator, PlanWalkForwardOperator
from retraining.operators.walk_forward.report import ReportWalkForwardOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException, DownstreamTasksSkipped
from tests.support.fakes.cloud import FakeCloud

MODEL = "flight_delays"
FORM = {name: param.value for name, param in walk_forward_params().items()}
DATES = {"dry_run": False, "first": "2013-09-04", "last": "2013-10-02", "at_once": 2}


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that the operators meet."""
    return FakeCloud()


@pytest.fixture
def walk(make_run: Any) -> Any:
    """Makes a run with Params over the form's."""
    return lambda **params: make_run(dag_id=f"walk_forward__{MODEL}", params={**FORM, **params})


def plan(cloud: FakeCloud, run: Any) -> dict[str, Any]:
    """Run the first task."""
    return dict(run.execute(PlanWalkForwardOperator(task_id="plan", model=MODEL, cloud=cloud.connect)))


def plan_version(cloud: FakeCloud, run: Any, number: int, as_of: str) -> dict[str, Any]:
    """Plan a version; raises where it waits."""
    task = PlanVersionOperator(task_id="plan_version", model=MODEL, as_of=as_of, cloud=cloud.connect)
    return dict(run.execute(task, map_index=number))


def test_an_untouched_form_only_says_what_there_would_be(cloud, walk, capsys) -> None:
    """Dates, spans, jobs, dollars; nothing is written but whose the bucket is."""
    with pytest.raises(DownstreamTasksSkipped):
        plan(cloud, walk())
    said = capsys.readouterr().out
    assert "13 versions, as of each 7 days" in said
    assert "40 jobs" in said
    assert "USD at list prices" in said
    assert list(cloud.artifacts.objects) == [storage.owner_uri("bucket")]


def test_the_same_request_is_the_same_walk_forward(cloud, walk) -> None:
    """Another form, or another spec, is another one; its folder is that of the run that exports the days."""
    first, again = (plan(cloud, walk(**DATES)) for _ in range(2))
    assert first == again
    assert plan(cloud, walk(**DATES, horizons=[1, 7]))["run_uri"] != first["run_uri"]
    folder = first["run_uri"]
    assert folder.startswith(f"gs://bucket/{MODEL}/walk_forward/")
    days = Plan.parse(cloud.artifacts.objects[f"{folder}/plan.json"])
    walked = WalkForwardPlan.parse(cloud.artifacts.objects[f"{folder}/walk_forward_plan.json"])
    assert days.run_uri == walked.run_uri == folder
    assert days.window.test_start == walked.dates[0] == walked.days_from
    assert days.window.end == walked.days_until
    assert not days.deploy
    assert days.as_of.date() > walked.days_until, "the labels of the last day are known by then"


def test_versions_take_turns(cloud, walk) -> None:
    """As many at a time as the form says; one that failed makes room, too."""
    plan(cloud, walk(**{**DATES, "at_once": 5}))
    run = walk(**DATES)  # the same walk-forward again, with another form
    plan(cloud, run)
    dates = run.execute(ListDatesOperator(task_id="dates", cloud=cloud.connect))
    assert dates == ["2013-09-04", "2013-09-11", "2013-09-18", "2013-09-25", "2013-10-02"]
    first = plan_version(cloud, run, 0, dates[0])
    plan_version(cloud, run, 1, dates[1])
    with pytest.raises(AirflowRescheduleException):
        plan_version(cloud, run, 2, dates[2])
    run.xcoms["score_1", "return_value"] = {}  # scored
    plan_version(cloud, run, 2, dates[2])
    with pytest.raises(AirflowRescheduleException):
        plan_version(cloud, run, 3, dates[3])
    planned = Plan.parse(cloud.artifacts.objects[f"{first['run_uri']}/plan.json"])
    assert planned.mode == "backfill"
    assert planned.window.end.isoformat() == "2013-09-03"
    assert planned.spec.tuning is not None
    assert planned.spec.tuning.search == "never"


def test_a_version_is_shared_by_walk_forwards(cloud, walk) -> None:
    """It is the same run whichever walk-forward asks for it first."""
    folders = []
    for changed in ({}, {"last": "2013-09-25"}):
        run = walk(**{**DATES, **changed})
        plan(cloud, run)
        folders.append(plan_version(cloud, run, 0, "2013-09-04")["run_uri"])
    assert folders[0] == folders[1]


def test_force_makes_it_anew(cloud, walk) -> None:
    """As after late rows: another walk-forward, and other versions."""
    folders = []
    for forced in (False, True):
        run = walk(**DATES, force=forced)
        folders.append((plan(cloud, run)["run_uri"], plan_version(cloud, run, 0, "2013-09-04")["run_uri"]))
    assert folders[0][0] != folders[1][0]
    assert folders[0][1] != folders[1][1]


def month(cloud: FakeCloud) -> list[Any]:
    """What the month's budgets know of the model, in order of its keys."""
    uri = storage.spending_uri("bucket", f"{cloud.clock.now():%Y-%m}", MODEL)
    return [each for _, each in sorted(Spending.parse(cloud.artifacts.objects[uri]).spent.items())]


def test_two_walk_forwards_with_one_version_each_note_what_they_paid(cloud, walk) -> None:
    """The second one's nothing does not take the place of the first one's sum, and none counts as a nightly run."""
    for run_id, job in (("manual__1", "jobs/1"), ("manual__2", None)):
        run = walk(**DATES)
        run.run_id = run_id
        plan(cloud, run)
        dates = run.execute(ListDatesOperator(task_id="dates", cloud=cloud.connect))
        plan_version(cloud, run, 0, dates[0])
        expected = [each for each in month(cloud) if not each.ended]
        assert len(expected) == 1
        assert expected[0].usd > 0
        seconds = 3600.0 if job else None
        for task in ("export_version", "train"):
            run.xcoms[f"{task}_0", "return_value"] = {"job": job, "seconds": seconds, "spot_seconds": 0.0}
        result = run.execute(ReportWalkForwardOperator(task_id="report", cloud=cloud.connect))
        assert result["versions"] == 0
        assert result["answer"].startswith("Not judged")
    ended = month(cloud)
    assert {each.work for each in ended} == {"walk_forward"}
    assert all(each.ended for each in ended)
    assert len(ended) == 4, "of each walk-forward its days and the version"
    assert sorted((each.usd or 0) > 0.1 for each in ended) == [False, False, False, True]


def test_what_is_missing_is_named_on_the_page(cloud, walk) -> None:
    """A version that failed, those that never began, and where to look."""
    run = walk(**DATES)
    folder = plan(cloud, run)["run_uri"]
    plan_version(cloud, run, 0, "2013-09-04")
    run.execute(ReportWalkForwardOperator(task_id="report", cloud=cloud.connect))
    found = WalkForward.parse(cloud.artifacts.objects[f"{folder}/walk_forward.json"])
    assert [version.missing for version in found.versions] == [
        "task snapshot_version [0]: not run; its log says why",
        *(f"task plan_version [{number}]: not run; its log says why" for number in range(1, 5)),
    ]
    assert found.pays is None
    assert b"task snapshot_version [0]" in cloud.artifacts.objects[f"{folder}/report.html"]


def test_what_cannot_be_done_is_refused_before_anything_is_written(cloud, walk) -> None:
    for changed in ({"last": "2030-01-01"}, {"horizons": [7, 1]}, {"first": "2013-10-01", "last": "2013-09-01"}):
        with pytest.raises(AirflowFailException):
            plan(cloud, walk(**{**DATES, **changed}))
    with pytest.raises(AirflowFailException, match="Param first"):
        plan(cloud, walk(**{**DATES, "first": "2013-02-30"}))
    with pytest.raises(AirflowFailException, match="no Param 'evry'"):
        plan(cloud, walk(**DATES, evry=7))
    assert not any("walk_forward" in uri for uri in cloud.artifacts.objects)

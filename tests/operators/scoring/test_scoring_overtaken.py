"""Two scorings of one destination, in every order: the newest answers stay, nothing is paid for twice, nobody lies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from retraining.core.errors import ConflictError
from retraining.core.scoring.answers import answers_table
from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
from tests.support.scenes.scoring import DESTINATION, ScoringScene, change_section, columns

ALL = ("plan", "snapshot", "predict", "write", "cancel_jobs", "clean_up")
DAY = f"{DESTINATION}$20131120"
OLD, NEW = "2013-11-20T03:00:00Z", "2013-11-20T05:00:00Z"


@pytest.fixture
def scene(make_run: Any) -> ScoringScene:
    """A champion, and a table to score."""
    return ScoringScene(make_run)


def held(scene: ScoringScene, run: Any) -> bool:
    """Whether the day has the answers of a run, whole."""
    plan = scene.plan(run)
    return scene.tables.held.get(DAY) == (plan.as_of, answers_table(plan))


def claims(scene: ScoringScene) -> list[str]:
    """Who has a destination now."""
    return [uri for uri in scene.cloud.artifacts.objects if "/destinations/" in uri]


@pytest.mark.parametrize("partition", [True, False], ids=["a day", "the whole table"])
def test_an_older_scoring_replaces_no_newer_one(scene, monkeypatch, tmp_path, partition: bool) -> None:
    """It is told before a job is paid for, and is no success."""
    change_section(monkeypatch, tmp_path, partition=partition)
    newer, older = scene.start("manual__1", as_of=NEW), scene.start("manual__2", as_of=OLD)
    scene.execute(newer, *ALL)
    before = dict(scene.tables.held)
    with refuses(AirflowFailException, found=(f"as of {NEW}", f"as of {OLD}"), way_out="stays as"):
        scene.execute(older, "plan", "snapshot")
    assert (scene.tables.held, len(scene.cloud.jobs.specs)) == (before, 1)
    scene.execute(older, "clean_up")
    assert claims(scene) == []


def test_a_newer_scoring_replaces_an_older_one(scene) -> None:
    """And one of the same time, with Force."""
    for number, (as_of, force) in enumerate([(OLD, False), (OLD, True), (NEW, False)]):
        run = scene.start(f"manual__{number}", as_of=as_of, force=force)
        scene.execute(run, *ALL)
        assert held(scene, run)


def test_older_rows_may_be_brought_back_once_the_newer_ones_are_deleted(scene) -> None:
    """As the message says; without a second job."""
    older = scene.start("manual__2", as_of=OLD)
    scene.execute(older, "plan", "snapshot", "predict", "clean_up")
    scene.execute(scene.start("manual__1", as_of=NEW), *ALL)
    with refuses(AirflowFailException, way_out="clear this task"):
        scene.execute(older, "write", max_tries=1)
    scene.tables.held.clear()
    scene.execute(older, "write", "clean_up", max_tries=2)
    assert held(scene, older)
    assert len(scene.cloud.jobs.specs) == 2


@pytest.mark.parametrize("other", [OLD, NEW], ids=["same time, Force", "newer"])
@pytest.mark.parametrize("by_hand", [False, True], ids=["cleaned up", "claim deleted by hand"])
@pytest.mark.parametrize("place", ["number", "claim", "table of answers", "write"])
def test_a_write_that_outlived_its_run_replaces_nothing(scene, place: str, by_hand: bool, other: str) -> None:
    """Stopped anywhere between its look at the claim and its write, while another run scored the day."""
    first, second = scene.start("manual__1", as_of=OLD), scene.start("manual__2", as_of=other, force=True)
    scene.execute(first, "plan", "snapshot", "predict")

    def meanwhile() -> None:
        if by_hand:
            (claim,) = claims(scene)
            scene.cloud.artifacts.take(claim)
        else:
            scene.execute(first, "clean_up")
        scene.execute(second, *ALL)

    scene.tables.before[place] = meanwhile
    with pytest.raises((ConflictError, AirflowFailException), match=r"newer|claim on"):
        scene.execute(first, "write")
    assert held(scene, second)
    assert len(scene.cloud.jobs.specs) == 2
    scene.execute(first, "clean_up")
    assert claims(scene) == []
    third = scene.start("manual__3", as_of=other, force=True)
    scene.execute(third, *ALL)
    assert held(scene, third)


@pytest.mark.parametrize("place", ["number", "claim", "write"])
def test_a_run_goes_on_where_one_that_outlived_its_claim_meets_it(scene, place: str) -> None:
    """The other way round: the late one takes a number while the run that has the claim is about to write."""
    late, run = scene.start("manual__1", as_of=OLD), scene.start("manual__2", as_of=OLD, force=True)
    scene.execute(late, "plan", "snapshot", "predict")

    def meanwhile() -> None:
        scene.execute(late, "clean_up")
        scene.execute(run, "plan", "snapshot", "predict")
        scene.tables.before[place] = lambda: scene.tables.claims.append((DAY, 1, "the late one"))
        scene.execute(run, "write", "cancel_jobs", "clean_up")

    scene.tables.before["number"] = meanwhile
    with pytest.raises(ConflictError):
        scene.execute(late, "write")
    assert held(scene, run)
    assert claims(scene) == []


def test_a_write_after_the_clean_up_of_its_run_finds_no_right(scene) -> None:
    """Although nobody else has come; the cleared task takes one of its own."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot", "predict")
    scene.tables.before["write"] = lambda: scene.execute(run, "clean_up")
    with refuses(ConflictError, found="claim on the destination"):
        scene.execute(run, "write")
    assert scene.tables.written == []
    scene.execute(run, "write", "clean_up", max_tries=1)
    assert held(scene, run)
    assert len(scene.cloud.jobs.specs) == 1


def test_a_destination_that_is_dropped_before_the_write_is_made_again(scene) -> None:
    """No second job is paid for."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot", "predict")
    scene.tables.drop()
    scene.execute(run, "write", "cancel_jobs", "clean_up")
    assert held(scene, run)
    assert len(scene.cloud.jobs.specs) == 1


def test_a_destination_that_is_dropped_under_the_write_is_made_by_the_cleared_task(scene) -> None:
    """The job of the write found no table."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot", "predict")
    scene.tables.before["write"] = scene.tables.drop
    with pytest.raises(AirflowFailException, match="Not found"):
        scene.execute(run, "write")
    scene.execute(run, "cancel_jobs", "clean_up")
    scene.execute(run, "write", "cancel_jobs", "clean_up", max_tries=1)
    assert held(scene, run)
    assert len(scene.cloud.jobs.specs) == 1


def test_a_run_of_an_earlier_release_makes_the_table_of_claims_when_it_writes(scene) -> None:
    """Its snapshot knew of none."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot", "predict")
    scene.cloud.warehouse.delete_table("local-project.retraining.retraining_claims")
    scene.execute(run, "write", "cancel_jobs", "clean_up")
    assert held(scene, run)
    assert len(scene.cloud.jobs.specs) == 1


def test_another_table_in_the_place_of_the_destination_is_left_alone(scene) -> None:
    """It came between the checks and the write."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot", "predict")
    scene.cloud.warehouse.schemas[DESTINATION] = columns(name="STRING")
    with refuses(AirflowFailException, found="columns name STRING"):
        scene.execute(run, "write")
    assert scene.tables.written == []


@pytest.mark.parametrize("how", ["cleared", "another run with the same inputs"])
@pytest.mark.parametrize("what", ["the table", "the day"])
def test_what_is_dropped_after_the_end_is_written_again_from_what_was_paid_for(scene, what: str, how: str) -> None:
    """Within the days that the answers are kept."""
    run = scene.start()
    scene.execute(run, *ALL)
    if what == "the table":
        scene.tables.drop()
    scene.tables.held.clear()
    again, whose = (run, {"max_tries": 4}) if how == "cleared" else (scene.start("manual__2"), {})
    scene.execute(again, *ALL, **whose)
    assert held(scene, run)
    assert (len(scene.cloud.jobs.specs), len(scene.tables.written)) == (1, 2)
    assert claims(scene) == []


def test_answers_that_have_expired_are_paid_for_by_force_alone(scene) -> None:
    """The message says so; a cleared run is no success while its destination is empty."""
    run = scene.start()
    scene.execute(run, *ALL)
    scene.tables.drop()
    scene.cloud.warehouse.delete_table(answers_table(scene.plan(run)))
    with refuses(AirflowFailException, found="no such table", way_out="with Force"):
        scene.execute(run, "write", max_tries=4)
    scene.execute(run, "clean_up", max_tries=4)
    forced = scene.start("manual__2", force=True)
    scene.execute(forced, *ALL)
    assert held(scene, forced)


def test_a_cleared_scoring_that_was_overtaken_stays_overtaken(scene) -> None:
    """Newer answers are in the place of its own: there is nothing to do."""
    older, newer = scene.start("manual__1", as_of=OLD), scene.start("manual__2", as_of=NEW)
    scene.execute(older, *ALL)
    scene.execute(newer, *ALL)
    scene.execute(older, *ALL, max_tries=4)
    assert held(scene, newer)
    assert (len(scene.cloud.jobs.specs), len(scene.tables.written)) == (2, 2)
    assert scene.tables.held[DAY][0] == datetime.fromisoformat(NEW)

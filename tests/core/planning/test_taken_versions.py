"""What two stages may have otherwise, and what makes a version another model; what the plan and its key say of it."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from retraining.core import settings
from retraining.core.documents import GateCode, Plan, Query
from retraining.core.errors import PlanError
from retraining.core.planning import plan, taken_versions
from retraining.core.planning.taken_versions import TakenVersion
from retraining.core.planning.upgrades import key_changes
from tests.support.contracts import EXAMPLES
from tests.support.refusals import refuses
from tests.support.small_model import AS_OF, ENVIRON, SQL, make_plan, make_spec
from tests.support.small_taken import KEY, taken_from

DIGEST = f"sha256:{'b' * 64}"
GATE = GateCode(function="late.py:judge", sha256="c" * 64)
QUERY = Query(path="late/whole.sql", sql="SELECT 1", sha256="d" * 64)


def version_of(there: Plan) -> TakenVersion:
    return TakenVersion(value=taken_from(), plan=there, manifest=None, stored={})


def test_a_plan_says_what_it_takes_over_and_its_key_follows(small_plan):
    """It trains nothing, so that no machines of a training are planned or paid; an upgrade knows the same key."""
    planned = make_plan(taken_from=taken_from())
    assert planned.run_key != small_plan.run_key
    assert make_plan(taken_from=taken_from(model_digest="d" * 64)).run_key != planned.run_key
    assert "train" not in planned.machines
    assert key_changes(planned.to_bytes(), "plan.json") == []
    assert Plan.parse(planned.to_bytes()) == planned
    (line,) = [line for line in plan.explain(planned) if line.startswith("nothing is trained")]
    assert line.endswith(
        f"the version of run {KEY} in stage staging is taken over, which was trained as of {DAY_BEFORE}"
    )


DAY_BEFORE = "2013-11-19T03:00:00Z"


def test_a_plan_of_an_earlier_release_takes_nothing_over():
    assert Plan.parse((EXAMPLES / "plan__scheduled.json").read_bytes()).taken_from is None


@pytest.mark.parametrize(
    "changes",
    [
        {
            "spec": make_spec(
                priority=9, service_account="other@p.iam.gserviceaccount.com", machine_pool="shared", jobs="chained"
            )
        },
        {"overrides": {"data.sample_percent": 20, "data.window_days": 40, "training.epochs": 2}},
        {"spec": make_spec(tags=["another"])},
    ],
    ids=["as whom", "how much", "tags"],
)
def test_what_a_stage_may_change_makes_no_other_model(small_plan, changes):
    """Nor does what follows from it, as a validation of whole days."""
    taken_versions.require_same_model(version_of(make_plan(**changes)), small_plan)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"overrides": {"training.hyperparameters.learning_rate": 0.5}}, "learning_rate is 0.5 there"),
        ({"overrides": {"training.batch_size": 7}}, "training.batch_size is 7 there"),
        ({"overrides": {"data.test_days": 1}}, "data.test_days is 1 there"),
        ({"sql": SQL + " "}, "SQL of "),
        (
            {"settings": settings.load({**ENVIRON, "RETRAINING_TRAINER_IMAGE": "host/trainer:0.0.9"})},
            "TRAINER_IMAGE is",
        ),
        ({"settings": settings.load({**ENVIRON, "RETRAINING_SERVING_IMAGE": "host/other:1"})}, "SERVING_IMAGE is"),
    ],
)
def test_another_model_is_refused_by_what_differs(small_plan, changes, found):
    with refuses(PlanError, where=f"Param taken_from, staging/{KEY}", found=found, way_out="images by digest"):
        taken_versions.require_same_model(version_of(make_plan(**changes)), small_plan)


@pytest.mark.parametrize(
    ("there", "here", "found"),
    [
        ({"gates": {"own": GATE}}, {}, f"code of gate own: SHA-256 {'c' * 12} there, none here"),
        ({}, {"gates": {"own": GATE}}, f"code of gate own: SHA-256 none there, {'c' * 12} here"),
        ({}, {"assertions": {"whole": QUERY}}, f"SQL of assertion whole: SHA-256 none there, {'d' * 12} here"),
    ],
)
def test_checks_and_gates_of_a_teams_own_are_the_same_code_in_both(small_plan, there, here, found):
    """What was never judged by this stage's gates is not what it asks for."""
    taken = version_of(small_plan.model_copy(update=there))
    with refuses(PlanError, found=found):
        taken_versions.require_same_model(taken, small_plan.model_copy(update=here))
    both = small_plan.model_copy(update={**there, **here})
    taken_versions.require_same_model(version_of(both), both)


def test_only_the_first_differences_are_named(small_plan):
    changed = {f"training.hyperparameters.h{number}": number for number in range(9)}
    with refuses(PlanError, found=("h0 is 0 there, not set here", "and 4 more")):
        taken_versions.require_same_model(version_of(make_plan(overrides=changed)), small_plan)


def images(project: str, trainer: str, **others: str) -> Plan:
    return make_plan(
        settings=settings.load(
            {**ENVIRON, "RETRAINING_PROJECT": project, "RETRAINING_TRAINER_IMAGE": trainer, **others}
        )
    )


def test_images_of_two_projects_are_the_same_by_digest_or_as_their_mirrors():
    there = images("project-one", f"host/one/trainer@{DIGEST}")
    taken_versions.require_same_model(version_of(there), images("project-two", f"host/two/trainer@{DIGEST}"))
    with refuses(PlanError, found="RETRAINING_TRAINER_IMAGE"):
        taken_versions.require_same_model(version_of(there), images("project-two", "host/two/trainer:1"))
    with refuses(PlanError, found="RETRAINING_TRAINER_IMAGE is host/one/trainer:1"):
        taken_versions.require_same_model(
            version_of(images("project-one", "host/one/trainer:1")), images("project-two", "host/two/trainer:1")
        )
    with refuses(PlanError, found="RETRAINING_SERVING_IMAGE"):
        here = images("project-two", f"host/two/trainer@{DIGEST}", RETRAINING_SERVING_IMAGE="host/serving:2.19.1")
        taken_versions.require_same_model(version_of(there), here)


def test_a_version_that_may_have_seen_the_test_days_is_refused(small_plan):
    days = {"start": date(2013, 11, 1), "end": small_plan.window.end, "test_start": small_plan.window.test_start}
    taken_versions.require_unseen_days(taken_from(window=days), small_plan)
    later = {**days, "test_start": small_plan.window.test_start + timedelta(days=1)}
    with refuses(PlanError, found=f"on days before {later['test_start']}", way_out="an as_of"):
        taken_versions.require_unseen_days(taken_from(window=later), small_plan)
    with refuses(PlanError, found="trained as of"):
        taken_versions.require_unseen_days(taken_from(window=days, as_of=AS_OF + timedelta(hours=1)), small_plan)
    with refuses(PlanError, found="a backfill"):
        taken_versions.require_unseen_days(taken_from(window=days), make_plan(mode="backfill"))


def test_an_older_version_than_the_champion_is_refused_by_when_it_was_trained(small_plan):
    """A champion that was taken over is as old as its training, not as the run that took it over."""
    later, earlier = "20131119t040000z-0123456789ab", "20131118t030000z-0123456789ab"
    taken_versions.require_newer(taken_from(), "3", earlier, small_plan)
    taken_versions.require_newer(taken_from(), "3", earlier, None)
    with refuses(PlanError, found="champion version 3 here as of 2013-11-19T04:00:00Z", expected="not older"):
        taken_versions.require_newer(taken_from(), "3", later, None)
    old = make_plan(taken_from=taken_from(run_key=earlier, as_of=AS_OF - timedelta(days=9)))
    taken_versions.require_newer(taken_from(), "3", later, old)
    with refuses(PlanError, found="champion version 3 is that very one"):
        taken_versions.require_newer(taken_from(), "3", later, make_plan(taken_from=taken_from()))

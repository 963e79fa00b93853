"""The search for hyperparameters: when, from where, and what a run trains with."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core.jobs import requests
from retraining.core.naming.run_keys import RunKey
from retraining.core.spec.monitoring import Monitoring
from retraining.core.spec.tuning import TuningParameter
from retraining.core.tuning import decision, warm_start
from tests.support import small_decision
from tests.support.small_model import AS_OF, make_plan
from tests.support.small_study import CHAMPION, HYPERPARAMETERS, plan_with, study, trial
from tests.support.small_taken import taken_from


@pytest.mark.parametrize(
    ("search", "studies", "champion", "expected"),
    [
        pytest.param("auto", [], None, (True, "first"), id="never-searched"),
        pytest.param("never", [], None, (False, "unwanted"), id="not-wanted"),
        pytest.param("always", [1], CHAMPION, (True, "wanted"), id="wanted"),
        pytest.param("auto", [3], CHAMPION, (False, "recent"), id="recent"),
        pytest.param("auto", [7], CHAMPION, (True, "age"), id="age"),
        pytest.param("auto", [-1], CHAMPION, (True, "first"), id="a-later-run-s-study-is-not-known-yet"),
    ],
)
def test_by_wish_and_age(search, studies, champion, expected):
    made = [study(days, trial(1, 0.7)) for days in studies]
    request = decision.decide(plan_with(search=search), made, champion)
    assert (request.search, request.reason) == expected


@pytest.mark.parametrize("tuned", [True, False])
def test_a_version_that_is_taken_over_keeps_its_values(tuned):
    """No search, whatever the spec says; that a study found them is known to later runs."""
    found = {"learning_rate": 0.02, "dropout": 0.3}
    taken = taken_from(hyperparameters=found, tuned=tuned)
    plan = plan_with(search="always").model_copy(update={"taken_from": taken})
    request = decision.decide(plan, [study(9, trial(1, 0.7))], CHAMPION)
    assert (request.search, request.reason, request.hyperparameters) == (False, "taken_over", found)
    settled = decision.conclude(plan, request, ())
    assert (settled.hyperparameters, settled.source) == (found, "champion" if tuned else "spec")


def test_a_champion_that_lost_quality_is_a_reason():
    worse = dataclasses.replace(CHAMPION, now=0.66)
    request = decision.decide(plan_with(), [study(1, trial(1, 0.7))], worse)
    assert (request.search, request.reason) == (True, "quality")
    assert "0.0400" in request.message
    plan = plan_with()
    evaluation = plan.spec.evaluation.model_copy(update={"metric": "log_loss"})
    plan = plan.model_copy(update={"spec": plan.spec.model_copy(update={"evaluation": evaluation})})
    lower = decision.decide(plan, [study(1, trial(1, 0.7))], worse)
    assert not lower.search


@pytest.mark.parametrize(
    ("made", "studies", "hours", "expected"),
    [
        pytest.param(1, [1], 24, "quality", id="the-champion-s-own"),
        pytest.param(3, [1], 24, "recent", id="one-since"),
        pytest.param(3, [2], 24, "quality", id="one-since-and-waited"),
        pytest.param(5, [4, 2], 24, "recent", id="two-since"),
        pytest.param(7, [6, 4], 24, "quality", id="two-since-and-waited"),
        pytest.param(5, [4, 3, 2, 1], 0, "quality", id="no-cool-down"),
        pytest.param(30, [20, 16, 7], 24, "age", id="the-week-s-study-comes-all-the-same"),
    ],
)
def test_studies_that_found_nothing_better_double_the_wait_for_another(made, studies, hours, expected):
    """Where the data became harder no challenger wins, and every night would pay for a study."""
    champion = dataclasses.replace(CHAMPION, run_key=str(RunKey.of(AS_OF - timedelta(days=made), "c")), now=0.6)
    plan = make_plan(plan_with().spec.model_copy(update={"monitoring": Monitoring(cooldown_hours=hours)}))
    request = decision.decide(plan, [study(days, trial(1, 0.7)) for days in studies], champion)
    assert request.reason == expected
    if expected == "recent":
        assert "lost 0.1000 of its metric" in request.message
        assert f"{48 * len(studies)} hours after" in request.message


def test_a_night_that_starts_a_little_early_still_counts():
    late = study(7, trial(1, 0.7)).model_copy(update={"as_of": AS_OF - timedelta(days=7) + timedelta(minutes=20)})
    assert decision.decide(plan_with(), [late], None).search


def test_the_champion_s_tuned_values_are_used_and_no_others():
    request = decision.decide(plan_with(search="never"), [], CHAMPION)
    settled = decision.conclude(plan_with(), request, ())
    assert settled.hyperparameters == {"learning_rate": 0.003, "hidden_units": "large", "dropout": 0.1}
    assert settled.source == "champion"


@pytest.mark.parametrize("override", ["training.hyperparameters.learning_rate", "training.hyperparameters"])
def test_what_a_person_asked_for_stands_and_is_not_searched_over(override):
    value = {"learning_rate": 0.05} if override.endswith("hyperparameters") else 0.05
    plan = plan_with(overrides={override: value})
    request = decision.decide(plan, [], CHAMPION)
    assert (request.search, request.reason) == (False, "unwanted")
    assert "set learning_rate" in request.message
    settled = decision.conclude(plan, request, ())
    assert settled.hyperparameters["learning_rate"] == 0.05
    assert settled.hyperparameters["hidden_units"] == "large"


def test_what_a_person_changed_in_the_file_since_stands():
    """The champion's study searched from another value of the file: somebody knows better now."""
    before = dataclasses.replace(CHAMPION, given={**HYPERPARAMETERS, "learning_rate": 0.02})
    request = decision.decide(plan_with(search="never"), [], before)
    assert request.hyperparameters == {"learning_rate": 0.01, "hidden_units": "large", "dropout": 0.1}


def test_values_that_no_study_found_are_the_file_s():
    """A champion trained with the file's values says nothing."""
    request = decision.decide(plan_with(search="never"), [], dataclasses.replace(CHAMPION, tuned=False))
    assert (request.hyperparameters, request.source) == (HYPERPARAMETERS, "spec")


def test_a_model_without_the_section_trains_with_its_own():
    plan = plan_with(section=None)
    settled = decision.conclude(plan, decision.decide(plan, [], CHAMPION), ())
    assert (settled.hyperparameters, settled.source) == (HYPERPARAMETERS, "spec")


def test_the_best_of_the_newest_studies_by_turns_each_place_once():
    spec = plan_with().spec.tuning
    older = study(14, trial(1, 0.9, 0.0101), trial(2, 0.8, 0.05))
    newer = study(7, trial(1, 0.5, 0.002), trial(2, 0.7, 0.01), trial(3, None, 0.02))
    recalled = warm_start.repeated_trials(spec, [older, newer])
    assert [item.hyperparameters["learning_rate"] for item in recalled] == [0.01, 0.002]


def test_what_a_later_study_found_to_fail_is_not_repeated_again():
    spec = plan_with().spec.tuning
    older = study(14, trial(1, 0.9, 0.05), trial(2, 0.8, 0.01))
    newer = study(7, trial(1, None, 0.0501, "recall"), trial(2, 0.7, 0.002))
    assert [item.hyperparameters["learning_rate"] for item in warm_start.repeated_trials(spec, [older, newer])] == [
        0.002,
        0.01,
    ]
    healed = study(1, trial(1, 0.6, 0.05))
    again = warm_start.repeated_trials(spec, [older, newer, healed])
    assert [item.hyperparameters["learning_rate"] for item in again] == [0.05, 0.002]


def test_trials_outside_today_s_space_are_forgotten():
    spec = plan_with().spec.tuning
    assert warm_start.repeated_trials(spec, [study(7, trial(1, 0.9, 0.5), trial(2, 0.8, units="huge"))]) == ()


def test_the_search_goes_on_around_the_best_repeated_trial():
    spec = plan_with().spec.tuning
    repeated = [trial(1, 0.7, 0.01, "recall"), trial(2, 0.6, 0.05, "recall")]
    around, units = warm_start.narrowed_space(spec, repeated, {"learning_rate": 0.5})
    assert around.min == pytest.approx(1.778e-3, rel=1e-3)  # a quarter of three decades to each side
    assert around.max == pytest.approx(5.623e-2, rel=1e-3)
    assert units == spec.parameters[1]
    assert warm_start.narrowed_space(spec, repeated, {}) == spec.parameters
    assert warm_start.narrowed_space(spec, [], {"learning_rate": 0.5}) == spec.parameters


@pytest.mark.parametrize(
    ("rates", "share"),
    [
        pytest.param([1e-2] * 5 + [1e-1], 1 / 16, id="agreed"),
        pytest.param([1e-2, 1.2e-2, 1.5e-2, 1.1e-2, 2e-2, 1e-4], 2 * 0.30103 / 3, id="so-so"),  # log10(2) of 3 decades
        pytest.param([1e-1, 1e-3, 1e-2, 1e-4, 1e-2], 1 / 2, id="not-agreed"),
        pytest.param([1e-2, 1e-2], 1 / 2, id="too-few"),
    ],
)
def test_what_the_newest_study_s_best_trials_agree_on_is_searched_closely(rates, share):
    spec = plan_with().spec.tuning
    older = study(14, *(trial(number, 0.9, 10.0 ** -(number % 4)) for number in range(6)))
    newest = study(7, *(trial(number, 0.9 - number / 100, rate) for number, rate in enumerate(rates)))
    assert warm_start.range_shares(spec, [older, newest]) == {"learning_rate": pytest.approx(share)}


def test_the_elite_is_the_best_fifth():
    spec = plan_with().spec.tuning
    rates = [1e-2] * 8 + [1.0e-4] * 32
    known = study(7, *(trial(number, 0.9 - number / 100, rate) for number, rate in enumerate(rates)))
    assert warm_start.range_shares(spec, [known]) == {"learning_rate": 1 / 16}


def test_every_fourth_study_searches_everywhere_and_so_does_one_that_knows_nothing():
    spec, known = (
        plan_with().spec.tuning,
        [study(7 * week, *(trial(n, 0.5) for n in range(6))) for week in (4, 3, 2, 1)],
    )
    assert [bool(warm_start.range_shares(spec, known[:count])) for count in range(5)] == [
        False,
        True,
        True,
        False,
        True,
    ]
    assert warm_start.range_shares(spec, [study(7, trial(1, None))]) == {}


def test_studies_that_are_not_read_any_more_count_too():
    """Else a model with more studies than are read would never search everywhere again."""
    known = [study(7 * week, *(trial(n, 0.5) for n in range(6))) for week in (2, 1)]
    requests = [decision.decide(plan_with(search="always"), known, None, earlier=count) for count in (20, 21, 22, 23)]
    assert [bool(request.focus) for request in requests] == [True, True, True, False]
    assert [request.earlier_studies for request in requests] == [20, 21, 22, 23]


@given(
    low=st.floats(0.001, 10),
    width=st.floats(0.1, 1000),
    at=st.floats(0, 1),
    scale=st.sampled_from(["linear", "log", "reverse_log"]),
    share=st.sampled_from([0.5, 0.25]),
)
def test_the_narrowed_space_lies_inside_and_holds_the_value(low, width, at, scale, share):
    parameter = TuningParameter(name="x", kind="double", min=low, max=low + width, scale=scale)
    value = low + at * width
    around = warm_start._around(parameter, value, share)
    assert low <= around.min <= value <= around.max <= low + width


def test_a_study_without_any_score_leaves_the_values_as_they_were():
    plan = plan_with()
    request = decision.decide(plan, [], CHAMPION)
    settled = decision.conclude(plan, request, (trial(1, None),))
    assert settled.hyperparameters["learning_rate"] == 0.003
    assert "none of 1 trials" in settled.message


def test_only_earlier_runs_are_known():
    plan = plan_with()
    assert decision.is_earlier(CHAMPION.run_key, plan)
    assert not decision.is_earlier(plan.run_key, plan)


def test_the_champions_metric_is_that_of_its_newest_comparison():
    plan = plan_with()
    request = requests.evaluation_job(plan, small_decision.CHAMPION).request
    found = small_decision.evaluation(plan, small_decision.scores(0.8), small_decision.scores(0.7))
    nobody = small_decision.evaluation(plan, small_decision.scores(0.8))
    asked = [(None, None), (request, None), (request, nobody), (request, found)]
    champion = small_decision.CHAMPION.run_key
    assert decision.newest_metric(plan, champion, asked) == 0.7
    assert decision.newest_metric(plan, "another", asked) is None

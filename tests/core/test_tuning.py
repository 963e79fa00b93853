"""The search for hyperparameters: when, from where, and what a run trains with."""

from __future__ import annotations

import ast
import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_model import AS_OF, make_plan, make_spec

from retraining.core import names, tuning, tuning_orders
from retraining.core.documents import Trial, Tuning
from retraining.core.spec_tuning import GOALS, REPORTED, TuningParameter

SECTION = {
    "every_days": 7,
    "max_trials": 8,
    "recall": 2,
    "parameters": [
        {"name": "learning_rate", "kind": "double", "min": 1e-4, "max": 0.1, "scale": "log"},
        {"name": "hidden_units", "kind": "categorical", "values": ["small", "large"]},
    ],
}
HYPERPARAMETERS = {"learning_rate": 0.01, "hidden_units": "small", "dropout": 0.1}


def plan_with(section=SECTION, overrides=None, search=None):
    section = {**section, "search": search} if section and search else section
    spec = make_spec(tuning=section, training={"model": "dense", "hyperparameters": HYPERPARAMETERS})
    return make_plan(spec, **({"overrides": overrides} if overrides else {}))


def trial(number, value, rate=0.01, phase="search", units="small"):
    return Trial(
        trial_id=f"{phase}-{number}",
        phase=phase,
        state="INFEASIBLE" if value is None else "SUCCEEDED",
        hyperparameters={"learning_rate": rate, "hidden_units": units},
        value=value,
        curve=(),
        seconds=10.0,
        words="",
    )


def study(days_ago, *trials, plan=None):
    plan = plan or plan_with()
    as_of = AS_OF - timedelta(days=days_ago)
    request = tuning.decide(plan, [], None, higher_is_better=True)
    made = tuning.conclude(plan, request, trials)
    return made.model_copy(update={"as_of": as_of, "run_key": names.run_key(as_of, str(days_ago))})


CHAMPION = tuning.ChampionRecord(
    run_key=names.run_key(AS_OF - timedelta(days=1), "c"),
    hyperparameters={"learning_rate": 0.003, "hidden_units": "large", "dropout": 0.9},
    given=HYPERPARAMETERS,
    tuned=True,
    then=0.70,
    now=0.69,
)


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
    request = tuning.decide(plan_with(search=search), made, champion, higher_is_better=True)
    assert (request.search, request.because) == expected


def test_a_champion_that_lost_quality_is_a_reason():
    worse = dataclasses.replace(CHAMPION, now=0.66)
    request = tuning.decide(plan_with(), [study(1, trial(1, 0.7))], worse, higher_is_better=True)
    assert (request.search, request.because) == (True, "quality")
    assert "0.0400" in request.words
    lower = tuning.decide(plan_with(), [study(1, trial(1, 0.7))], worse, higher_is_better=False)
    assert not lower.search


def test_a_night_that_starts_a_little_early_still_counts():
    late = study(7, trial(1, 0.7)).model_copy(update={"as_of": AS_OF - timedelta(days=7) + timedelta(minutes=20)})
    assert tuning.decide(plan_with(), [late], None, higher_is_better=True).search


def test_the_champion_s_tuned_values_are_used_and_no_others():
    request = tuning.decide(plan_with(search="never"), [], CHAMPION, higher_is_better=True)
    settled = tuning.conclude(plan_with(), request, ())
    assert settled.hyperparameters == {"learning_rate": 0.003, "hidden_units": "large", "dropout": 0.1}
    assert settled.source == "champion"


@pytest.mark.parametrize("override", ["training.hyperparameters.learning_rate", "training.hyperparameters"])
def test_what_a_person_asked_for_stands_and_is_not_searched_over(override):
    value = {"learning_rate": 0.05} if override.endswith("hyperparameters") else 0.05
    plan = plan_with(overrides={override: value})
    request = tuning.decide(plan, [], CHAMPION, higher_is_better=True)
    assert (request.search, request.because) == (False, "unwanted")
    assert "set learning_rate" in request.words
    settled = tuning.conclude(plan, request, ())
    assert settled.hyperparameters["learning_rate"] == 0.05
    assert settled.hyperparameters["hidden_units"] == "large"


def test_what_a_person_changed_in_the_file_since_stands():
    """The champion's study searched from another value of the file: somebody knows better now."""
    before = dataclasses.replace(CHAMPION, given={**HYPERPARAMETERS, "learning_rate": 0.02})
    request = tuning.decide(plan_with(search="never"), [], before, higher_is_better=True)
    assert request.hyperparameters == {"learning_rate": 0.01, "hidden_units": "large", "dropout": 0.1}


def test_values_that_no_study_found_are_the_file_s():
    """A champion trained with the file's values says nothing."""
    request = tuning.decide(
        plan_with(search="never"), [], dataclasses.replace(CHAMPION, tuned=False), higher_is_better=True
    )
    assert (request.hyperparameters, request.source) == (HYPERPARAMETERS, "spec")


def test_a_model_without_the_section_trains_with_its_own():
    plan = plan_with(section=None)
    settled = tuning.conclude(plan, tuning.decide(plan, [], CHAMPION, higher_is_better=True), ())
    assert (settled.hyperparameters, settled.source) == (HYPERPARAMETERS, "spec")


def test_the_best_of_the_newest_studies_by_turns_each_place_once():
    spec = plan_with().spec.tuning
    older = study(14, trial(1, 0.9, 0.0101), trial(2, 0.8, 0.05))
    newer = study(7, trial(1, 0.5, 0.002), trial(2, 0.7, 0.01), trial(3, None, 0.02))
    recalled = tuning.recall(spec, [older, newer])
    assert [item.hyperparameters["learning_rate"] for item in recalled] == [0.01, 0.002]


def test_trials_outside_today_s_space_are_forgotten():
    spec = plan_with().spec.tuning
    assert tuning.recall(spec, [study(7, trial(1, 0.9, 0.5), trial(2, 0.8, units="huge"))]) == ()


def test_the_search_goes_on_around_the_best_repeated_trial():
    spec = plan_with().spec.tuning
    repeated = [trial(1, 0.7, 0.01, "recall"), trial(2, 0.6, 0.05, "recall")]
    around, units = tuning.focus(spec, repeated, {"learning_rate": 0.5})
    assert around.min == pytest.approx(1.778e-3, rel=1e-3)  # a quarter of three decades to each side
    assert around.max == pytest.approx(5.623e-2, rel=1e-3)
    assert units == spec.parameters[1]
    assert tuning.focus(spec, repeated, {}) == spec.parameters
    assert tuning.focus(spec, [], {"learning_rate": 0.5}) == spec.parameters


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
    assert tuning.focus_shares(spec, [older, newest]) == {"learning_rate": pytest.approx(share)}


def test_the_elite_is_the_best_fifth():
    spec = plan_with().spec.tuning
    rates = [1e-2] * 8 + [1.0e-4] * 32
    known = study(7, *(trial(number, 0.9 - number / 100, rate) for number, rate in enumerate(rates)))
    assert tuning.focus_shares(spec, [known]) == {"learning_rate": 1 / 16}


def test_every_fourth_study_searches_everywhere_and_so_does_one_that_knows_nothing():
    spec, known = (
        plan_with().spec.tuning,
        [study(7 * week, *(trial(n, 0.5) for n in range(6))) for week in (4, 3, 2, 1)],
    )
    assert [bool(tuning.focus_shares(spec, known[:count])) for count in range(5)] == [False, True, True, False, True]
    assert tuning.focus_shares(spec, [study(7, trial(1, None))]) == {}


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
    around = tuning._around(parameter, value, share)
    assert low <= around.min <= value <= around.max <= low + width


def test_the_whole_study_spec():
    section = {
        **SECTION,
        "parallel_trials": 2,
        "early_stopping": "decay",
        "parameters": [
            {"name": "hidden_units", "kind": "categorical", "values": ["small", "large"]},
            {"name": "dropout", "kind": "double", "min": 0.0, "max": 0.5,
             "when": {"parameter": "hidden_units", "values": ["large"]}},
            {"name": "learning_rate", "kind": "discrete", "values": [0.001, 0.01], "scale": "log"},
        ],
    }  # fmt: skip
    plan = plan_with(section)
    request = tuning.decide(plan, [], None, higher_is_better=True)
    job = tuning_orders.search_order(plan, request, plan.spec.tuning.parameters).custom_job
    study_spec = job["study_spec"]
    assert study_spec["metrics"] == [{"metric_id": "val_auc", "goal": "MAXIMIZE"}]
    assert "decay_curve_stopping_spec" in study_spec
    assert "algorithm" not in study_spec
    first, second = study_spec["parameters"]
    assert first["conditional_parameter_specs"] == [
        {
            "parent_categorical_values": {"values": ["large"]},
            "parameter_spec": {
                "parameter_id": "dropout",
                "double_value_spec": {"min_value": 0.0, "max_value": 0.5},
                "scale_type": "UNIT_LINEAR_SCALE",
            },
        }
    ]
    assert second["discrete_value_spec"] == {"values": [0.001, 0.01]}
    assert (job["max_trial_count"], job["parallel_trial_count"]) == (8, 2)
    assert job["trial_job_spec"]["scheduling"]["strategy"] == "SPOT"


def test_the_repetition_tries_each_once_and_leaves_the_rest_to_the_search():
    plan = plan_with()
    earlier = [study(7, trial(1, 0.9, 0.002), trial(2, 0.8, 0.05))]
    request = tuning.decide(plan, earlier, None, higher_is_better=True)
    order = tuning_orders.recall_order(plan, request)
    assert order.custom_job["max_trial_count"] == 2
    assert order.custom_job["study_spec"]["algorithm"] == "GRID_SEARCH"
    assert [prior["learning_rate"] for prior in order.request.priors] == [0.002, 0.05]
    assert order.request.trial_metric == "val_auc"
    search = tuning_orders.search_order(plan, request, plan.spec.tuning.parameters)
    assert search.custom_job["max_trial_count"] == 6
    assert search.request_uri != order.request_uri


def test_trials_are_read_back():
    plan = plan_with()
    request = tuning.decide(plan, [study(7, trial(1, 0.9, 0.002))], None, higher_is_better=True)
    reported = [
        {
            "id": "1",
            "state": "SUCCEEDED",
            "parameters": [{"parameter_id": "prior", "value": 0.0}],
            "measurements": [{"step_count": "1", "metrics": [{"metric_id": "val_auc", "value": 0.5}]}],
            "final_measurement": {"metrics": [{"metric_id": "val_auc", "value": 0.75}]},
            "seconds": 3.5,
        },
        {"id": "2", "state": "INFEASIBLE", "infeasible_reason": "the loss is not a number"},
    ]
    first, second = tuning_orders.read_trials(plan, "recall", request, reported)
    assert first.hyperparameters == {"hidden_units": "small", "learning_rate": 0.002}
    assert (first.value, first.curve[0].step, first.seconds) == (0.75, 1, 3.5)
    assert (second.value, second.words) == (None, "the loss is not a number")
    settled = tuning.conclude(plan, request, (first, second))
    assert (settled.source, settled.best) == ("study", "recall-1")
    assert settled.hyperparameters == {"hidden_units": "small", "learning_rate": 0.002, "dropout": 0.1}
    assert isinstance(settled, Tuning)


def test_a_study_without_any_score_leaves_the_values_as_they_were():
    plan = plan_with()
    request = tuning.decide(plan, [], CHAMPION, higher_is_better=True)
    settled = tuning.conclude(plan, request, (trial(1, None),))
    assert settled.hyperparameters["learning_rate"] == 0.003
    assert "none of 1 trials" in settled.words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"recall": 8}, "leaves no trial"),
        ({"algorithm": "grid"}, "give the double parameters as discrete"),
        ({"parallel_trials": 9}, "more than max_trials"),
        (
            {"parameters": [{"name": "dropout", "kind": "integer", "min": 0.5, "max": 2}]},
            "integer's bounds are whole",
        ),
        (
            {"parameters": [{"name": "dropout", "kind": "discrete", "values": [2, 1]}]},
            "rising numbers",
        ),
        (
            {
                "parameters": [
                    {"name": "dropout", "kind": "double", "min": 0, "max": 1,
                     "when": {"parameter": "learning_rate", "values": [1]}},
                    {"name": "learning_rate", "kind": "double", "min": 0.1, "max": 1},
                ]
            },
            "expected another parameter of kind",
        ),
    ],
)  # fmt: skip
def test_an_incoherent_section_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        plan_with({**SECTION, **change})


@pytest.mark.parametrize(
    ("section", "goal"),
    [({}, "maximize"), ({"metric": "val_auc"}, "maximize"), ({"metric": "val_loss"}, "minimize")],
    ids=["default", "auc", "loss"],
)
def test_the_goal_is_the_metric_s(section, goal):
    plan = plan_with({**SECTION, **section})
    assert plan.spec.tuning.goal == goal
    request = tuning.decide(plan, [], None, higher_is_better=True)
    (metric,) = tuning_orders.search_order(plan, request, plan.spec.tuning.parameters).custom_job["study_spec"][
        "metrics"
    ]
    assert metric["goal"] == goal.upper()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metric": "val_loss", "goal": "maximize"}, "val_loss is better where it is lower; expected minimize"),
        ({"goal": "minimize"}, "val_auc is better where it is higher; expected maximize"),
        ({"metric": "val_acc"}, r"tuning.metric names 'val_acc'; expected one of: val_loss, val_auc\."),
        ({"metric": "val_accuracy"}, "expected one of: val_loss, val_auc"),  # two classes: not reported
    ],
    ids=["loss-up", "auc-down", "unknown", "of-another-label"],
)
def test_a_metric_that_no_trial_reports_or_a_goal_against_it_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        plan_with({**SECTION, **change})


def test_with_several_classes_trials_report_accuracy():
    label = {"name": "late", "kind": "multiclass", "classes": 3}
    training = {"model": "dense", "hyperparameters": HYPERPARAMETERS}
    spec = make_spec(tuning={**SECTION, "metric": "val_accuracy"}, label=label, training=training)
    assert spec.tuning.goal == "maximize"


def test_metrics_are_those_that_the_trainer_reports():
    """The trainer cannot be imported here: its labels' keywords are read."""
    text = (Path(__file__).resolve().parents[2] / "trainer" / "labels.py").read_text()
    kinds = {"binary": "Binary", "multiclass": "Multiclass"}
    classes = {each.name: each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)}
    for kind, name in kinds.items():
        keywords = {node.arg for node in ast.walk(classes[name]) if isinstance(node, ast.keyword)}
        assert {word for word in keywords if word and word.startswith("val_")} == set(REPORTED[kind])
    assert set(GOALS) == {metric for metrics in REPORTED.values() for metric in metrics}

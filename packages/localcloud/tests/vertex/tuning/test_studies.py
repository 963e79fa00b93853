"""VizierService through Google's client: studies, suggestions, trials, early stopping, optimal trials."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

from packages.localcloud.tests.vertex.studies import (
    State,
    below,
    categorical,
    discrete,
    double,
    final,
    integer,
    measurement,
    study_spec,
    values,
)

SpaceValues = dict[str, object]


@pytest.fixture
def make_study(api) -> Callable[..., v1.Study]:
    """Creates studies with names of their own."""

    def make(*parameters, **more) -> v1.Study:
        spec = study_spec(*(parameters or (integer("x", 1, 9),)), **more)
        study = {"display_name": f"study-{uuid.uuid4().hex[:8]}", "study_spec": spec}
        return api.vizier.create_study(parent=api.parent, study=study)

    return make


def suggest(api, study: v1.Study, count: int = 1, client: str = "me") -> list[v1.Trial]:
    request = {"parent": study.name, "suggestion_count": count, "client_id": client}
    return list(api.vizier.suggest_trials(request).result(timeout=60).trials)


def complete(api, trial: v1.Trial, score: float, step: int = 1) -> v1.Trial:
    request = {"name": trial.name, "final_measurement": measurement(score, step)}
    return api.vizier.complete_trial(request)


def told(api, study: v1.Study, score: float, **parameters: object) -> v1.Trial:
    """A trial that was completed elsewhere."""
    given = [{"parameter_id": name, "value": value} for name, value in parameters.items()]
    trial = {"parameters": given, "final_measurement": measurement(score)}
    return api.vizier.create_trial(parent=study.name, trial=trial)


def test_study_is_found_listed_and_deleted_with_its_trials(api, make_study):
    study = make_study()
    assert study.state == v1.Study.State.ACTIVE
    assert api.vizier.get_study(name=study.name) == study
    found = api.vizier.lookup_study(request={"parent": api.parent, "display_name": study.display_name})
    assert found.name == study.name
    assert study.name in [each.name for each in api.vizier.list_studies(parent=api.parent)]
    with pytest.raises(exceptions.AlreadyExists, match=r"already exists: .*Look it up"):
        api.vizier.create_study(
            parent=api.parent, study={"display_name": study.display_name, "study_spec": study.study_spec}
        )
    (trial,) = suggest(api, study)
    api.vizier.delete_study(name=study.name)
    for call, name in ((api.vizier.get_study, study.name), (api.vizier.get_trial, trial.name)):
        with pytest.raises(exceptions.NotFound):
            call(name=name)
    with pytest.raises(exceptions.NotFound, match="no Study with the display name"):
        api.vizier.lookup_study(request={"parent": api.parent, "display_name": study.display_name})


def test_each_client_gets_its_own_trials_until_they_are_done(api, make_study):
    study = make_study()
    mine = suggest(api, study, 2)
    assert [values(trial)["x"] for trial in mine] == [1, 2]
    assert [trial.state for trial in mine] == [State.ACTIVE] * 2
    assert suggest(api, study, 2) == mine
    (other,) = suggest(api, study, client="other")
    assert values(other)["x"] == 3
    complete(api, mine[0], 0.5)
    assert [trial.id for trial in suggest(api, study, 2)] == ["2", "4"]
    listed = list(api.vizier.list_trials(parent=study.name))
    assert [trial.id for trial in listed] == ["1", "2", "3", "4"]
    api.vizier.delete_trial(name=other.name)
    assert [trial.id for trial in api.vizier.list_trials(parent=study.name)] == ["1", "2", "4"]


def test_a_used_up_grid_completes_the_study(api, make_study):
    study = make_study(discrete("x", 1, 2))
    assert len(suggest(api, study, 5)) == 2
    assert api.vizier.get_study(name=study.name).state == v1.Study.State.COMPLETED


def test_a_requested_trial_comes_before_a_suggested_one(api, make_study):
    study = make_study()
    asked = api.vizier.create_trial(parent=study.name, trial={"parameters": [{"parameter_id": "x", "value": 7}]})
    assert asked.state == State.REQUESTED
    first, second = suggest(api, study, 2)
    assert (first.name, values(first)["x"], first.client_id) == (asked.name, 7, "me")
    assert values(second)["x"] == 1


def test_measurements_stand_in_order_and_the_last_is_the_final_one(api, make_study):
    (trial,) = suggest(api, make_study())
    for score, step in ((0.3, 2), (0.1, 1), (0.4, 2)):
        request = {"trial_name": trial.name, "measurement": measurement(score, step)}
        trial = api.vizier.add_trial_measurement(request)
    assert [(each.step_count, each.metrics[0].value) for each in trial.measurements] == [(1, 0.1), (2, 0.4)]
    done = api.vizier.complete_trial({"name": trial.name})
    assert (done.state, final(done)) == (State.SUCCEEDED, 0.4)
    assert done.end_time >= done.start_time
    with pytest.raises(exceptions.FailedPrecondition, match="SUCCEEDED already"):
        complete(api, trial, 1.0)
    with pytest.raises(exceptions.FailedPrecondition, match="Expected ACTIVE or STOPPING"):
        api.vizier.add_trial_measurement({"trial_name": trial.name, "measurement": measurement(1, 3)})


def test_infeasible_trials_have_a_reason_and_no_score(api, make_study):
    study = make_study()
    one, other = suggest(api, study, 2)
    request = {"name": one.name, "trial_infeasible": True, "infeasible_reason": "out of memory"}
    done = api.vizier.complete_trial(request)
    assert (done.state, done.infeasible_reason) == (State.INFEASIBLE, "out of memory")
    silent = api.vizier.complete_trial({"name": other.name})
    assert (silent.state, silent.infeasible_reason) == (
        State.INFEASIBLE,
        "The trial was completed without any measurement.",
    )
    assert list(api.vizier.list_optimal_trials({"parent": study.name}).optimal_trials) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"metrics": []}, "No metric was given", id="none"),
        pytest.param({"metrics": [{"metric_id": "loss", "value": 1}]}, "has no metric 'loss'", id="another"),
        pytest.param({"metrics": [{"metric_id": "score", "value": float("nan")}]}, "finite value", id="nan"),
        pytest.param({"metrics": [{"metric_id": "score", "value": 1}], "step_count": -1}, "is -1", id="step"),
    ],
)
def test_final_measurements_that_say_nothing_are_refused(api, make_study, given, words):
    (trial,) = suggest(api, make_study())
    with pytest.raises(exceptions.InvalidArgument, match=words):
        api.vizier.complete_trial({"name": trial.name, "final_measurement": given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({}, "'p' is missing", id="missing"),
        pytest.param({"p": "c"}, r"cannot be 'c'. Expected one of \['a', 'b'\]", id="category"),
        pytest.param({"p": "b", "q": 5}, "cannot be 5.0. Expected a number from 0 to 1", id="range"),
        pytest.param({"p": "a", "q": 0.5}, "'q' does not exist in this study beside", id="condition"),
    ],
)
def test_trials_outside_the_space_are_refused(api, make_study, given, words):
    child = below("categorical", "b", parameter=double("q", 0, 1))
    study = make_study(categorical("p", "a", "b", conditional_parameter_specs=[child]), algorithm="RANDOM_SEARCH")
    with pytest.raises(exceptions.InvalidArgument, match=words):
        told(api, study, 1.0, **given)


def test_stopped_trial_is_told_to_stop(api, make_study):
    (trial,) = suggest(api, make_study())
    check = {"trial_name": trial.name}
    answer = api.vizier.check_trial_early_stopping_state(check).result(timeout=10)
    assert not answer.should_stop
    assert api.vizier.stop_trial({"name": trial.name}).state == State.STOPPING
    assert api.vizier.check_trial_early_stopping_state(check).result(timeout=10).should_stop
    complete(api, trial, 0.1)
    with pytest.raises(exceptions.FailedPrecondition, match="SUCCEEDED already"):
        api.vizier.check_trial_early_stopping_state(check)


def test_hopeless_trial_is_told_to_stop_by_the_median_rule(api, make_study):
    study = make_study(median_automated_stopping_spec={"use_elapsed_duration": False})
    *good, bad = suggest(api, study, 4)
    for trial in good:
        for step in (1, 2, 3):
            request = {"trial_name": trial.name, "measurement": measurement(0.5 + step / 10, step)}
            api.vizier.add_trial_measurement(request)
        api.vizier.complete_trial({"name": trial.name})
    api.vizier.add_trial_measurement({"trial_name": bad.name, "measurement": measurement(0.2, 2)})
    answer = api.vizier.check_trial_early_stopping_state({"trial_name": bad.name}).result(timeout=10)
    assert answer.should_stop
    assert api.vizier.get_trial(name=bad.name).state == State.STOPPING


def test_the_best_trial_or_the_pareto_front_is_optimal(api, make_study):
    study = make_study(metrics=[{"metric_id": "score", "goal": "MINIMIZE"}])
    for place, score in enumerate((3.0, 1.0, 2.0), start=1):
        told(api, study, score, x=place)
    (best,) = api.vizier.list_optimal_trials({"parent": study.name}).optimal_trials
    assert values(best)["x"] == 2
    metrics = [{"metric_id": "score", "goal": "MAXIMIZE"}, {"metric_id": "size", "goal": "MINIMIZE"}]
    study = make_study(metrics=metrics)
    for place, (score, size) in enumerate(((0.9, 9), (0.5, 1), (0.4, 2), (0.7, 5)), start=1):
        both = {"metrics": [{"metric_id": "score", "value": score}, {"metric_id": "size", "value": size}]}
        trial = {"parameters": [{"parameter_id": "x", "value": place}], "final_measurement": both}
        api.vizier.create_trial(parent=study.name, trial=trial)
    front = api.vizier.list_optimal_trials({"parent": study.name}).optimal_trials
    assert [values(trial)["x"] for trial in front] == [1, 2, 4]


def test_every_kind_and_scale_is_drawn_from_its_range(api, make_study):
    child = below("discrete", 2, 3, parameter=categorical("c", "u", "v"))
    study = make_study(
        double("d", 1e-6, 1, "UNIT_LOG_SCALE"),
        double("r", 1, 1000, "UNIT_REVERSE_LOG_SCALE"),
        integer("i", -3, 3),
        discrete("p", 1, 2, 3, conditional_parameter_specs=[child]),
        algorithm="RANDOM_SEARCH",
    )
    drawn = [values(trial) for trial in suggest(api, study, 60)]
    assert sum(each["d"] < 1e-3 for each in drawn) > 15  # a linear scale would give none
    assert sum(each["r"] > 900 for each in drawn) > 25  # a linear scale would give six
    assert {each["i"] for each in drawn} == set(range(-3, 4))
    assert {each["p"] for each in drawn} == {1, 2, 3}
    assert all(("c" in each) == (each["p"] > 1) for each in drawn)
    assert {each["c"] for each in drawn if "c" in each} == {"u", "v"}


@pytest.mark.long
def test_bayesian_search_learns_from_what_it_is_told(api, make_study):
    """Told of twelve trials around a hill, it looks near the top; infeasible ones and conditions are no hindrance."""
    child = below("categorical", "sgd", parameter=double("momentum", 0, 1))
    study = make_study(
        double("x", 0, 1),
        categorical("o", "adam", "sgd", conditional_parameter_specs=[child]),
        algorithm="ALGORITHM_UNSPECIFIED",
    )
    for place in range(12):
        x = place / 11
        told(api, study, 1 - (x - 0.62) ** 2, x=x, o="adam")
    bad = {"parameters": [{"parameter_id": "x", "value": 0.9}, {"parameter_id": "o", "value": "adam"}]}
    api.vizier.create_trial(parent=study.name, trial={**bad, "infeasible_reason": "too wild"})
    found = [values(trial) for trial in suggest(api, study, 3)]
    assert min(abs(each["x"] - 0.62) for each in found) < 0.12
    assert all(("momentum" in each) == (each["o"] == "sgd") for each in found)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"suggestion_count": 0}, "suggestion_count", id="none"),
        pytest.param({"contexts": [{}]}, "1 contexts were given", id="contexts"),
    ],
)
def test_malformed_suggestions_are_refused(api, make_study, changes, words):
    request = {"parent": make_study().name, "suggestion_count": 2, "client_id": "me", **changes}
    with pytest.raises(exceptions.InvalidArgument, match=words):
        api.vizier.suggest_trials(request)


def test_over_rest(rest, make_study):
    name = make_study().name
    body = {"suggestionCount": 1, "clientId": "web"}
    operation = rest("POST", f"/v1/{name}/trials:suggest", body).json()
    assert operation["name"].startswith(f"{name}/operations/")
    page = rest("GET", f"/v1/{name}/trials").json()
    assert [(trial["id"], trial["parameters"]) for trial in page.get("trials", [])] in (
        [],
        [("1", [{"parameterId": "x", "value": 1}])],
    )
    assert rest("DELETE", f"/v1/{name}").status_code == 200

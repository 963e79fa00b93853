"""The ML Test Score: each test by what satisfies it, and lost with just that."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, get_args

import pytest

from contracts.keys import keys
from retraining.core.documents.readiness import AskedModel, OlderModel, Readiness, RubricSection, RunFacts
from retraining.core.report.readiness.facts import Facts, LiveScore, Look
from retraining.core.report.readiness.score import TESTS, score_model
from retraining.core.signal_kinds import SIGNAL_KINDS
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.reviews import TEST_NAMES
from tests.support.key_examples import put
from tests.support.small_model import make_spec, spec_values

DAY = date(2013, 11, 20)
BARE = Facts(day=DAY)
BY_PEOPLE = ("privacy", "spec_review", "inclusion")
"""Tests that no machine makes."""
NULL = "null"
"""As the file writes it; None takes the key out of it."""
OWN_IMAGE = {"training.runtime": {"image": "us-docker.pkg.dev/p/r/own:1"}}


def review(test: str, day: str = "2013-11-01") -> dict[str, str]:
    """What a person states."""
    return {"test": test, "by": "Ada <ada>", "day": day, "where": f"https://example.com/{test}"}


BOUNDS: dict[str, Any] = {
    "budget_usd": 20,
    "data.checks": {"min_rows": 100, "ranges": {"distance": [0, 5000]}, "severity": {"label_leak": "block"}},
    "data.checks.max_age_hours": 36,
    "tuning": {"search": "auto", "parameters": [{"name": "learning_rate", "kind": "double", "min": 0.001, "max": 0.1}]},
    "report.show_rows": True,
    "deployment": {"canary": {}, "key_input": True},
    "monitoring.serving.max_latency_ms": 50,
    "monitoring.max_age_days": 30,
    "monitoring.policy.actions.errors": "rollback",
    "notify.owners": ["ops@example.com"],
    "reviews": [review(test) for test in BY_PEOPLE],
}
"""What the small model's file needs for all points that a file can have."""
RUN = RunFacts(
    run_key="20131120t030000z-0123456789ab",
    registered=True,
    ended=True,
    seconds=600.0,
    features_measured=2,
    lines={"linear": False, "trees": False},
    slices=3,
    older=OlderModel(days=1.0, metric="auc", mean=0.01, low=0.002, high=0.02),
    asked=AskedModel(rows=200, strange=5),
    worst=20,
    shows_values=True,
    trials=12,
)
LOOK = Look(as_of=datetime(2013, 11, 20, 2, tzinfo=UTC), signals=2)
STORED = Facts(
    day=DAY,
    recipients=1,
    run=RUN,
    looks=dict.fromkeys(SIGNAL_KINDS, LOOK),
    live=(LiveScore(version_id="1", tested=0.7, live=0.68), LiveScore(version_id="2", tested=0.72, live=0.7)),
)
"""What the whole model has stored."""


def whole(*changes: Mapping[str, Any]) -> ModelSpec:
    """The small model with all that its file can say, and changes."""
    values = copy.deepcopy(spec_values())
    for key, value in {name: value for each in (BOUNDS, *changes) for name, value in each.items()}.items():
        put(values, key, value)
        if value is NULL:
            section, _, last = key.rpartition(".")
            values[section][last] = None
    return ModelSpec.model_validate(values)


def points(score: Readiness) -> dict[str, float]:
    """By test."""
    return {test.name: test.points for test in score.tests}


def without(kind: str) -> dict[str, Any]:
    """Facts of a monitor that never judged a kind of signal."""
    return {"looks": {each: look for each, look in STORED.looks.items() if each != kind}}


def run(**changes: Any) -> dict[str, Any]:
    """Facts with another run."""
    return {"run": RUN.model_copy(update=changes)}


LOST: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "feature_schema": ({"data.checks.ranges": None, "data.checks.on_new_category": "ignore"}, {}),
    "feature_benefit": ({}, run(harmful=("distance",))),
    "feature_cost": ({"budget_usd": None}, {}),
    "feature_requirements": ({"data.checks.severity": {"label_leak": "warn"}}, {}),
    "privacy": ({"reviews": [review("spec_review"), review("inclusion")]}, {}),
    "new_features": ({}, run(registered=False)),
    "feature_code": ({}, run(asked=AskedModel(rows=200, strange=5, problem="an answer is NaN"))),
    "spec_review": ({"reviews": [review("privacy"), review("inclusion")]}, {}),
    "online_metrics": ({}, {"live": STORED.live[:1]}),
    "hyperparameters": ({"tuning": None}, run(trials=0)),
    "staleness_impact": ({}, run(older=None)),
    "simpler_model": ({}, run(lines={"linear": True, "trees": False})),
    "slices": ({"evaluation.slices": None}, {}),
    "inclusion": ({"reviews": [review("privacy"), review("spec_review")]}, {}),
    "reproducibility": ({"training.input": "bigquery"}, {}),
    "pipeline_test": ({}, run(ended=False)),
    "quality_gate": ({}, run(findings=("floor",))),
    "debugging": ({"report.show_rows": False}, {}),
    "canary": ({"deployment.canary": None}, {}),
    "rollback": ({"monitoring.policy.actions.errors": "warn"}, {}),
    "dependencies": ({}, {"recipients": 0}),
    "data_invariants": ({}, without("drift")),
    "training_serving_skew": ({}, without("skew")),
    "staleness": ({"monitoring.max_age_days": None}, {}),
    "computing_performance": ({}, without("latency")),
    "prediction_quality": ({}, without("performance")),
}
"""By test, what takes all of its points from the whole model, and nothing from any other."""
LOST_TOO: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "no importance": ("feature_benefit", {"evaluation.importance": NULL}, {}),
    "importance not judged": ("feature_benefit", {}, run(features_measured=0)),
    "no latency limit": ("feature_cost", {"monitoring.serving.max_latency_ms": None}, {}),
    "old statement": ("privacy", {"reviews": [review("privacy", "2012-11-19"), *map(review, BY_PEOPLE[1:])]}, {}),
    "statement of tomorrow": (
        "privacy",
        {"reviews": [review("privacy", "2013-11-21"), *map(review, BY_PEOPLE[1:])]},
        {},
    ),
    "asked nothing": ("feature_code", {}, run(asked=AskedModel(rows=0, strange=0))),
    "not asked": ("feature_code", {}, run(asked=None)),
    "the other order": (
        "online_metrics",
        {},
        {"live": (LiveScore(version_id="1", tested=0.7, live=0.9), LiveScore(version_id="2", tested=0.8, live=0.5))},
    ),
    "never searched": ("hyperparameters", {"tuning.search": "never"}, run(trials=0)),
    "no lines": ("simpler_model", {"evaluation.reference": False}, {}),
    "lines not judged": ("simpler_model", {}, run(lines={}, lines_not_judged="images alone")),
    "small slices": ("slices", {}, run(slices=0)),
    "two machines": (
        "reproducibility",
        {
            "training.cluster": {
                "tier": "CUSTOM",
                "chief": {"machine": "n1-standard-8"},
                "workers": {"machine": "n1-standard-8", "count": 1},
            }
        },
        {},
    ),
    "no values": ("debugging", {}, run(shows_values=False)),
    "no limit of age": ("dependencies", {"data.checks.max_age_hours": None}, {}),
    "not told of drift": ("dependencies", {"notify.events": ["failure"]}, {}),
    "drift ignored": ("data_invariants", {"monitoring.policy.actions.drift": "none"}, {}),
    "skew ignored": ("training_serving_skew", {"monitoring.policy.actions.skew": "none"}, {}),
    "age ignored": ("staleness", {"monitoring.policy.actions.age": "none"}, {}),
    "latency ignored": ("computing_performance", {"monitoring.policy.actions.latency": "none"}, {}),
    "labels ignored": ("prediction_quality", {"monitoring.policy.actions.performance": "none"}, {}),
}


def test_there_are_seven_tests_in_each_section() -> None:
    """28 in the order of their names."""
    assert tuple(TESTS) == TEST_NAMES
    sections = [test.section for test in TESTS.values()]
    assert [sections.count(section) for section in get_args(RubricSection)] == [7, 7, 7, 7]


def test_all_points_are_reached_but_those_of_people() -> None:
    """Half a point for what no machine tests."""
    score = score_model(whole(), STORED)
    assert points(score) == {name: 0.5 if name in BY_PEOPLE else 1.0 for name in TEST_NAMES}
    assert score.sections == {"data": 6.5, "model": 6.0, "infrastructure": 7.0, "monitoring": 7.0}
    assert score.points == 6.0
    assert score.meaning == "tested and watched exceptionally well"


@pytest.mark.parametrize("name", LOST)
def test_what_satisfies_a_test_takes_just_its_points_away(name: str) -> None:
    """No other test rests on it."""
    spec, facts = LOST[name]
    require_lost(name, spec, facts)


@pytest.mark.parametrize("case", LOST_TOO)
def test_all_of_what_a_test_asks_for_is_needed(case: str) -> None:
    """The other ways to lose the same points."""
    require_lost(*LOST_TOO[case])


def require_lost(name: str, spec: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """One test has no points, the way there and who can go it; the others have theirs."""
    score = score_model(whole(spec), dataclasses.replace(STORED, **facts))
    before = points(score_model(whole(), STORED))
    assert points(score) == {**before, name: 0.0}
    (lost,) = (test for test in score.tests if test.name == name)
    assert lost.satisfied_by is None
    assert lost.would_be_satisfied_by
    assert lost.needs
    assert score.points == min(score.sections.values())


def test_an_image_of_ones_own_loses_what_rests_on_the_trainer() -> None:
    """Three tests rest on code that is ours."""
    score = score_model(whole(OWN_IMAGE), STORED)
    lost = {name for name, each in points(score).items() if each < points(score_model(whole(), STORED))[name]}
    assert lost == {"reproducibility", "spec_tests", "numerical_stability"}
    assert {test.needs for test in score.tests if test.name in lost} == {"person"}


def test_a_model_without_an_endpoint_has_no_canary_and_no_latency() -> None:
    """And needs no key in requests: rows that are scored have theirs."""
    score = score_model(whole({"deployment": {"endpoint": False}}), STORED)
    before = points(score_model(whole(), STORED))
    assert points(score) == {**before, "canary": 0.0, "computing_performance": 0.0}


def test_without_a_schedule_nothing_is_watched() -> None:
    """What the monitor satisfies, and no other test."""
    watched = {name for name, test in TESTS.items() if test.section == "monitoring"} - {"numerical_stability"}
    score = score_model(whole({"monitoring.schedule": NULL}), STORED)
    lost = {name for name, each in points(score).items() if each == 0}
    assert lost == watched | {"rollback", "feature_cost"}


@pytest.mark.parametrize(
    ("name", "spec", "facts"),
    [
        ("hyperparameters", {"tuning.search": "never"}, {}),
        ("pipeline_test", {"schedule": None}, {}),
        ("rollback", {"monitoring.policy.actions.errors": "warn"}, {"rollback": "to version 1 on 2013-11-19, by Ada"}),
    ],
)
def test_what_was_done_by_hand_is_half_a_point(name: str, spec: dict[str, Any], facts: dict[str, Any]) -> None:
    """A study that was asked for, a run that was started, a way back that a person went: with its way to the whole."""
    score = score_model(whole(spec), dataclasses.replace(STORED, **facts))
    assert points(score) == {**points(score_model(whole(), STORED)), name: 0.5}
    (half,) = (test for test in score.tests if test.name == name)
    assert half.satisfied_by
    assert half.would_be_satisfied_by
    assert half.needs == "file"


@pytest.mark.parametrize("name", TEST_NAMES)
def test_a_statement_is_half_a_point_and_never_more(name: str) -> None:
    """Of each test, where nothing else satisfies it; with who, when and where."""
    bare = score_model(make_spec(), BARE)
    stated = score_model(make_spec(reviews=[review(name)]), BARE)
    assert points(stated) == {**points(bare), name: max(0.5, points(bare)[name])}
    if points(bare)[name] == 0:
        (test,) = (test for test in stated.tests if test.name == name)
        assert test.satisfied_by == "Ada <ada> made it by hand on 2013-11-01"
        assert test.where == f"https://example.com/{name}"
    assert points(score_model(whole({"reviews": [review(name)]}), STORED))[name] == (0.5 if name in BY_PEOPLE else 1.0)


@pytest.mark.parametrize(("day", "counts"), [("2012-11-20", True), ("2012-11-19", False), ("2013-11-20", True)])
def test_a_statement_counts_for_a_year(day: str, counts: bool) -> None:
    """365 days, and the day itself."""
    (test,) = (
        test for test in score_model(make_spec(reviews=[review("privacy", day)]), BARE).tests if test.name == "privacy"
    )
    assert (test.points == 0.5) is counts
    assert ("older than 365 days" in (test.would_be_satisfied_by or "")) is not counts


def test_a_model_without_documents_is_scored_by_its_file() -> None:
    """Each test that asks for a run or the monitor says so."""
    score = score_model(whole(), dataclasses.replace(BARE, recipients=1))
    assert score.run_key is None
    needs = {test.name: test.needs for test in score.tests if test.points == 0}
    assert needs == {
        **dict.fromkeys(("feature_benefit", "new_features", "feature_code", "staleness_impact"), "run"),
        **dict.fromkeys(("simpler_model", "slices", "pipeline_test", "debugging"), "run"),
        **dict.fromkeys(("online_metrics", "data_invariants", "training_serving_skew"), "monitor"),
        **dict.fromkeys(("computing_performance", "prediction_quality"), "monitor"),
    }


FOLLOWED: dict[str, dict[str, Any]] = {
    "feature_schema": {"data.checks.ranges": {"distance": [0, 9]}},
    "feature_cost": {"budget_usd": 3, "monitoring.serving.max_latency_ms": 20},
    "feature_requirements": {"data.checks.severity": {"label_leak": "block"}},
    "hyperparameters": {"tuning": {"search": "auto", "parameters": BOUNDS["tuning"]["parameters"]}},
    "debugging": {"report.show_rows": True},
    "canary": {"deployment.canary": {}},
    "rollback": {"monitoring.policy.actions.errors": "rollback"},
    "staleness": {"monitoring.max_age_days": 9},
    "slices": {"evaluation.slices": ["carrier"]},
    "prediction_quality": {"deployment.key_input": True},
    "online_metrics": {"deployment.key_input": True},
}
"""What a test's way in the file is, done as it says."""
POOR: dict[str, Any] = {
    "data.checks": {"min_rows": 100, "on_new_category": "ignore"},
    "evaluation.slices": None,
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_way_in_the_file_is_one(name: str) -> None:
    """Each key of it is named; with it the test has its points, or asks for the run or look that it needs."""
    values = copy.deepcopy(spec_values())
    for key, value in POOR.items():
        put(values, key, value)
    unlabelled = name in ("prediction_quality", "online_metrics")
    facts = dataclasses.replace(STORED, looks={}, live=()) if unlabelled else STORED
    before = _test(ModelSpec.model_validate(values), facts, name)
    assert (before.points < 1, before.needs) == (True, "file")
    for key, value in FOLLOWED[name].items():
        assert key.split(".", 1)[-1].rpartition(".")[2] in str(before.would_be_satisfied_by)
        put(values, key, value)
    after = _test(ModelSpec.model_validate(values), facts, name)
    assert after.points == 1.0 or after.needs == "monitor"


def _test(spec: ModelSpec, facts: Facts, name: str) -> Any:
    return next(test for test in score_model(spec, facts).tests if test.name == name)


def test_ways_name_keys_that_there_are() -> None:
    """What looks like a key of the file is one."""
    known = {key.name.replace("[]", "") for key in keys()}
    sections = {name.partition(".")[0] for name in known if "." in name}
    for spec, facts in ((make_spec(), BARE), (whole(), BARE), (whole(POOR), STORED)):
        for test in score_model(spec, facts).tests:
            text = f"{test.satisfied_by} {test.would_be_satisfied_by}"
            for found in re.findall(r"\b[a-z_]+(?:\.[a-z_]+)+\b", text):
                if found.partition(".")[0] in sections:
                    assert found in known, f"{test.name}: {found}"

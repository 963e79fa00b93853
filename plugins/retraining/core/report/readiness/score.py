"""The table of the 28 tests, and the score that a model reaches in them.

Breck, Cai, Nielsen, Salib and Sculley, The ML Test Score: A Rubric for ML Production Readiness and Technical Debt
Reduction (IEEE Big Data 2017): 1 point for a test that is made by itself again and again, 0.5 for one that was made by
hand with its result written down; the score is the least sum of the four sections of seven tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from retraining.core.documents.readiness import Readiness, RubricSection, ScoredTest
from retraining.core.report.readiness import data, infrastructure, model, monitoring
from retraining.core.report.readiness.answer import HALF, Answer
from retraining.core.report.readiness.facts import Facts
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.reviews import Review, TestName

STALE_AFTER = timedelta(days=365)
"""After which what a person stated counts no more."""


@dataclass(frozen=True, kw_only=True)
class Rubric:
    """A test: its section, what it asks in a few words, and the function that answers."""

    section: RubricSection
    title: str
    answer: Callable[[ModelSpec, Facts], Answer]


def _of(section: RubricSection, title: str, answer: Callable[[ModelSpec, Facts], Answer]) -> Rubric:
    return Rubric(section=section, title=title, answer=answer)


TESTS: Mapping[TestName, Rubric] = {
    "feature_schema": _of("data", "What features may be is written down and checked", data.feature_schema),
    "feature_benefit": _of("data", "Each feature is worth something", data.feature_benefit),
    "feature_cost": _of("data", "No feature costs too much", data.feature_cost),
    "feature_requirements": _of("data", "Features keep to rules for all of them", data.feature_requirements),
    "privacy": _of("data", "Who may see the data is controlled", data.privacy),
    "new_features": _of("data", "A new feature is quickly in use", data.new_features),
    "feature_code": _of("data", "The code of the features is tested", data.feature_code),
    "spec_review": _of("model", "The specification is reviewed and committed", model.spec_review),
    "online_metrics": _of("model", "Offline metrics agree with those of live answers", model.online_metrics),
    "hyperparameters": _of("model", "Hyperparameters are tuned", model.hyperparameters),
    "staleness_impact": _of("model", "What an older model loses is known", model.staleness_impact),
    "simpler_model": _of("model", "No simpler model is better", model.simpler_model),
    "slices": _of("model", "Quality holds in the slices that matter", model.slices),
    "inclusion": _of("model", "Groups of people are treated alike", model.inclusion),
    "reproducibility": _of("infrastructure", "A training can be repeated", infrastructure.reproducibility),
    "spec_tests": _of("infrastructure", "The specification has unit tests", infrastructure.spec_tests),
    "pipeline_test": _of("infrastructure", "The whole pipeline is tested together", infrastructure.pipeline_test),
    "quality_gate": _of("infrastructure", "Quality is judged before serving", infrastructure.quality_gate),
    "debugging": _of("infrastructure", "Single examples can be looked into", infrastructure.debugging),
    "canary": _of("infrastructure", "A new version begins with a small share of requests", infrastructure.canary),
    "rollback": _of("infrastructure", "A version can be taken back", infrastructure.rollback),
    "dependencies": _of("monitoring", "Somebody is told when a source changes", monitoring.dependencies),
    "data_invariants": _of("monitoring", "Inputs keep to what holds of them", monitoring.data_invariants),
    "training_serving_skew": _of(
        "monitoring", "Training and serving see the same features", monitoring.training_serving_skew
    ),
    "staleness": _of("monitoring", "The model that serves is not too old", monitoring.staleness),
    "numerical_stability": _of("monitoring", "Numbers stay finite", monitoring.numerical_stability),
    "computing_performance": _of("monitoring", "Speed does not get worse", monitoring.computing_performance),
    "prediction_quality": _of("monitoring", "Answers do not get worse", monitoring.prediction_quality),
}


def score_model(spec: ModelSpec, facts: Facts) -> Readiness:
    """Return the points of each test, what satisfies it and what would.

    Args:
        spec: The model, as its file says.
        facts: What is stored of it; without any, the tests that need a run or the monitor say so.
    """
    reviews = {review.test: review for review in spec.reviews}
    tests = (_scored(name, test, test.answer(spec, facts), reviews.get(name), facts) for name, test in TESTS.items())
    return Readiness(
        as_of=datetime.combine(facts.day, time(), UTC),
        run_key=facts.run.run_key if facts.run else None,
        tests=tuple(tests),
    )


def _scored(name: TestName, test: Rubric, answer: Answer, review: Review | None, facts: Facts) -> ScoredTest:
    satisfied_by, points, way, where = answer.satisfied_by, answer.points, answer.way, None
    if review is not None and points < HALF:
        if problem := _does_not_count(review, facts):
            way = f"{way}; {problem}"
        else:
            points, where = HALF, review.where
            satisfied_by = f"{review.by} made it by hand on {review.day}"
    return ScoredTest(
        name=name,
        section=test.section,
        title=test.title,
        points=points,
        satisfied_by=satisfied_by or None,
        would_be_satisfied_by=way or None,
        needs=answer.needs,
        where=where,
    )


def _does_not_count(review: Review, facts: Facts) -> str:
    """Return why a person's statement counts for nothing; empty: it counts."""
    if review.day > facts.day:
        return f"the statement of {review.by} is of {review.day}, a day to come"
    if facts.day - review.day > STALE_AFTER:
        return f"the statement of {review.by} of {review.day} is older than {STALE_AFTER.days} days"
    return ""

"""What a model's tests ask for, from its stored documents."""

from __future__ import annotations

import dataclasses
from datetime import date, timedelta
from typing import Any

import pytest

from retraining.core.documents import KINDS, Evaluation
from retraining.core.documents.evaluation import Difference, FeatureImportance, Gate, Importance, ReferenceLine, Rise
from retraining.core.documents.overview import ShownRollback, ShownSignal
from retraining.core.documents.readiness import AskedModel, OlderModel
from retraining.core.report.readiness.facts import LiveScore
from retraining.core.report.readiness.stored import StoredRun, facts_of, facts_of_run, live_scores, looks_of
from tests.support.contracts import EXAMPLES
from tests.support.scenes import models_page
from tests.support.small_model import make_spec

NAMES = (
    "plan__scheduled",
    "evaluation__duel",
    "checks__passed",
    "decision__promote",
    "registration__challenger",
    "deployment__champion",
    "timings__run",
    "tuning__study",
)


def stored_run(**changes: Any) -> StoredRun:
    """A run of the contract's examples, with another evaluation."""
    found: dict[str, Any] = {
        name.partition("__")[0]: KINDS[name.partition("__")[0]].parse((EXAMPLES / f"{name}.json").read_bytes())
        for name in NAMES
    }
    found["evaluation"] = found["evaluation"].model_copy(update=changes)
    return StoredRun(**found)


def difference(low: float, high: float, metric: str = "auc") -> Difference:
    """Of a challenger to something else."""
    values = {"metric": metric, "mean": (low + high) / 2, "low": low, "high": high, "confidence": 0.95, "samples": 500}
    return Difference(**values)


def line(name: str, gain: Difference | None, reason: str | None = None) -> ReferenceLine:
    """A reference line."""
    return ReferenceLine(name=name, rows=900, features=2, difference=gain, not_judged=reason)


def test_a_run_says_what_it_left() -> None:
    """By the examples of the contract."""
    facts = facts_of_run(stored_run())
    assert (facts.registered, facts.ended, facts.slices, facts.trials) == (True, True, 2, 3)
    assert facts.older == OlderModel(days=1.0, metric="auc", mean=0.01, low=-0.002, high=0.021)
    assert facts.asked == AskedModel(rows=200, strange=13)
    assert (facts.worst, facts.shows_values) == (2, True)


@pytest.mark.parametrize("kind", ["registration", "deployment", "decision", "checks", "timings", "tuning"])
def test_what_a_run_did_not_leave_is_unknown(kind: str) -> None:
    """A document less, and what only it knows."""
    facts = facts_of_run(dataclasses.replace(stored_run(), **{kind: None}))
    lost = {
        "registration": {"registered": False},
        "deployment": {"ended": False},
        "decision": {"older": None},
        "checks": {"findings": ()},
        "timings": {"seconds": None},
        "tuning": {"trials": 0},
    }
    assert facts == facts_of_run(stored_run()).model_copy(update=lost[kind])


def test_features_that_surely_do_harm_are_named() -> None:
    """The whole interval of the loss's rise is below 0; what was not judged is not counted."""
    features = [
        FeatureImportance(feature="good", challenger=Rise(mean=0.1, low=0.05, high=0.2)),
        FeatureImportance(feature="unsure", challenger=Rise(mean=-0.1, low=-0.2, high=0.0)),
        FeatureImportance(feature="harmful", challenger=Rise(mean=-0.1, low=-0.2, high=-0.01)),
        FeatureImportance(feature="slow", not_judged="the time was over"),
    ]
    importance = Importance(loss="log_loss", rows=900, repeats=3, confidence=0.95, features=tuple(features))
    facts = facts_of_run(stored_run(importance=importance))
    assert (facts.features_measured, facts.harmful) == (3, ("harmful",))


@pytest.mark.parametrize(
    ("gain", "is_better"),
    [
        (difference(-0.02, -0.01), True),
        (difference(-0.02, 0.0), False),
        (difference(0.01, 0.02), False),
        (difference(0.01, 0.02, "log_loss"), True),
        (difference(-0.02, 0.01, "log_loss"), False),
    ],
    ids=["loses", "unsure", "wins", "loses log loss", "unsure log loss"],
)
def test_a_line_is_better_where_the_whole_interval_says_so(gain: Difference, is_better: bool) -> None:
    """The difference is the model minus the line; what was not judged is told by its reason."""
    lines = (line("linear", gain), line("trees", None, "images alone"))
    facts = facts_of_run(stored_run(reference=lines))
    assert (facts.lines, facts.lines_not_judged) == ({"linear": is_better}, "images alone")


def test_a_gate_that_failed_is_a_problem_of_the_stored_model() -> None:
    """And so is an answer that did not come."""
    run = stored_run()
    assert run.decision is not None
    assert run.evaluation.serving is not None
    gate = Gate(gate="serving", passed=False, found="0.3", expected="1e-5", message="an answer is 0.3 off")
    failed = dataclasses.replace(run, decision=run.decision.model_copy(update={"gates": (gate,)}))
    silent = run.evaluation.serving.model_copy(update={"unanswered": ("carrier missing",)})
    assert facts_of_run(failed).asked == AskedModel(rows=200, strange=13, problem="an answer is 0.3 off")
    assert facts_of_run(stored_run(serving=silent)).asked == AskedModel(rows=200, strange=13, problem="carrier missing")
    assert facts_of_run(stored_run(serving=None)).asked is None


def test_a_first_model_has_no_older_one_beside_it() -> None:
    """Nor one whose champion has the same data."""
    assert facts_of_run(stored_run(difference=None)).older is None
    run = stored_run()
    assert run.decision is not None
    assert run.decision.champion is not None
    same = run.decision.champion.model_copy(update={"as_of": run.plan.as_of})
    decision = run.decision.model_copy(update={"champion": same})
    assert facts_of_run(dataclasses.replace(run, decision=decision)).older is None


def signal(kind: str, **changes: Any) -> ShownSignal:
    """What the monitor saw."""
    values = {"kind": kind, "subject": "", "state": "ok", "reason": None, "measure": "auc", "value": 0.7}
    return ShownSignal(**{**values, "threshold": 0.6, "examples": 900, **changes})


def history(*signals: tuple[str | None, ShownSignal]) -> Any:
    """A model whose looks, newest first, had one signal each, of a version."""
    (look, *_) = models_page.one_model().watches
    watches = [
        look.model_copy(
            update={"key": f"k{place}", "as_of": look.as_of - timedelta(hours=place), "signals": (each,)}
        ).model_copy(update={"version_id": version})
        for place, (version, each) in enumerate(signals)
    ]
    runs = [models_page.run(day).model_copy(update={"version_id": str(9 - day), "score": 0.5 + day}) for day in (1, 2)]
    return models_page.one_model().model_copy(update={"watches": tuple(watches), "runs": tuple(runs)})


def test_a_kind_counts_where_it_was_held_against_a_limit() -> None:
    """Its newest look; not what is only shown, and not what could not be judged."""
    shown, silent = (
        signal("traffic", threshold=None),
        signal("skew", state="not_judged", reason="no_traffic", value=None),
    )
    overview = history((None, silent), (None, signal("skew")), (None, signal("skew")), (None, shown))
    looks = looks_of(overview.watches)
    assert set(looks) == {"skew"}
    assert looks["skew"].as_of == overview.watches[1].as_of
    assert looks["skew"].signals == 1


def test_versions_have_a_tested_and_a_live_score() -> None:
    """The newest live one of each; nothing of slices, of other metrics, of unknown versions."""
    overview = history(
        ("8", signal("performance", value=0.8)),
        ("8", signal("performance", value=0.1)),
        ("7", signal("performance", subject="carrier=UA")),
        ("7", signal("performance", measure="log_loss")),
        (None, signal("performance")),
    )
    assert live_scores(overview, "auc") == (LiveScore(version_id="8", tested=1.5, live=0.8),)


def test_a_way_back_counts_and_a_stopped_deployment_does_not() -> None:
    """What a person went, with the day."""
    for stopped in (False, True):
        back = ShownRollback(
            name="20260519t030000z",
            at=models_page.NOW,
            version_id="3",
            from_version_id="4",
            stopped=stopped,
            who="by Ada",
            reason="",
        )
        overview = models_page.one_model().model_copy(update={"rollbacks": (back,)})
        facts = facts_of(make_spec(), date(2026, 5, 20), 0, None, overview)
        assert facts.rollback == ("" if stopped else "to version 3 on 2026-05-20, by Ada")


def test_an_evaluation_of_an_earlier_release_is_scored() -> None:
    """What it does not have satisfies nothing."""
    old = Evaluation.parse((EXAMPLES / "evaluation__first_model.json").read_bytes())
    assert facts_of_run(dataclasses.replace(stored_run(), evaluation=old)).features_measured == 0

"""Limits of answers by the champion's test days: days like those are no alarm, what they never did is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from retraining.core.documents.answers import AnswerCounts
from retraining.core.documents.monitoring import Signal
from retraining.core.monitoring.distributions import AnswerBaseline
from retraining.core.monitoring.drift import judge_shifts
from retraining.core.monitoring.limits import LEAST_DAYS
from retraining.core.monitoring.request_log import read_requests
from retraining.core.monitoring.usual import usual_of_answers
from tests.support.request_log import CHAMPION_ID, counted
from tests.support.small_model import make_plan, make_spec, make_statistics
from trainer.contract.documents import BinaryLabel, MulticlassLabel
from trainer.objective.quality import count_answers

Random = np.random.Generator
Answers = npt.NDArray[np.float64]
Day = Callable[[Random, int], Answers]
ROWS, WINDOWS = 1000, 40
LATE, GATE = BinaryLabel(name="late", kind="binary"), MulticlassLabel(name="late", kind="multiclass", classes=4)


def rare(random: Random, rows: int) -> Answers:
    """Scores of a rare event, alike on each day."""
    return random.beta(1, 200, rows)


def weather(random: Random, rows: int) -> Answers:
    """Scores that are higher on some days."""
    return 1 / (1 + np.exp(-random.normal(-1.5 + random.normal(0, 0.5), 1, rows)))


def gates(random: Random, rows: int) -> Answers:
    """Classes whose shares differ from day to day. [n, 4]."""
    shares = np.array([0.5, 0.3, 0.15, 0.05]) * random.uniform(0.8, 1.2, 4)
    return np.eye(4)[random.choice(4, rows, p=shares / shares.sum())]


def evaluated(day: Day, days: int = LEAST_DAYS, rows: int = ROWS) -> AnswerCounts:
    """What the judge counts of a test split."""
    random = np.random.default_rng(3)
    by_day = [day(random, rows) for _ in range(days)]
    places = np.split(np.arange(days * rows), days)
    return told(count_answers(GATE if day is gates else LATE, np.concatenate(by_day), places))


def told(found: Any) -> AnswerCounts:
    return AnswerCounts.model_validate(asdict(found))


def baseline_of(counts: AnswerCounts) -> AnswerBaseline:
    total = sum(counts.counts)
    return AnswerBaseline(
        name="late",
        output="score",
        classes=0 if counts.edges else len(counts.counts),
        edges=counts.edges,
        shares=tuple(count / total for count in counts.counts),
        rows=total,
        counted=counts,
    )


def counts_of(answers: Answers, baseline: AnswerBaseline) -> dict[str, int]:
    places = np.searchsorted(baseline.edges, answers, "right") if baseline.edges else answers.argmax(axis=1)
    return {str(place): int(count) for place, count in enumerate(np.bincount(places)) if count}


def judge(counts: AnswerCounts, now: Answers, before: Answers | None = None, **monitoring: Any) -> dict[str, Signal]:
    """The signals about answers, by subject."""
    plan, baseline = make_plan(make_spec(monitoring=monitoring)), baseline_of(counts)
    rows = counted({}, answers={"late": counts_of(now, baseline)})
    if before is not None:
        rows += counted({}, answers={"late": counts_of(before, baseline)}, asked_in="earlier")
    log = read_requests(rows, ["late"])
    train = make_statistics(plan).splits["train"].model_copy(update={"features": {}})
    found = judge_shifts(plan.spec, train, log, (baseline,), CHAMPION_ID)
    return {item.subject: item for item in found if item.kind == "prediction_drift"}


@pytest.mark.parametrize("day", [rare, weather, gates])
@pytest.mark.parametrize("rows", [200, 1000])
def test_answers_of_days_like_the_test_days_are_no_alarm(day: Day, rows: int) -> None:
    """Neither from the test days nor from an earlier day: of 40 at most one each is over the limit by chance."""
    counts, random = evaluated(day), np.random.default_rng(9)
    found = [judge(counts, day(random, rows), day(random, rows)) for _ in range(WINDOWS)]
    alarms = {name: sum(each[name].state == "exceeded" for each in found) for name in ("late", "late earlier")}
    assert alarms["late"] <= 1
    assert alarms["late earlier"] <= 1
    assert "usual by 14 test days" in found[0]["late"].message
    assert found[0]["late"].calibrated is not None
    assert found[0]["late"].calibrated.source == "test_days"


@pytest.mark.parametrize(
    ("day", "moved"),
    [(rare, lambda scores: 1.8 * scores), (gates, lambda answers: np.roll(answers, 1, axis=1))],
    ids=["rare-scores-nearly-doubled", "classes-changed"],
)
def test_answers_that_no_test_day_had_are_seen(day: Day, moved: Callable[[Answers], Answers]) -> None:
    """Nearly doubled scores of a rare event are nearer than 0.3, the limit of before."""
    counts, random = evaluated(day), np.random.default_rng(10)
    for _ in range(5):
        now = moved(day(random, ROWS))
        found = judge(counts, now, day(random, ROWS))
        assert {each.state for each in found.values()} == {"exceeded"}


def test_a_threshold_of_the_file_is_obeyed() -> None:
    counts, random = evaluated(rare), np.random.default_rng(10)
    found = judge(counts, 1.8 * rare(random, ROWS), drift={"threshold": 0.3})["late"]
    assert (found.state, found.threshold) == ("ok", 0.3)
    assert "of the file" in found.message


def test_two_windows_may_be_twice_as_far_from_each_other() -> None:
    random = np.random.default_rng(1)
    found = judge(evaluated(weather), weather(random, ROWS), weather(random, ROWS))
    one, two = found["late"].calibrated, found["late earlier"].calibrated
    assert one is not None
    assert two is not None
    assert one.usual > 0.02
    assert two.usual == pytest.approx(2 * one.usual, abs=2e-6)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (evaluated(rare, days=13), "13 days of the champion's run with 200 rows are fewer than the 14"),
        (evaluated(rare, rows=199), "0 days of the champion's run with 200 rows are fewer"),
        (evaluated(rare).model_copy(update={"by_day": ()}), "0 days of the champion's run with 200 rows are fewer"),
        (evaluated(rare).model_copy(update={"by_day": None}), "(limit 0.3, the default until the next retraining: "),
    ],
    ids=["few-days", "days-of-few-rows", "no-time", "earlier-release"],
)
def test_where_days_do_not_tell_the_text_says_why(counts: AnswerCounts, words: str) -> None:
    found = judge(counts, rare(np.random.default_rng(2), ROWS))["late"]
    assert words in found.message
    assert found.threshold == (0.3 if counts.by_day is None else pytest.approx(0.1, abs=0.02))


def test_one_day_out_of_the_ordinary_does_not_hide_a_change() -> None:
    random = np.random.default_rng(5)
    days = [*(rare(random, ROWS) for _ in range(15)), 8 * rare(random, ROWS)]
    counts = told(count_answers(LATE, np.concatenate(days), np.split(np.arange(16 * ROWS), 16)))
    usual = usual_of_answers(counts, 200)
    assert usual is not None
    assert usual.days == 16
    assert usual.distance < 0.02
    assert judge(counts, 2.5 * rare(random, ROWS))["late"].state == "exceeded"

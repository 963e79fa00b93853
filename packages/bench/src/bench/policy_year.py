"""A year of monitor runs in a world: the policy and the ledger are the product's own, models and days are made up.

In: a world, a schedule or none, the rules. Out: what was ordered, what served each day beside the best that could have
been trained by then, and whether each row of the ledger comes out of it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from bench.checkout import REPOSITORY_PATH
from bench.policy_worlds import BEFORE, COST, DAYS, TOP, World
from retraining.core.documents import (
    DriftChampion,
    Ledger,
    LedgerFacts,
    LedgerPolicy,
    LedgerResult,
    Signal,
    Signals,
)
from retraining.core.documents.ledger import ResultState
from retraining.core.metrics import Metrics
from retraining.core.monitoring import policy
from retraining.core.monitoring.distributions import Z95
from retraining.core.monitoring.intervals import Interval
from retraining.core.monitoring.limits import DEFAULT
from retraining.core.monitoring.orders import ORDERS, all_orders, orders_to_remember, reach
from retraining.core.monitoring.performance import Reference, hold_score
from retraining.core.monitoring.replay import Recorded, decide_again
from retraining.core.monitoring.signals import held, not_judged
from retraining.core.naming.run_keys import RunKey
from retraining.core.planning.windows import window
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from trainer.objective.metrics import Floats

FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)
HOURS_BETWEEN = 12
"""Of two monitor runs."""
ANSWERED_DAYS = 7
FEATURES = ("carrier", "dest")
REACH, NOISE = 0.6, 0.02
"""Distance of features of which training knows nothing, and how far a distance is off by chance."""
ERROR, PAIR_ERROR = 0.008, 0.004
"""Standard errors: of an AUC over a window or test days, and of the difference of two models on the same rows."""
ALLOWED_DROP, PATIENCE_DAYS = 0.03, 60
"""A day is stuck when what served is worse by more than this than the best, for longer than a training window."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """A model: when it was trained, its AUC by day, and what its own evaluation and those before it said."""

    key: DriftChampion
    days: Floats
    evaluated: float
    earlier: tuple[tuple[datetime, float], ...] = ()


@dataclass(kw_only=True)
class Year:
    """A year of a world.

    Args:
        world: Its days.
        schedule_days: Between two retrainings by the clock; None: there is none.
        is_earlier: Whether it is decided by the rules of the release before: no order waits, and the bar is the
            champion's own.
        seed: Of chance.
    """

    world: World
    schedule_days: int | None
    is_earlier: bool = False
    seed: int = 0
    recorded: list[Recorded] = field(default_factory=list)
    served: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the rules, and the model that serves on the first day."""
        self.random = np.random.default_rng(self.seed)
        self.spec = _spec_of(self.world)
        self.rules: LedgerPolicy = policy.policy_of(self.spec)
        if self.is_earlier:
            self.rules = self.rules.model_copy(update={"training": None})
        self.alike = self.world.alike()
        self.results: dict[str, LedgerResult] = {}
        self.last: Ledger | None = None
        self.versions = 0
        self.champion = self._train(FIRST_DAY)
        self.since = FIRST_DAY

    def play(self) -> None:
        """Let a year pass."""
        begun: list[tuple[datetime, Ledger | None]] = []
        for hours in range(0, DAYS * 24, HOURS_BETWEEN):
            at = FIRST_DAY + timedelta(hours=hours)
            for as_of, row in begun:
                self._retrain(as_of, row)
            row = self._look(at)
            begun = [(at, row)] if row.outcome in ORDERS else []
            if hours % 24 == 0:
                self.served.append(self.champion.days[BEFORE + hours // 24])
                if self.schedule_days and hours and (hours // 24) % self.schedule_days == 0:
                    begun.append((at, None))

    def _look(self, at: datetime) -> Ledger:
        """Return the row of one monitor run, decided by what the task `decide` reads."""
        seen, rows = self._signals(at), [each.row for each in self.recorded]
        first = at - reach(self.rules)
        recent = [row for row in rows[-(2 + 24 * 400 // HOURS_BETWEEN) :] if row.as_of >= first]
        known = all_orders(recent, self.last)
        remembered = orders_to_remember(known, self.rules, at, seen.champion)
        read = [*(row for row in rows if row.ledger_id in remembered), *recent]
        found = LedgerFacts(
            champion=seen.champion,
            champion_since=self.since,
            previous_version=None,
            paused=None,
            results=tuple(self.results[str(row.ledger_id)] for row in read if row.ledger_id in self.results),
            remembered=remembered,
        )
        row = policy.decide(seen, self.rules, found, read, ledger_id=f"{at:%Y%m%dt%H%M%Sz}-01234567")
        if row.outcome in ORDERS:
            row = self.last = row.model_copy(update={"earlier_orders": known})
        self.recorded.append(Recorded(signals=seen, row=row))
        return row

    def _signals(self, at: datetime) -> Signals:
        day = BEFORE + (at - FIRST_DAY).days
        found = (*self._distances(day), self._score(at, day))
        return Signals(
            model=self.spec.name,
            as_of=at,
            window_hours=24,
            champion=self.champion.key,
            endpoint_name="endpoint",
            log_table="project.dataset.table",
            requests=1000,
            bytes_read=0,
            signals=found,
        )

    def _distances(self, day: int) -> Iterator[Signal]:
        """Yield how far the requests of the last day are from what the champion was trained on."""
        trained = self._trained(RunKey.parse(self.champion.key.run_key).as_of)
        strange = self.world.seen * (1 - float(self.alike[day - 1, trained].mean()))
        gone = self.world.gone and self.world.gone[0] <= day - 1 - BEFORE < self.world.gone[1]
        limit = self.spec.monitoring.drift.threshold or DEFAULT
        for name in FEATURES:
            if gone:
                message = f"{name} is missing in all requests."
                yield not_judged("skew", "l_infinity", "feature_gone", message, subject=name, threshold=limit)
            else:
                value = min(1.0, abs(REACH * strange + NOISE * self.random.normal()))
                yield held(
                    "skew", "l_infinity", value, limit, f"{name} is at {value:.3f}.", subject=name, examples=1000
                )

    def _score(self, at: datetime, day: int) -> Signal:
        """Return the champion's AUC over the answers of the last days whose labels are known."""
        answered = self.rules.training.answered_days if self.rules.training else self.answered_days
        first = max(day - answered, BEFORE + (self.since - FIRST_DAY).days)
        days = self.champion.days[first : day - self.world.label_lag_days]
        if not len(days):
            return not_judged("performance", "auc", "no_labels", "No label is known yet.")
        value = float(days.mean()) + ERROR * self.random.normal()
        reach_of = Z95 * ERROR
        found = Interval(value=value, low=value - reach_of, high=value + reach_of, examples=1000 * len(days))
        recent = at - timedelta(days=self.spec.data.window_days)
        earlier = [score for replaced, score in self.champion.earlier if replaced > recent and not self.is_earlier]
        own, *others = [_metrics(score) for score in (self.champion.evaluated, *earlier)]
        return hold_score(self.spec, found, Reference(metrics=own, earlier=others))

    @property
    def answered_days(self) -> int:
        """Of how many days answers are held against labels."""
        return self.spec.monitoring.performance.window_days

    def _retrain(self, as_of: datetime, row: Ledger | None) -> None:
        """Train as of a time, compare on the test days, and let a better model serve."""
        new = self._train(as_of)
        difference = float((new.days - self.champion.days)[self._tested(as_of)].mean())
        difference += PAIR_ERROR * self.random.normal()
        state: ResultState = "failed" if self.world.fails else "rejected"
        if not self.world.fails and difference - Z95 * PAIR_ERROR > 0:
            state = "promoted"
        if row is not None:
            self.results[str(row.ledger_id)] = LedgerResult(
                ledger_id=str(row.ledger_id),
                ordered_at=row.as_of,
                cause=row.cause,
                dag_run_id="run",
                run_key=new.key.run_key,
                state=state,
                version_id=new.key.version_id,
                gain=difference,
            )
        if state == "promoted":
            earlier = ((as_of, self.champion.evaluated), *self.champion.earlier)
            self.champion = Version(key=new.key, days=new.days, evaluated=new.evaluated, earlier=earlier)
            self.since = as_of + timedelta(hours=HOURS_BETWEEN)

    def _train(self, as_of: datetime) -> Version:
        self.versions += 1
        days = self._knows(as_of)
        key = str(RunKey.of(as_of, self.versions))
        evaluated = float(days[self._tested(as_of)].mean()) + ERROR * self.random.normal()
        return Version(key=DriftChampion(version_id=str(self.versions), run_key=key), days=days, evaluated=evaluated)

    def _knows(self, as_of: datetime) -> Floats:
        """Return the AUC that a model trained as of a time has on each day."""
        known = np.sqrt(self.alike[:, self._trained(as_of)].mean(axis=1))
        days = np.arange(-BEFORE, DAYS)
        worse = 0.0 if self.world.worse_from is None else COST * (days >= self.world.worse_from)
        if self.world.gone:
            worse = worse + COST * ((days >= self.world.gone[0]) & (days < self.world.gone[1]))
        return np.asarray(TOP - self.world.felt * COST * (1 - known) - worse)

    def _trained(self, as_of: datetime) -> slice:
        days = window(self.spec.data, as_of)
        start, end = ((day - FIRST_DAY.date()).days + BEFORE for day in (days.start, days.test_start))
        return slice(start, end)

    def _tested(self, as_of: datetime) -> slice:
        days = window(self.spec.data, as_of)
        start, end = ((day - FIRST_DAY.date()).days + BEFORE for day in (days.test_start, days.end))
        return slice(start, end)

    def best(self) -> Floats:
        """Return for each day the AUC of the best possible policy: it trains daily, and knows which model is better."""
        serves, reached = self._knows(FIRST_DAY), []
        for day in range(DAYS):
            fresh = self._knows(FIRST_DAY + timedelta(days=day))
            serves = fresh if fresh[BEFORE + day] >= serves[BEFORE + day] else serves
            reached.append(serves[BEFORE + day])
        return np.array(reached)

    @property
    def orders(self) -> list[Ledger]:
        """The rows that ordered a retraining."""
        return [each.row for each in self.recorded if each.row.outcome in ORDERS]

    def summary(self) -> dict[str, float]:
        """Return what the year came to."""
        gap = np.maximum(self.best() - np.array(self.served), 0.0)
        rows = [each.row for each in self.recorded]
        return {
            "orders": len(self.orders),
            "regret": round(float(gap.mean()), 5),
            "last": round(float(self.served[-1]), 4),
            "reachable": round(float(self.best()[-1]), 4),
            "stuck": stuck_days(gap),
            "rows": len(rows),
            "same": sum(decide_again(each, rows) == each.row for each in self.recorded),
        }


def stuck_days(gap: Floats) -> int:
    """Return the days on which more than is allowed was missing, of each such stretch those after the patience."""
    stuck = on_end = 0
    for missing in gap:
        on_end = on_end + 1 if missing > ALLOWED_DROP else 0
        stuck += on_end > PATIENCE_DAYS
    return stuck


def _metrics(auc: float) -> Metrics:
    return Metrics(auc=min(1.0, auc), log_loss=0.5, accuracy=0.8, brier=0.2)


def _spec_of(world: World) -> ModelSpec:
    """Return the flights model's spec with the default hysteresis, and the world's labels."""
    spec = load_spec(REPOSITORY_PATH / "include" / "models" / "flight_delays.yaml")
    return spec.with_overrides(
        {
            "monitoring.policy.windows": {"exceeded": 2, "of": 3},
            "monitoring.performance.window_days": ANSWERED_DAYS + world.label_lag_days,
            "data.label_lag_days": world.label_lag_days,
        }
    )

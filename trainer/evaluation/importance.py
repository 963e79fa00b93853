"""Which features the models of a comparison rely on: their losses where a feature's values come from other test rows.

Comes in: a sample of the test rows, as models are asked, and the models that are asked here. Goes out: for each feature
how much the challenger's and the champion's loss rise, and the difference, with intervals. What is exchanged is the
column of a request: whatever a model makes of it, a cross, a bag or the hour of a time, changes with it. It ends when
its time is over and says what is left out; it never ends the job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import tensorflow as tf

from trainer.contract.documents import (
    DrawnBy,
    EvaluateRequest,
    Evidence,
    FeatureImportance,
    Importance,
    ImportanceRequest,
    Label,
    RegressionLabel,
    Rise,
)
from trainer.evaluation.drawing import Drawing, Drawn
from trainer.evaluation.scoring import CHALLENGER, CHAMPION, Columns, Model, Scored
from trainer.objective.bootstrap import Resampling
from trainer.objective.evidence import Rows, gather_evidence, is_enough, kinds_of_rows
from trainer.objective.importance import Exchange, draw_donors
from trainer.objective.metrics import Floats, log_losses
from trainer.objective.number_metrics import absolute_errors, point
from trainer.telemetry.usage import process_age_s

LOGGER = logging.getLogger(__name__)
Loss = Literal["log_loss", "mae"]
SIDES = (CHALLENGER, CHAMPION)
_ROWS_AT_ONCE = 1024


class _NoTimeLeftError(Exception):
    """Why nothing more is measured."""


def draw_rows(request: EvaluateRequest, models: Mapping[str, Model]) -> Drawing | None:
    """Return what draws the rows; None: nothing is asked for, or the challenger cannot be asked here."""
    asked = request.importance
    if asked is None or CHALLENGER not in models:
        return None
    return Drawing(
        rows=asked.rows,
        seed=asked.seed,
        inputs=tuple(_features(models)),
        by_label=request.label.kind == "binary",
    )


def _features(models: Mapping[str, Model]) -> list[str]:
    """Return what is exchanged: the challenger's inputs, then those that the champion alone reads."""
    return list(dict.fromkeys(name for side in SIDES if side in models for name in models[side].inputs))


def measure_importance(
    request: EvaluateRequest,
    scored: Scored,
    models: Mapping[str, Model],
    resampling: Resampling,
    columns: Columns,
    age: Callable[[], float] = process_age_s,
) -> Importance | None:
    """Return which features the models rely on; None: it is not asked for.

    Args:
        request: What the judge is asked.
        scored: The test split, with the rows that were drawn.
        models: That are asked here, by their part in the comparison.
        resampling: What the intervals take as independent.
        columns: Of the examples.
        age: Seconds since the job began.
    """
    asked, drawn = request.importance, scored.drawn
    if asked is None:
        return None
    nothing = _nothing(request, resampling)
    if CHALLENGER not in models:
        return replace(nothing, not_judged="the challenger is scored by its own image, from this run's rows alone")
    if drawn is None or len(drawn.judged) < 2:
        return replace(nothing, not_judged="there is no other row to take values from, or no feature to exchange")
    sample = _sample(scored, drawn)
    evidence = _evidence(nothing.loss, sample, resampling)
    if not is_enough(evidence):
        return replace(nothing, evidence=evidence)
    exchange = _exchange(asked, drawn, sample, evidence, resampling)
    trial = _Trial(
        label=request.label,
        labels=sample.labels,
        models={side: models[side] for side in SIDES if side in models},
        drawn=drawn,
        rows_at_once=columns.rows_at_once(set(drawn.columns)) or _ROWS_AT_ONCE,
        check=_checked(asked, age),
    )
    start = age()
    found = _measure(trial, exchange)
    _log(found, len(sample.labels), age() - start)
    return replace(
        nothing,
        evidence=evidence,
        rows=len(drawn.judged) if found.features else 0,
        repeats=found.repeats,
        features=found.features,
        not_judged=found.left_out,
    )


def _log(found: _Found, rows: int, seconds: float) -> None:
    done = f"{len(found.features)} features, {rows} rows, {found.repeats} repeats"
    LOGGER.info(
        "evaluate: importance of %s in %.1f s%s", done, seconds, f"; {found.left_out}" if found.left_out else ""
    )


def _nothing(request: EvaluateRequest, resampling: Resampling) -> Importance:
    together: DrawnBy = "days" if resampling.unit == "days" else "groups"
    drawn_by: DrawnBy = "rows" if resampling.groups is None else together
    loss: Loss = "mae" if isinstance(request.label, RegressionLabel) else "log_loss"
    return Importance(loss=loss, rows=0, repeats=0, confidence=resampling.confidence, drawn_by=drawn_by)


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """The rows that are judged.

    Attributes:
        rows: Their numbers in the split. [m]
        labels: [m]
        scores: The challenger's. [m], [m, classes or quantiles]
        counts: How much each counts: by its weight, and by how many rows it stands for. [m]
    """

    rows: Rows
    labels: Floats
    scores: Floats
    counts: Floats


def _sample(scored: Scored, drawn: Drawn) -> _Sample:
    rows = drawn.rows[drawn.judged]
    counts = drawn.factors if scored.weights is None else drawn.factors * scored.weights[rows]
    return _Sample(rows=rows, labels=scored.labels[rows], scores=scored.scores[CHALLENGER][rows], counts=counts)


def _evidence(loss: Loss, sample: _Sample, resampling: Resampling) -> Evidence:
    kinds = kinds_of_rows(loss, sample.labels, sample.scores)
    groups = None if resampling.groups is None else resampling.groups[sample.rows]
    least = (resampling.min_rows, resampling.min_groups)
    return gather_evidence(kinds, sample.counts, groups, *least, resampling.unit)


def _exchange(
    asked: ImportanceRequest, drawn: Drawn, sample: _Sample, evidence: Evidence, resampling: Resampling
) -> Exchange:
    return Exchange(
        rows=drawn.judged,
        donors=draw_donors(drawn.donors, asked.repeats, asked.seed),
        shares=sample.counts,
        units=_units(drawn, resampling),
        effective=evidence.effective,
        confidence=resampling.confidence,
    )


def _units(drawn: Drawn, resampling: Resampling) -> Rows:
    """Return the number of each drawn row's unit. [k]."""
    if resampling.groups is None:
        return np.arange(len(drawn.rows))
    return np.unique(resampling.groups[drawn.rows], return_inverse=True)[1]


def _checked(asked: ImportanceRequest, age: Callable[[], float]) -> Callable[[], None]:
    """Return what raises once there is no time left."""
    start = age()

    def check() -> None:
        now = age()
        if now - start > asked.seconds:
            raise _NoTimeLeftError(f"{asked.seconds} seconds were over (evaluation.importance.max_seconds)")
        if now > asked.ends_after:
            raise _NoTimeLeftError(f"the job had run for {asked.ends_after} seconds, near its time limit")

    return check


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """Models, and the rows that they are asked for.

    Attributes:
        label: Of the models.
        labels: Of the rows that are judged. [m]
        models: By their part in the comparison.
        drawn: The rows.
        rows_at_once: That a model can take.
        check: Raises once there is no time left.
    """

    label: Label
    labels: Floats
    models: Mapping[str, Model]
    drawn: Drawn
    rows_at_once: int
    check: Callable[[], None]

    def losses(self, side: str, feature: str | None = None, donors: Rows | None = None) -> Floats:
        """Return a model's losses, with one feature's values taken from other rows. [m].

        Raises:
            _NoTimeLeftError: There is no time left.
        """
        model, rows, answers = self.models[side], self.drawn.judged, []
        for start in range(0, len(rows), self.rows_at_once):
            self.check()
            part = slice(start, start + self.rows_at_once)
            raw = {name: tf.gather(self.drawn.columns[name], rows[part]) for name in model.inputs}
            if feature is not None and donors is not None:
                raw[feature] = tf.gather(self.drawn.columns[feature], donors[part])
            answers.append(model.answer(raw)[model.output])
        scores = np.concatenate(answers)
        if isinstance(self.label, RegressionLabel):
            return absolute_errors(self.labels, point(scores, self.label.quantiles))
        return log_losses(self.labels, scores)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What was measured: features, of how many repeats, and what was left out."""

    features: tuple[FeatureImportance, ...] = ()
    repeats: int = 0
    left_out: str | None = None


Rises = dict[tuple[str, str], list[Floats]]
"""By feature and model the rises of each repeat. [m] each"""


def _measure(trial: _Trial, exchange: Exchange) -> _Found:
    """Exchange values: every feature once, then every one again, so that a short time leaves all with fewer repeats."""
    features, rises = _features(trial.models), Rises()
    reason = None
    try:
        _fill(rises, trial, exchange, features)
    except _NoTimeLeftError as error:
        reason = str(error)
    done = [feature for feature in features if _repeats(rises, trial, feature)]
    repeats = min((_repeats(rises, trial, feature) for feature in features), default=0) or min(len(done), 1)
    left_out = None
    if reason and len(done) < len(features):
        left_out = f"{reason} after {len(done)} of {len(features)} features"
    elif reason:
        left_out = f"{reason} after {repeats} of {len(exchange.donors)} repeats"
    measured = [_importance(rises, trial, exchange, feature, repeats) for feature in done]
    measured.sort(key=lambda item: (item.challenger is None, -(item.challenger.mean if item.challenger else 0.0)))
    return _Found(features=tuple(measured), repeats=repeats, left_out=left_out)


def _fill(rises: Rises, trial: _Trial, exchange: Exchange, features: Sequence[str]) -> None:
    """Measure until all is, or until there is no time left.

    Raises:
        _NoTimeLeftError: There is no time left.
    """
    base = {side: trial.losses(side) for side in trial.models}
    for donors in exchange.donors:
        for feature in features:
            for side in _readers(trial, feature):
                rise = trial.losses(side, feature, donors) - base[side]
                rises.setdefault((feature, side), []).append(rise)


def _readers(trial: _Trial, feature: str) -> list[str]:
    """Return which models read a feature."""
    return [side for side, model in trial.models.items() if feature in model.inputs]


def _repeats(rises: Rises, trial: _Trial, feature: str) -> int:
    """Return how often all its readers have answered."""
    return min(len(rises.get((feature, side), ())) for side in _readers(trial, feature))


def _importance(rises: Rises, trial: _Trial, exchange: Exchange, feature: str, repeats: int) -> FeatureImportance:
    by_side = {side: np.stack(rises[feature, side][:repeats]) for side in _readers(trial, feature)}
    wrong = [side for side, found in by_side.items() if not np.isfinite(found).all()]
    if wrong:
        reason = f"the {' and the '.join(wrong)} gave answers that are not finite to values of other rows"
        return FeatureImportance(feature=feature, not_judged=reason)
    measured = {side: _rise(exchange, found) for side, found in by_side.items()}
    both = len(measured) == len(SIDES)
    change = _rise(exchange, by_side[CHALLENGER] - by_side[CHAMPION]) if both else None
    return FeatureImportance(
        feature=feature, challenger=measured.get(CHALLENGER), champion=measured.get(CHAMPION), change=change
    )


def _rise(exchange: Exchange, rises: Floats) -> Rise:
    found = exchange.measure(rises)
    return Rise(mean=found.mean, low=found.low, high=found.high)

"""Whether the challenger is worth more than what a minute of scikit-learn would give: a gate of the decision."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.documents.evaluation import Difference, Evaluation, Gate, ReferenceLine
from retraining.core.documents.plan import Plan
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.promotion.evidence import describe_shortage, is_short
from retraining.core.promotion.slices import value_of

NOT_JUDGED = "not judged"
"""What the gate `reference` finds where no line could be compared."""
LINES = {"linear": "a linear model", "trees": "small boosted trees"}
_EXPECTED = "no sure loss to a reference line"


def reference_gate(plan: Plan, evaluation: Evaluation) -> Gate:
    """Return the gate of an evaluation that has reference lines.

    A line that was not judged stops nothing, nor does a loss that may be chance: the interval's better end must be a
    loss too.
    """
    metric = plan.spec.evaluation.metric
    judged = [(line, line.difference) for line in evaluation.reference if line.difference]
    unjudged = "; ".join(_unjudged(evaluation))
    if not judged:
        return Gate(gate="reference", passed=True, found=NOT_JUDGED, expected=_EXPECTED, message=unjudged)
    found = ", ".join(f"{line.name} {_gain(difference)}" for line, difference in judged)
    lost = [(line, difference) for line, difference in judged if _is_loss(difference)]
    more = f"; {unjudged}" if unjudged else ""
    if not lost:
        names = " and ".join(LINES[line.name] for line, _ in judged)
        message = f"{metric} does not surely lose to {names} of the same shards{more}"
        return Gate(gate="reference", passed=True, found=found, expected=_EXPECTED, message=message)
    ours = value_of(evaluation.challenger.metrics, metric)
    losses = " and ".join(_loss(line, difference) for line, difference in lost)
    value = "" if ours is None else f" {ours:.3f}"
    message = f"{metric}{value} surely loses to {losses}, trained on the same shards in a minute"
    if plan.spec.evaluation.promote.below_reference:
        message = f"{message}; evaluation.promote.below_reference accepts it{more}"
        return Gate(gate="reference", passed=True, found=found, expected=_EXPECTED, message=message)
    way_out = (
        "look at the training's findings on the page, and leave to the recipe what training sets; to promote such a "
        "model all the same, set evaluation.promote.below_reference: true"
    )
    return Gate(gate="reference", passed=False, found=found, expected=_EXPECTED, message=f"{message}; {way_out}{more}")


def why_not_judged(line: ReferenceLine) -> str | None:
    """Return why a line was not compared; None: it was."""
    if line.not_judged:
        return line.not_judged
    if is_short(line.evidence):
        return describe_shortage(line.evidence)
    return None if line.difference else "the metric is not defined for it"


def _unjudged(evaluation: Evaluation) -> Iterator[str]:
    """Yield a sentence for each reason, once."""
    reasons: dict[str, list[str]] = {}
    for line in evaluation.reference:
        if reason := why_not_judged(line):
            reasons.setdefault(reason, []).append(line.name)
    for reason, names in reasons.items():
        yield f"the reference {'lines' if len(names) > 1 else 'line'} {' and '.join(names)} not judged: {reason}"


def _is_loss(difference: Difference) -> bool:
    """Return whether the whole interval is a loss of the challenger's."""
    return difference.high < 0 if difference.metric in HIGHER_IS_BETTER else difference.low > 0


def _gain(difference: Difference) -> str:
    mean, low, high = difference.mean, difference.low, difference.high
    if difference.metric not in HIGHER_IS_BETTER:
        mean, low, high = -mean, -high, -low
    return f"gain {mean:.4f} ({low:.4f} to {high:.4f})"


def _loss(line: ReferenceLine, difference: Difference) -> str:
    value = value_of(line.metrics, difference.metric) if line.metrics else None
    return f"{LINES[line.name]} ({'' if value is None else f'{value:.3f}, '}{_gain(difference)})"

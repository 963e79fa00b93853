"""The best champion of late: whom a loss is added up against, so that many small ones do not become a large one.

In: the documents of the run that made the champion, which name whom it replaced. Out: the model that no champion since
has surely beaten, and the gate that bounds the challenger's loss against it. Where each champion had to be surely
better than the one before (`min_gain` of 0 or more), that model is the champion itself, and nothing more is scored.
"""

from __future__ import annotations

from retraining.core.documents.evaluation import Champion, Difference, EvaluateRequest, Evaluation, Evidence, Gate
from retraining.core.documents.plan import Plan
from retraining.core.metrics import HIGHER_IS_BETTER, Metric
from retraining.core.promotion.evidence import describe_shortage, is_short
from retraining.core.promotion.slices import SliceLoss, surely_worse, value_of

NOT_JUDGED = "not judged"
LARGEST_LOSS = 0.01
"""By default: of a metric where higher is better that much, of another that share of the best champion's value."""


def best_of_late(request: EvaluateRequest | None, evaluation: Evaluation | None) -> Champion | None:
    """Return the model that the champion is to be remembered beside; None: the champion is the best of late.

    One that the champion has surely beaten on common rows is forgotten, and chance alone forgets none: which of two
    was measured better would be the luckier one, night after night.

    Args:
        request: Of the run that made the champion; None: it is gone.
        evaluation: Likewise.
    """
    if request is None or evaluation is None:
        return None
    best, difference = request.champion, evaluation.difference
    if request.best is not None and evaluation.best is not None:
        best, difference = request.best, evaluation.best_difference
    if best is None or difference is None or _gain(difference, difference.metric)[0] > 0:
        return None
    return best.model_copy(update={"scores_uri": None})


def best_gate(plan: Plan, request: EvaluateRequest, evaluation: Evaluation) -> Gate:
    """Return the gate: the challenger must not surely lose more than the bound against the best champion of late.

    The frozen set counts beside the test rows, with Holm's correction, but not against a challenger that is surely
    better on the test rows: its examples are older, and what is right now may be wrong there.
    """
    metric = plan.spec.evaluation.metric
    if evaluation.champion is None:
        asked = request.champion is not None or request.champion_skipped is not None
        found = "no comparison" if asked else "no champion"
        return _gate(True, found, "the champion as new", "there is no champion to lose against")
    skipped = request.best_skipped or evaluation.best_skipped
    bound, reference = _bound(plan, evaluation), _name(request)
    expected = f"no sure loss over {bound:.3g} {metric} against the best champion of late"
    if skipped:
        message = f"{metric} was not judged against the best champion of late: {skipped}"
        return _gate(True, NOT_JUDGED, expected, message)
    losses = _losses(evaluation, metric, best_is_another=request.best is not None)
    if not losses:
        evidence = evaluation.best_evidence if request.best else evaluation.difference_evidence
        short = f": {describe_shortage(evidence)}" if is_short(evidence) else ""
        return _gate(True, NOT_JUDGED, expected, f"{metric} was not judged against {reference}{short}")
    worse = surely_worse(losses, bound, 1 - plan.spec.evaluation.promote.confidence)
    worst = max(worse or losses, key=lambda loss: loss.mean)
    found = f"loss {worst.mean:.4f} on {worst.where}"
    if worse:
        message = f"{metric} surely loses more than {bound:.3g} against {reference}: {worst.mean:.3f} on {worst.where}"
        return _gate(False, found, expected, message)
    return _gate(True, found, expected, f"{metric} does not surely lose more than {bound:.3g} against {reference}")


def _bound(plan: Plan, evaluation: Evaluation) -> float:
    metric, given = plan.spec.evaluation.metric, plan.spec.evaluation.promote.max_loss_from_best
    if given is not None:
        return given
    if metric in HIGHER_IS_BETTER:
        return LARGEST_LOSS
    best = evaluation.best or (evaluation.champion.metrics if evaluation.champion else None)
    value = value_of(best, metric) if best else None
    return LARGEST_LOSS * abs(value or 0.0)


def _name(request: EvaluateRequest) -> str:
    best = request.best or request.champion
    place = "the best champion of late" if request.best else "the champion, the best of late"
    return f"{place} (version {best.version_id})" if best else place


def _losses(evaluation: Evaluation, metric: Metric, *, best_is_another: bool) -> list[SliceLoss]:
    """Return the losses that can be judged, on the test rows and on the frozen set."""
    difference, evidence = evaluation.difference, evaluation.difference_evidence
    if best_is_another:
        difference, evidence = evaluation.best_difference, evaluation.best_evidence
    if difference is None or difference.deviation is None:
        return []
    golden = evaluation.golden
    losses = [_loss(difference, evidence, metric, "the test rows")]
    if golden and golden.difference and _gain(difference, metric)[0] <= 0:
        losses.append(_loss(golden.difference, golden.evidence, metric, "the frozen set"))
    return losses


def _loss(difference: Difference, evidence: Evidence | None, metric: Metric, where: str) -> SliceLoss:
    _, mean = _gain(difference, metric)
    degrees = evidence.effective - 1 if evidence else None
    return SliceLoss(mean=-mean, deviation=difference.deviation or 0.0, where=where, degrees=degrees)


def _gain(difference: Difference, metric: Metric) -> tuple[float, float]:
    """Return the lower end and the mean of the challenger's gain."""
    if metric in HIGHER_IS_BETTER:
        return difference.low, difference.mean
    return -difference.high, -difference.mean


def _gate(passed: bool, found: str, expected: str, message: str) -> Gate:
    return Gate(gate="best", passed=passed, found=found, expected=expected, message=message)

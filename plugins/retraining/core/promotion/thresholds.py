"""What a decision says of answers as yes or no: for information, it decides nothing."""

from __future__ import annotations

from retraining.core.documents.threshold import ThresholdScores


def threshold_sentence(scores: ThresholdScores | None) -> str:
    """Return what follows the decision's own sentence; empty where the spec has no threshold."""
    if scores is None:
        return ""
    if scores.threshold is None or scores.challenger is None:
        return f" No threshold: {scores.words}."
    rates = (("precision", scores.challenger.precision), ("recall", scores.challenger.recall))
    found = ", ".join(f"{name} {rate.value:.3f}" if rate else f"no {name}" for name, rate in rates)
    return f" At threshold {scores.threshold:.3g}: {found}."

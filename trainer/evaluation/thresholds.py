"""Both models as yes or no: at a threshold that is given or that the challenger's answers to validation choose.

The test split never chooses it: quality there would be that of the luckiest threshold. The champion is measured at the
same one, for whoever acts on answers has one threshold, whichever model gives them.
"""

from __future__ import annotations

import logging

from trainer.contract.documents import AtThreshold, EvaluateRequest, ThresholdScores
from trainer.evaluation.scoring import Scored
from trainer.objective.bootstrap import Resampling
from trainer.objective.metrics import Floats
from trainer.objective.thresholds import Choice, choose_threshold, measure_at

LOGGER = logging.getLogger(__name__)


def measure_threshold(
    request: EvaluateRequest,
    scored: Scored,
    chosen_on: tuple[Floats, Floats, Floats | None] | None,
    resampling: Resampling,
) -> ThresholdScores | None:
    """Measure the models of a comparison; None: the request has no rule.

    Args:
        scored: The test split.
        chosen_on: Labels of the validation split, the challenger's answers, and weights or None; None: the request
            gives a number. [n] each
        resampling: Of the test split.
    """
    rule = request.threshold
    if rule is None:
        return None
    given = Choice(threshold=rule.at, words="as the model's file says")
    choice = given if chosen_on is None else choose_threshold(rule, *chosen_on)
    LOGGER.info("evaluate: threshold %s: %s", choice.threshold, choice.words)
    measured: dict[str, AtThreshold | None] = {"challenger": None, "champion": None}
    if choice.threshold is not None:
        for name, scores in scored.scores.items():
            measured[name] = measure_at(choice.threshold, scored.labels, scores, resampling)
    return ThresholdScores(threshold=choice.threshold, words=choice.words, confidence=resampling.confidence, **measured)

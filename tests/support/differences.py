"""The difference of two models in one metric."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.contract.documents import Difference, Metric
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics
from trainer.objective.metrics import Floats


def bootstrap_difference(
    labels: Floats,
    challenger: Floats,
    champion: Floats,
    *,
    metric: Metric,
    quantiles: Sequence[float] = (),
    **settings: float,
) -> Difference | None:
    """Return it; None where it is not defined."""
    pair = Pair(labels=labels, challenger=challenger, champion=champion, quantiles=quantiles)
    return bootstrap_metrics(pair, [metric], Resampling(**settings)).get(metric)

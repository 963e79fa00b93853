"""Sampled Shapley values: what each input adds to an answer, averaged over random orders of the inputs.

Comes in: names of inputs, and the model's answers with some of them as in the instance and the others at their
baseline. Goes out: attributions. Along one order the inputs change from baseline to instance one after the other, so
its contributions add up to the difference of the two answers, and so does their mean.
Castro, Gómez, Tejada 2009, Polynomial calculation of the Shapley value based on sampling.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence

Order = tuple[str, ...]
Coalition = frozenset[str]
"""The inputs that are as in the instance."""


def draw_orders(names: Sequence[str], paths: int, chance: random.Random) -> list[Order]:
    """Return as many random orders of the inputs as there are paths."""
    return [tuple(chance.sample(list(names), len(names))) for _ in range(paths)]


def coalitions_of(orders: Sequence[Order]) -> list[Coalition]:
    """Return what the model must be asked, each once: the baseline first; without the instance itself."""
    begun = (frozenset(order[:count]) for order in orders for count in range(len(order)))
    return list(dict.fromkeys(begun))


def attribute(orders: Sequence[Order], answers: Mapping[Coalition, float]) -> tuple[dict[str, float], float]:
    """Return each input's attribution, and the error that is left by so few orders.

    Args:
        orders: At least one.
        answers: Of all coalitions of the orders, and of all inputs together.

    Returns:
        Attributions by input; the sum of their standard errors as a share of the sum of their sizes: 0 where all orders
        say the same, NaN of a single order of several inputs, which says nothing about it.
    """
    added: dict[str, list[float]] = {name: [] for name in orders[0]}
    for order in orders:
        for count, name in enumerate(order):
            added[name].append(answers[frozenset(order[: count + 1])] - answers[frozenset(order[:count])])
    attributions = {name: math.fsum(values) / len(values) for name, values in added.items()}
    return attributions, _error(added, attributions)


def _error(added: Mapping[str, list[float]], attributions: Mapping[str, float]) -> float:
    paths = len(next(iter(added.values())))
    if paths == 1:
        return math.nan if len(added) > 1 else 0.0
    if not all(map(math.isfinite, attributions.values())):
        return math.nan
    spread = sum(statistics.stdev(values) for values in added.values()) / math.sqrt(paths)
    size = sum(map(abs, attributions.values()))
    if spread == 0.0:
        return 0.0
    return spread / size if size else math.inf

"""Sampled Shapley values against those by definition, over all coalitions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from localcloud.vertex.endpoints.shapley import Coalition, attribute, coalitions_of, draw_orders

NAMES = ("a", "b", "c", "d")
Game = Callable[[Coalition], float]


def with_interactions(present: Coalition) -> float:
    """`a` and `b` add by themselves, `c` only beside `a`, `d` nothing."""
    return 0.1 + 2.0 * ("a" in present) - 0.7 * ("b" in present) + 3.3 * ({"a", "c"} <= present)


def exact_values(game: Game) -> dict[str, float]:
    """Shapley's definition: the mean of an input's contributions over all orders of the inputs."""
    orders = list(itertools.permutations(NAMES))
    added = {
        name: [game(frozenset(o[: o.index(name) + 1])) - game(frozenset(o[: o.index(name)])) for o in orders]
        for name in NAMES
    }
    return {name: math.fsum(values) / len(orders) for name, values in added.items()}


def sampled(game: Game, paths: int, seed: int) -> tuple[dict[str, float], float]:
    orders = draw_orders(NAMES, paths, random.Random(seed))
    answers = {each: game(each) for each in (*coalitions_of(orders), frozenset(NAMES))}
    return attribute(orders, answers)


@pytest.mark.parametrize("paths", [1, 2, 7, 50])
def test_attributions_add_up_to_the_difference_from_the_baseline(paths):
    """Whatever the orders: what holds along each holds of their mean."""
    chance = random.Random(3)
    answers = {
        frozenset(each): chance.uniform(-9, 9)
        for count in range(len(NAMES) + 1)
        for each in itertools.combinations(NAMES, count)
    }
    for seed in range(30):
        found, _ = sampled(answers.__getitem__, paths, seed)
        difference = answers[frozenset(NAMES)] - answers[frozenset()]
        assert math.fsum(found.values()) == pytest.approx(difference, abs=1e-12)


def test_an_additive_answer_is_attributed_exactly():
    """By one path already, and the error says so."""
    found, error = sampled(lambda present: 1.0 + 2.0 * ("a" in present) - 0.5 * ("d" in present), 3, 0)
    assert found == {"a": 2.0, "b": 0.0, "c": 0.0, "d": -0.5}
    assert error == 0.0


def test_the_mean_of_many_requests_is_shapleys_value_and_its_error_is_told():
    """Each estimate is unbiased; the told error is of the size of the real one."""
    exact, seeds = exact_values(with_interactions), range(400)
    estimates = [sampled(with_interactions, 10, seed) for seed in seeds]
    for name in NAMES:
        mean = math.fsum(found[name] for found, _ in estimates) / len(seeds)
        assert mean == pytest.approx(exact[name], abs=0.08), name
    size = sum(map(abs, exact.values()))
    real = math.fsum(
        math.sqrt(math.fsum((found[name] - exact[name]) ** 2 for found, _ in estimates) / len(seeds)) for name in NAMES
    )
    told = math.fsum(error for _, error in estimates) / len(seeds)
    assert told == pytest.approx(real / size, rel=0.15)


def test_one_path_says_nothing_of_its_error():
    _, error = sampled(with_interactions, 1, 0)
    assert math.isnan(error)
    alone, error = attribute([("a",)], {frozenset(): 1.0, frozenset("a"): 4.0})
    assert (alone, error) == ({"a": 3.0}, 0.0)


def test_nothing_is_asked_twice():
    """Of 50 orders of four inputs all 16 coalitions are wanted, and 15 of them asked beside the instance."""
    wanted = coalitions_of(draw_orders(NAMES, 50, random.Random(1)))
    assert (len(wanted), len(set(wanted)), wanted[0]) == (15, 15, frozenset())

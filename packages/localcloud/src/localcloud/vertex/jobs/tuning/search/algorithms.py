"""The next values to try: by grid, at random, or by Bayesian optimization.

Comes in: a study's spec and all its trials. Goes out: assignments, fewer than asked for when the space is used up. What
is suggested depends on the study's display name and its trials alone: the same study takes the same way again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Sequence

from google.cloud.aiplatform_v1.types import StudySpec, Trial

from localcloud.vertex.jobs.tuning.search.bayesian import Designer
from localcloud.vertex.jobs.tuning.search.space import Assignment, Space, is_same, read_space, values_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """A study as its algorithm sees it.

    Args:
        display_name: Seeds what is left to chance.
        trials: All trials in order of their ids; also those that another study or a person made.
    """

    display_name: str
    spec: StudySpec
    trials: Sequence[Trial]

    @property
    def seed(self) -> int:
        """A number from the study's name."""
        return int.from_bytes(hashlib.sha256(self.display_name.encode()).digest()[:4])

    @property
    def next_id(self) -> int:
        """Number of the next trial."""
        return max((int(trial.id) for trial in self.trials), default=0) + 1


def suggest(problem: Problem, count: int, designer: Designer) -> list[Assignment]:
    """Return the next assignments; fewer than `count` when a grid is used up.

    Raises:
        ApiError: The Bayesian designer cannot be asked.
    """
    space = read_space(problem.spec)
    if problem.spec.algorithm == StudySpec.Algorithm.GRID_SEARCH:
        return _next_on_grid(space, problem.trials, count)
    if problem.spec.algorithm == StudySpec.Algorithm.RANDOM_SEARCH:
        first = problem.next_id
        return [_at_random(space, f"{problem.seed}:{number}") for number in range(first, first + count)]
    seed = (problem.seed + problem.next_id) % 2**31
    return designer.suggest(space, problem.spec, problem.trials, seed=seed, count=count)


def needs_designer(spec: StudySpec) -> bool:
    """Return whether a study is searched by Bayesian optimization, the default."""
    return spec.algorithm not in (StudySpec.Algorithm.GRID_SEARCH, StudySpec.Algorithm.RANDOM_SEARCH)


def _next_on_grid(space: Space, trials: Sequence[Trial], count: int) -> list[Assignment]:
    """Return points that no trial has had."""
    tried = [values_of(trial) for trial in trials]
    points: list[Assignment] = []
    for point in space.grid():
        if len(points) == count:
            break
        if not any(_is_same_point(point, other) for other in tried):
            points.append(point)
    return points


def _is_same_point(one: Assignment, other: Assignment) -> bool:
    return one.keys() == other.keys() and all(is_same(other[name], value) for name, value in one.items())


def _at_random(space: Space, seed: str) -> Assignment:
    generator = random.Random(seed)
    return space.walk(lambda parameter: parameter.at(generator.random()))

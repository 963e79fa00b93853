"""What a model's inputs were to an earlier one: numbers by their unit, intervals by their edges, ids by their values.

Comes in: two models of one architecture, each with its preprocessing. Goes out: the earlier first layer's inputs as a
linear map of the later one's, and for each id of a category the one that its value had.

A number x of the later model is a x + b of the earlier one, because both normalise the same value by statistics of
their own. The answer to a number through intervals is a line between their edges; the later model's is the same line,
read off at its own edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from trainer.contract.documents import Feature, NumericFeature
from trainer.features.numbers import Buckets, Number
from trainer.features.preprocessing import Codes, Preprocessing
from trainer.features.vocabulary import FIRST_ID, MISSING_ID, OTHER_ID
from trainer.models.dense import DenseHyperparameters
from trainer.models.numbers import PiecewiseLinear
from trainer.objective.outputs import Objective

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
FRESH = -1
"""In place of an id: no earlier one means this."""
_LARGEST_CHANGE = 1000.0
"""Of a number's unit; beyond it what was learnt of the one says nothing of the other."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """A model, and what its weights mean.

    Attributes:
        name: Of its architecture.
        model: Built; gives logits.
        preprocessing: Before it.
        features: By name.
        hyperparameters: Of the architecture.
        objective: After it.
    """

    name: str
    model: tf_keras.Model
    preprocessing: Preprocessing
    features: Mapping[str, Feature]
    hyperparameters: DenseHyperparameters
    objective: Objective

    @property
    def intervals(self) -> PiecewiseLinear | None:
        """The layer that reads numbers by intervals."""
        return next((layer for layer in self.model.submodules if isinstance(layer, PiecewiseLinear)), None)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where a feature's inputs of the first fully connected layer are, by its name.

    Attributes:
        numbers: Place of the number itself.
        missing: Place of the one that says that it is missing.
        intervals: Places of its intervals.
        embedded: First place of its embedding, and its width.
        numeric: How many places the numbers have, with those that say that one is missing.
        total: How many places there are.
    """

    numbers: Mapping[str, int]
    missing: Mapping[str, int]
    intervals: Mapping[str, list[int]]
    embedded: Mapping[str, tuple[int, int]]
    numeric: int
    total: int

    @classmethod
    def of(cls, side: Side) -> Places:
        """Count them, in the order of `trainer.models.dense.deep`."""
        numbers = side.preprocessing.numbers
        indicated = [number.name for number in numbers if number.indicated]
        numeric, layer = len(numbers) + len(indicated), side.intervals
        columns = layer.columns if layer else []
        intervals = {
            number.name: [numeric + place for place, column in enumerate(columns) if column == index]
            for index, number in enumerate(numbers)
        }
        embedded, place = {}, numeric + len(columns)
        for category in side.preprocessing.shape.categories:
            embedded[category.name] = (place, category.embedding_dim)
            place += category.embedding_dim
        return cls(
            numbers={number.name: index for index, number in enumerate(numbers)},
            missing={name: len(numbers) + index for index, name in enumerate(indicated)},
            intervals=intervals,
            embedded=embedded,
            numeric=numeric,
            total=place,
        )


@dataclass(frozen=True, kw_only=True)
class InputMap:
    """Inputs of the earlier first layer, from those of the later one: before = matrix x later + shift.

    Attributes:
        matrix: [earlier inputs, later inputs]
        shift: [earlier inputs]
        known: Which later inputs meant something to the earlier model. [later inputs]
        numeric: How many of each, from the first on, are numbers: earlier and later.
    """

    matrix: Floats
    shift: Floats
    known: Mask
    numeric: tuple[int, int]


def input_map(before: Side, after: Side) -> InputMap:
    """Return what the inputs of the later model's first layer were to the earlier one."""
    was, now = Places.of(before), Places.of(after)
    matrix, shift, known = np.zeros([was.total, now.total]), np.zeros(was.total), np.zeros(now.total, bool)
    old = {number.name: number for number in before.preprocessing.numbers}
    for number in after.preprocessing.numbers:
        if number.name in old and same_number(before.features[number.name], after.features[number.name]):
            unit = _Unit.of(old[number.name], number)
            if unit is not None:
                _map_number(number.name, unit, (was, now), (before, after), (matrix, shift, known))
    for name, (start, width) in now.embedded.items():
        if name in was.embedded and not isinstance(earlier_ids(name, before, after), str):
            first, wide = was.embedded[name]
            for place in range(min(width, wide)):
                matrix[first + place, start + place] = 1
                known[start + place] = True
    return InputMap(matrix=matrix, shift=shift, known=known, numeric=(was.numeric, now.numeric))


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """A number of the later model in the unit of the earlier one: factor x number + term.

    Attributes:
        missing: What a missing value was to the earlier model, and is to the later one, each in its unit.
    """

    factor: float
    term: float
    missing: tuple[float, float]

    @classmethod
    def of(cls, before: Number, after: Number) -> _Unit | None:
        """Compare two normalisations; None where the unit changed beyond what can be compared."""
        factor = before.scale / after.scale
        if not 1 / _LARGEST_CHANGE < factor < _LARGEST_CHANGE:
            return None
        missing = tuple((each.fill - each.mean) * each.scale for each in (before, after))
        return cls(factor=factor, term=(after.mean - before.mean) * before.scale, missing=(missing[0], missing[1]))

    def earlier(self, values: Floats) -> Floats:
        """Return numbers of the later model as the earlier one had them."""
        return values * self.factor + self.term


def _map_number(
    name: str,
    unit: _Unit,
    places: tuple[Places, Places],
    sides: tuple[Side, Side],
    into: tuple[Floats, Floats, Mask],
) -> None:
    """Fill in one number: itself, its intervals, and that it is missing."""
    (was, now), (matrix, shift, known) = places, into
    at, to = was.numbers[name], now.numbers[name]
    matrix[at, to], shift[at], known[to] = unit.factor, unit.term, True
    edges_before, edges = (
        _edges(side, place[name]) for side, place in zip(sides, (was.numbers, now.numbers), strict=True)
    )
    later = now.intervals[name]
    if was.intervals[name]:
        knots = unit.earlier(edges if later else np.zeros(1))
        reached = _reached(knots, edges_before)  # [knots, earlier intervals]
        shift[was.intervals[name]] = reached[0]
        if later:
            matrix[np.ix_(was.intervals[name], later)] = np.diff(reached, axis=0).T
            known[later] = True
    if name not in now.missing:
        return
    indicator = now.missing[name]
    known[indicator] = True
    if name in was.missing:
        matrix[was.missing[name], indicator] = 1
    # What the map would say of a missing value, against what the earlier model read.
    read = np.zeros(now.total)
    read[to] = unit.missing[1]
    read[later] = _reached(np.array([unit.missing[1]]), edges)[0]
    rows = [at, *was.intervals[name]]
    true = np.append(unit.missing[0], _reached(np.array([unit.missing[0]]), edges_before)[0])
    matrix[rows, indicator] = true - (matrix[rows] @ read + shift[rows])


def _edges(side: Side, column: int) -> Floats:
    layer = side.intervals
    return layer.edges(column).astype(np.float64) if layer else np.zeros(0)


def _reached(values: Floats, edges: Floats) -> Floats:
    """Return how far values have come through each interval. [n], [intervals + 1] → [n, intervals]."""
    return np.clip((values[:, np.newaxis] - edges[:-1]) / np.diff(edges), 0.0, 1.0)


def same_number(before: Feature, after: Feature) -> bool:
    """Return whether a numeric feature is transformed in the same way."""
    if not isinstance(before, NumericFeature) or not isinstance(after, NumericFeature):
        return False
    return (before.transform, before.low, before.high) == (after.transform, after.low, after.high)


def earlier_ids(name: str, before: Side, after: Side) -> Ids | str:
    """Return for each id of a category the one that means the same to the earlier model; or why none does.

    A value that the earlier model did not know has the id that it would have given it. → [ids]

    Args:
        name: Of a column of the categorical matrix.
    """
    was, now = before.preprocessing, after.preprocessing
    if name in now.crosses:
        return _ids_of_cross(name, before, after)
    old, new = was.categories.get(name), now.categories.get(name)
    if old is None or new is None:
        return "the champion did not read it as a category"
    if isinstance(old, Buckets) or isinstance(new, Buckets):
        same = isinstance(old, Buckets) and isinstance(new, Buckets) and old.boundaries == new.boundaries
        return np.arange(new.ids if isinstance(new, Buckets) else 0) if same else "its buckets are others"
    return _ids_of_values(name, (was, now), (old, new))


def _ids_of_values(name: str, sides: tuple[Preprocessing, Preprocessing], codes: tuple[Codes, Codes]) -> Ids:
    known, later = (side.vocabulary.codes[name] for side in sides)
    old, new = codes
    ids = np.full(FIRST_ID + new.known + new.hashed, FRESH)
    ids[[MISSING_ID, OTHER_ID]] = [MISSING_ID, OTHER_ID]
    texts = [text for text in later if text]
    if texts:
        unknown = old.unknown(tf.constant(texts)).numpy()
        ids[[later[text] for text in texts]] = [
            known.get(text, other) for text, other in zip(texts, unknown.tolist(), strict=True)
        ]
    if new.hashed and new.hashed == old.hashed:
        ids[FIRST_ID + new.known :] = np.arange(new.hashed) + FIRST_ID + old.known
    elif new.hashed and not old.hashed:
        ids[FIRST_ID + new.known :] = OTHER_ID
    return ids


def _ids_of_cross(name: str, before: Side, after: Side) -> Ids | str:
    cross, old = after.preprocessing.crosses[name], before.preprocessing.crosses.get(name)
    if old is None or old.buckets != cross.buckets:
        return "the champion did not cross these columns, or into another number of buckets"
    for column in cross.columns:
        pair: list[Any] = [side.preprocessing.categories.get(column) for side in (before, after)]
        if type(pair[0]) is not type(pair[1]):
            return f"{column} is another kind of category"
        if isinstance(pair[0], Buckets) and pair[0].boundaries != pair[1].boundaries:
            return f"the buckets of {column} are others"
    return np.arange(FIRST_ID + cross.buckets)

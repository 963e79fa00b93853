"""Yggdrasil Decision Forests grows the trees: the only module that imports it, and inside its functions.

Comes in: a training split as columns, and how the trees shall be. Goes out: each further iteration as arrays
(`trainer.models.trees.Forest`), and a folder from which it goes on. Guillame-Bert et al., Yggdrasil Decision Forests: A
Fast and Extensible Decision Forests Library, 2023, https://arxiv.org/abs/2212.02934
"""

from __future__ import annotations

import importlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import Label
from trainer.errors import RequestError
from trainer.models.hyperparameters import HyperparameterSet
from trainer.models.trees import BoostedTreesHyperparameters, Forest, Link, RandomForestHyperparameters, pack_sets
from trainer.objective.labels import class_count

LABEL, WEIGHT = "label", "weight"
MOST_IDS = 50_000 - 1
"""Of a category: as many as Yggdrasil takes where they are numbers already, but for the one that it keeps."""
_LOSSES = {"mse": "SQUARED_ERROR", "mae": "MEAN_AVERAGE_ERROR", "poisson": "POISSON"}
_NEVER_S = 10**9
_ROWS_PER_THREAD = 25_000
"""Of boosted trees, by `make bench-tree-threads`: two threads lose at 20,000 rows, and win at 50,000."""
_FEW_HELD_OUT, _LEAST_STEPS = 100, 5
"""Validation rows below which their least loss comes by chance, and the trees times their rate that there are then."""

Chosen = TypeVar("Chosen", bound=HyperparameterSet)
Yggdrasil: TypeAlias = Any
"""The library, or one of its models, columns, nodes and conditions: it is not imported here, and has no types."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Examples by columns.

    Attributes:
        matrix: Numbers, then the ids of categories. float32 [n, numbers + categories]
        ids: How many different ids each category may have.
        targets: As the objective has them. float64 [n]
        weights: float64 [n]; None: all count the same.
    """

    matrix: npt.NDArray[np.float32]
    ids: tuple[int, ...]
    targets: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None = None

    @property
    def rows(self) -> int:
        """How many examples."""
        return len(self.targets)

    @property
    def numbers(self) -> int:
        """How many columns are numbers."""
        return int(self.matrix.shape[1]) - len(self.ids)


def require_yggdrasil() -> None:
    """Check that the library is there.

    Raises:
        RequestError: It is not.
    """
    try:
        importlib.import_module("ydf")
    except ImportError as error:
        raise RequestError(
            "training.model",
            f"this image has no Yggdrasil Decision Forests ({error})",
            "the package ydf, as in this project's image",
            "Remove training.runtime.framework, or put ydf into the image",
        ) from error


class Grower(ABC, Generic[Chosen]):
    """Grows trees, some iterations at a time.

    Args:
        columns: The training split.
        label: What is learnt.
        hyperparameters: How the trees shall be.
        seed: Of what is drawn.
        folder_path: Where Yggdrasil keeps what it needs to go on; what it left there is gone on from.

    Attributes:
        learner: Yggdrasil's name of it.
        losses: Of numbers, those that it knows.
        model: Yggdrasil's own, of the trees that were grown last; None: nothing has grown yet.
    """

    learner: ClassVar[str]
    losses: ClassVar[tuple[str, ...]]
    model: Yggdrasil = None

    def __init__(self, columns: Columns, label: Label, hyperparameters: Chosen, seed: int, folder_path: Path) -> None:
        import ydf

        ydf.verbose(0)
        self._label, self._seed, self._ids, self._folder_path = label, seed, columns.ids, folder_path
        self._outputs = class_count(label) if label.kind == "multiclass" else 1
        self._numbers = columns.numbers
        seen = columns.matrix[:, columns.numbers :].max(axis=0, initial=0)
        self._most = [int(most) + 2 for most in seen]  # theirs are ours and 1
        weighted = columns.weights is not None
        self._data = self.named(columns)
        is_number = label.kind == "regression"
        classes = [str(name) for name in range(max(self._outputs, 2))]  # those too that no example has
        self._learner = getattr(ydf, self.learner)(
            label=LABEL,
            label_classes=None if is_number else classes,
            task=ydf.Task.REGRESSION if is_number else ydf.Task.CLASSIFICATION,
            features=self._features(ydf),
            weights=WEIGHT if weighted else None,
            num_threads=self.threads(columns.rows),
            keep_non_leaf_label_distribution=False,
            **self._options(hyperparameters),
        )

    @classmethod
    def require_label(cls, label: Label) -> None:
        """Check that it can learn a label.

        Raises:
            RequestError: It cannot.
        """
        if label.kind == "regression" and label.loss not in cls.losses:
            raise RequestError(
                "label.loss",
                f"{label.loss}, and training.model grows trees",
                f"one of: {', '.join(cls.losses)}",
                "Change label.loss, or choose another architecture",
            )

    @abstractmethod
    def iterations_kept(self, held_out_rows: int) -> float:
        """Return up to which iteration the newest is taken for the best one, whatever a validation split says."""

    def threads(self, rows: int) -> int:
        """Return among how many threads Yggdrasil shares the work on so many examples."""
        del rows
        return len(os.sched_getaffinity(0))

    @abstractmethod
    def grow(self, have: int, until: int) -> Forest:
        """Grow iterations after those that there are.

        Args:
            have: Iterations until now; what the folder holds must be of as many.
            until: Iterations then.

        Returns:
            The new ones.
        """

    @abstractmethod
    def _options(self, hyperparameters: Chosen) -> dict[str, Any]:
        """Return what Yggdrasil is told beside columns and label."""

    def _train(self, have: int, trees: int) -> Yggdrasil:
        self._learner.hyperparameters["num_trees"] = trees
        self._learner.hyperparameters["random_seed"] = (self._seed * 1_000_003 + have) % (1 << 31)
        self.model = self._learner.train(self._data)
        return self.model

    def named(self, columns: Columns) -> dict[str, npt.NDArray[Any]]:
        """Return columns as Yggdrasil takes them: its id 0 is for what no training example has, so ours begin at 1."""
        numbers = columns.numbers
        named: dict[str, npt.NDArray[Any]] = {f"n{place}": columns.matrix[:, place].copy() for place in range(numbers)}
        for place, most in enumerate(self._most):
            ids = columns.matrix[:, numbers + place].astype(np.int32) + np.int32(1)
            named[f"c{place}"] = np.where(ids < most, ids, np.int32(0))
        is_number = self._label.kind == "regression"
        named[LABEL] = columns.targets.astype(np.float32 if is_number else np.int64)
        if columns.weights is not None:
            named[WEIGHT] = columns.weights.astype(np.float32)
        return named

    def _features(self, ydf: Yggdrasil) -> list[Yggdrasil]:
        numbers = [ydf.Column(f"n{place}", ydf.Semantic.NUMERICAL) for place in range(self._numbers)]
        return numbers + [
            ydf.Column(f"c{place}", ydf.Semantic.CATEGORICAL, is_already_integerized=True)
            for place in range(len(self._ids))
        ]

    def _reader(self, model: Yggdrasil, width: int) -> _Reader:
        places, most = {}, {}
        for index, column in enumerate(model.data_spec().columns):
            kind, number = column.name[:1], column.name[1:]
            if number.isdigit():
                places[index] = int(number) + (self._numbers if kind == "c" else 0)
                most[index] = self._most[int(number)] if kind == "c" else 0
        return _Reader(
            places=places, most=most, ids=self._ids, numbers=self._numbers, trees=self._outputs // width, width=width
        )


class BoostedTreesGrower(Grower[BoostedTreesHyperparameters]):
    """Grows each tree to mend what those before it got wrong; goes on in Yggdrasil's folder."""

    learner = "GradientBoostedTreesLearner"
    losses = tuple(_LOSSES)
    _rate: float = 1.0

    def iterations_kept(self, held_out_rows: int) -> float:
        """Return so many as whole steps make `_LEAST_STEPS` where few rows would say when to stop; else none.

        scikit-learn's boosted trees look at no validation split below 10,000 rows, and grow 100 trees of rate 0.1.
        """
        return math.ceil(_LEAST_STEPS / self._rate) if held_out_rows < _FEW_HELD_OUT else 0

    def threads(self, rows: int) -> int:
        """Return one for each `_ROWS_PER_THREAD`: a tree's threads share the columns of each node, and wait for it.

        With 1,000 rows two of them take 15 times as long as one. What they draw depends on how many there are: with
        fewer than two times so many rows a seed gives the same trees on each machine.
        """
        return max(1, min(super().threads(rows), rows // _ROWS_PER_THREAD))

    def grow(self, have: int, until: int) -> Forest:
        """Grow a tree for each logit and iteration."""
        model, each = self._train(have, until), self._outputs
        trees = [model.get_tree(number) for number in range(have * each, until * each)]
        return self._reader(model, 1).read(trees, np.asarray(model.initial_predictions(), np.float32))

    def _options(self, hyperparameters: BoostedTreesHyperparameters) -> dict[str, Any]:
        self._rate = hyperparameters.learning_rate
        return {
            "loss": _loss_of(self._label),
            "validation_ratio": 0.0,
            "early_stopping": "NONE",
            "working_dir": str(self._folder_path),
            "resume_training": True,
            "resume_training_snapshot_interval_seconds": _NEVER_S,
            "shrinkage": hyperparameters.learning_rate,
            "growing_strategy": "BEST_FIRST_GLOBAL",
            "max_num_nodes": hyperparameters.max_leaves,
            "max_depth": _nodes_of(hyperparameters.max_depth),
            "min_examples": hyperparameters.min_examples,
            "subsample": hyperparameters.subsample,
            "num_candidate_attributes_ratio": hyperparameters.column_share,
            "l2_regularization": hyperparameters.leaf_l2,
            "use_hessian_gain": True,
        }


class RandomForestGrower(Grower[RandomForestHyperparameters]):
    """Grows each tree on examples and columns of its own, whatever the others are; they answer by their mean."""

    learner = "RandomForestLearner"
    losses = ("mse", "poisson")

    def iterations_kept(self, held_out_rows: int) -> float:
        """Return that it holds for all, however many rows are held out: no tree is one too many."""
        del held_out_rows
        return math.inf

    def grow(self, have: int, until: int) -> Forest:
        """Grow a tree for all logits an iteration."""
        trees = list(self._train(have, until - have).iter_trees())
        start = np.zeros(self._outputs, np.float32)
        return self._reader(self.model, self._outputs).read(trees, start, self._link)

    @property
    def _link(self) -> Link:
        if self._label.kind == "regression":
            return "log" if self._label.loss == "poisson" else "mean"
        return "logit" if self._label.kind == "binary" else "log"

    def _options(self, hyperparameters: RandomForestHyperparameters) -> dict[str, Any]:
        share = hyperparameters.column_share
        return {
            "winner_take_all": False,  # a leaf answers with its shares, not with one class
            "compute_oob_performances": False,
            "max_depth": _nodes_of(hyperparameters.max_depth),
            "min_examples": hyperparameters.min_examples,
            "bootstrap_size_ratio": hyperparameters.subsample,
            **({"num_candidate_attributes_ratio": share} if share else {}),
        }


_GROWERS: dict[type[HyperparameterSet], type[Grower[Any]]] = {
    BoostedTreesHyperparameters: BoostedTreesGrower,
    RandomForestHyperparameters: RandomForestGrower,
}


def grower_type(hyperparameters: HyperparameterSet) -> type[Grower[Any]]:
    """Return what grows trees of these hyperparameters.

    Raises:
        TypeError: They are not of trees.
    """
    if type(hyperparameters) not in _GROWERS:
        raise TypeError(f"{type(hyperparameters).__name__} is none of: {', '.join(k.__name__ for k in _GROWERS)}")
    return _GROWERS[type(hyperparameters)]


def _loss_of(label: Label) -> str:
    if label.kind == "regression":
        return _LOSSES[label.loss]
    return "BINOMIAL_LOG_LIKELIHOOD" if label.kind == "binary" else "MULTINOMIAL_LOG_LIKELIHOOD"


def _nodes_of(questions: int) -> int:
    """Return a depth as Yggdrasil counts it: nodes of the longest way; -1: no limit."""
    return questions + 1 if questions else -1


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """From Yggdrasil's trees to arrays.

    Attributes:
        places: Of a column of its data, among ours.
        most: Of a column of categories, the least id that it never saw.
        ids: Of each category.
        numbers: How many of our columns are numbers; categories follow.
        trees: Of an iteration.
        width: Answers of a leaf.
    """

    places: dict[int, int]
    most: dict[int, int]
    ids: tuple[int, ...]
    numbers: int
    trees: int
    width: int

    def read(self, trees: Sequence[Yggdrasil], start: npt.NDArray[np.float32], link: Link = "sum") -> Forest:
        """Return trees as a forest that begins with `start`. [outputs] → a forest."""
        nodes = _Nodes()
        sets: list[npt.NDArray[np.bool_]] = []
        roots = [nodes.add_tree(tree.root, self, sets) for tree in trees]
        words, starts = pack_sets(sets)
        mask = np.array(nodes.mask, np.int32)
        if len(sets):
            mask = np.where(mask < 0, mask, np.array(starts, np.int32)[np.maximum(mask, 0)]).astype(np.int32)
        return Forest(
            column=np.array(nodes.column, np.int32),
            threshold=np.array(nodes.threshold, np.float32),
            mask=mask,
            children=np.array(nodes.children, np.int32).ravel(),
            value=np.array(nodes.value, np.float32).reshape(-1, self.width),
            words=words,
            roots=np.array(roots, np.int32).reshape(-1, self.trees),
            bias=start,
            depth=nodes.depth,
            link=link,
        )

    def answers_of(self, leaf: Yggdrasil) -> Sequence[float]:
        """Return a leaf's answers: of two classes the share of the second, of more that of each."""
        if not hasattr(leaf.value, "probability"):
            return [leaf.value.value]
        shares: Sequence[float] = leaf.value.probability
        return shares[1:] if self.width == 1 else shares

    def ids_in(self, condition: Yggdrasil) -> npt.NDArray[np.bool_]:
        """Return which of our ids a set holds. → [ids]."""
        size, most = self.ids[self.places[condition.attribute] - self.numbers], self.most[condition.attribute]
        is_in = np.zeros(max(size + 1, most), np.bool_)  # theirs
        is_in[list(condition.mask)] = True
        is_in[most:] = is_in[0]
        return is_in[1 : size + 1]


class _Nodes:
    """Nodes in the order in which they are added."""

    def __init__(self) -> None:
        self.column: list[int] = []
        self.threshold: list[float] = []
        self.mask: list[int] = []
        self.value: list[Sequence[float]] = []
        self.children: list[list[int]] = []
        self.depth = 0

    def add_tree(self, root: Yggdrasil, reader: _Reader, sets: list[npt.NDArray[np.bool_]]) -> int:
        """Add a tree's nodes, and the sets that they ask for; gives the place of its root."""
        at = len(self.column)
        waiting = [(root, -1, 0, 0)]
        while waiting:
            node, parent, side, depth = waiting.pop()
            place = len(self.column)
            self.depth = max(self.depth, depth)
            self.children.append([place, place])
            if parent >= 0:
                self.children[parent][side] = place
            if node.is_leaf:
                self._append(0, 0.0, -1, reader.answers_of(node))
                continue
            condition, nothing = node.condition, [0.0] * reader.width
            if hasattr(condition, "threshold"):
                self._append(reader.places[condition.attribute], condition.threshold, -1, nothing)
            else:
                self._append(reader.places[condition.attribute], 0.0, len(sets), nothing)
                sets.append(reader.ids_in(condition))
            waiting += [(node.neg_child, place, 0, depth + 1), (node.pos_child, place, 1, depth + 1)]
        return at

    def _append(self, column: int, threshold: float, mask: int, value: Sequence[float]) -> None:
        self.column.append(column)
        self.threshold.append(threshold)
        self.mask.append(mask)
        self.value.append(value)

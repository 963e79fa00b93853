"""`boosted_trees` and `random_forest`: trees that were grown elsewhere, as plain TensorFlow operations.

Comes in: a forest as arrays (`trainer.training.yggdrasil` makes it), numbers and category ids as every architecture
reads them. Goes out: logits. A node asks one question of one column, "is the number at least the threshold" or "is the
category in the set", and an example goes on to one of two children; all trees are walked side by side, one level at a
time, so that what serves the model needs no operation beside TensorFlow's own.

Friedman, Greedy Function Approximation: A Gradient Boosting Machine, 2001, https://www.jstor.org/stable/2699986
Breiman, Random Forests, 2001, https://doi.org/10.1023/A:1010933404324
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from trainer.models.dense import model_inputs
from trainer.models.features import InputShape
from trainer.models.hyperparameters import HyperparameterSet, limited, whole

WORD_BITS = 32
"""Ids of a set of categories that lie in one number."""
Link = Literal["sum", "mean", "log", "logit"]
"""From the trees' answers to logits: their sum, or their mean, or its logarithm, or that of its odds."""
_LEAST_SHARE = 1e-7
"""Of a mean whose logarithm is taken: float32 has no smaller distance from 1."""
_CELLS = 1 << 20
"""Examples times trees that are walked at once: 4 MB for each array of them."""


@dataclass(frozen=True, kw_only=True)
class BoostedTreesHyperparameters(HyperparameterSet):
    """Of `boosted_trees`.

    Attributes:
        learning_rate: What each tree's answer is multiplied by.
        max_leaves: Of a tree; the leaf whose split helps most is split next.
        max_depth: Of a tree, in questions; 0: only the leaves are bounded.
        min_examples: In each leaf.
        subsample: Share of the examples that each iteration sees.
        column_share: Share of the columns that each split may choose from.
        leaf_l2: Added to the weight of the examples in each leaf, which draws its answer to 0.
    """

    learning_rate: float = limited(0.1, "a number above 0, at most 1", above=0, maximum=1)
    max_leaves: int = whole(31, 2, 1024)
    max_depth: int = whole(0, 0, 32)
    min_examples: int = whole(20, 1, 1_000_000)
    subsample: float = limited(1.0, "a number above 0, at most 1", above=0, maximum=1)
    column_share: float = limited(1.0, "a number above 0, at most 1", above=0, maximum=1)
    leaf_l2: float = limited(0.0, "a number from 0 to 1000", minimum=0, maximum=1000)


@dataclass(frozen=True, kw_only=True)
class RandomForestHyperparameters(HyperparameterSet):
    """Of `random_forest`; the defaults are Yggdrasil's own.

    Attributes:
        max_depth: Of a tree, in questions; 0: only the leaves are bounded.
        min_examples: In each leaf.
        subsample: Examples that each tree draws, with replacement, as a share of all.
        column_share: Share of the columns that each split may choose from; 0: of n columns the square root of n for
            classes, and a third for numbers (Breiman, 2001).
    """

    max_depth: int = whole(15, 0, 32)
    min_examples: int = whole(5, 1, 1_000_000)
    subsample: float = limited(1.0, "a number above 0, at most 1", above=0, maximum=1)
    column_share: float = limited(0.0, "a number from 0 to 1", minimum=0, maximum=1)


@dataclass(frozen=True, kw_only=True)
class Forest:
    """Trees as arrays; nodes are counted through all of them, and a leaf is its own child.

    Attributes:
        column: Of a node's question: numbers first, then categories. int32 [nodes]
        threshold: A number goes up from here on. float32 [nodes]
        mask: Where in `words` a node's set of categories begins; -1: it asks for a number. int32 [nodes]
        children: Down, up, of one node after the other. int32 [2 * nodes]
        value: A leaf's answers, to one logit or to all. float32 [nodes, width]
        words: Sets of categories: of a set the bit `id % 32` of the word `id // 32`. int32 [words]
        roots: Of each tree, of one iteration after the other. int32 [iterations, logits / width]
        bias: What is added to what `link` makes of the trees' answers. float32 [logits]
        depth: Questions on the longest way.
        link: From the trees' answers to logits.
    """

    column: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    mask: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    words: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]
    bias: npt.NDArray[np.float32]
    depth: int
    link: Link = "sum"

    @classmethod
    def empty(cls, outputs: int) -> Forest:
        """Return a forest without trees."""
        none, nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
        return cls(
            column=none,
            threshold=nothing,
            mask=none,
            children=none,
            value=np.zeros((0, 1), np.float32),
            words=none,
            roots=np.zeros((0, outputs), np.int32),
            bias=np.zeros(outputs, np.float32),
            depth=0,
        )

    @property
    def iterations(self) -> int:
        """How many trees there are for each logit."""
        return len(self.roots)

    def then(self, later: Forest) -> Forest:
        """Return these trees and, after them, those of a forest grown from here on; its bias and link count."""
        if not self.iterations:
            return later
        nodes, words = np.int32(len(self.column)), np.int32(len(self.words))
        return Forest(
            column=np.concatenate([self.column, later.column]),
            threshold=np.concatenate([self.threshold, later.threshold]),
            mask=np.concatenate([self.mask, np.where(later.mask < 0, later.mask, later.mask + words)]),
            children=np.concatenate([self.children, later.children + nodes]),
            value=np.concatenate([self.value, later.value]),
            words=np.concatenate([self.words, later.words]),
            roots=np.concatenate([self.roots, later.roots + nodes]),
            bias=later.bias,
            depth=max(self.depth, later.depth),
            link=later.link,
        )

    def first(self, iterations: int) -> Forest:
        """Return the first iterations alone."""
        if iterations >= self.iterations:
            return self
        nodes = int(self.roots[iterations].min())
        used = self.mask[:nodes].max(initial=-1)
        ends = self.mask[nodes:][self.mask[nodes:] > used]
        words = int(ends.min()) if len(ends) else len(self.words)
        return replace(
            self,
            column=self.column[:nodes],
            threshold=self.threshold[:nodes],
            mask=self.mask[:nodes],
            children=self.children[: 2 * nodes],
            value=self.value[:nodes],
            words=self.words[:words],
            roots=self.roots[:iterations],
        )


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A forest's arrays as tensors, and the way through them.

    Attributes:
        column: As `Forest` has it.
        threshold: As `Forest` has it.
        children: As `Forest` has it.
        mask: As `Forest` has it; None: no node asks for a category.
        words: As `Forest` has it; None: no node asks for a category.
        depth: Of the forest.
    """

    column: Any
    threshold: Any
    children: Any
    mask: Any = None
    words: Any = None
    depth: int

    @classmethod
    def of(cls, forest: Forest, kept: Callable[[str, npt.NDArray[Any]], Any]) -> Walk:
        """Return a forest's.

        Args:
            kept: Makes a tensor, or a variable of that name, of an array.
        """
        names = ["column", "threshold", "children"]
        if (forest.mask >= 0).any():
            names += ["mask", "words"]
        return cls(**{name: kept(name, getattr(forest, name)) for name in names}, depth=forest.depth)

    def leaves(self, columns: tf.Tensor, nodes: tf.Tensor) -> tf.Tensor:
        """Go from roots to leaves. float32 [B, columns], int32 [B, trees] → [B, trees]."""
        for _ in range(self.depth):
            values = tf.gather(columns, tf.gather(self.column, nodes), batch_dims=1)
            up = tf.cast(values >= tf.gather(self.threshold, nodes), tf.int32)
            if self.mask is not None:
                up = self._in_set(values, tf.gather(self.mask, nodes), up)
            nodes = tf.gather(self.children, 2 * nodes + up)
        return nodes

    def _in_set(self, values: tf.Tensor, masks: tf.Tensor, otherwise: tf.Tensor) -> tf.Tensor:
        """Return 1 where a node asks for a category and the example's is in its set. [B, trees] each → [B, trees]."""
        asks = masks >= 0
        ids = tf.cast(tf.where(asks, values, 0.0), tf.int32)
        words = tf.gather(self.words, tf.where(asks, masks + ids // WORD_BITS, 0))
        bits = tf.bitwise.bitwise_and(tf.bitwise.right_shift(words, ids % WORD_BITS), 1)
        return tf.where(asks, bits, otherwise)


class ForestLogits(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """A forest's logits.

    Args:
        forest: The trees.
    """

    def __init__(self, forest: Forest, name: str = "forest") -> None:
        super().__init__(name=name)
        self._iterations, self._logits = forest.iterations, len(forest.bias)
        self._walk, self._link = Walk.of(forest, self._kept), forest.link
        self._roots, self._bias = self._kept("roots", forest.roots), self._kept("bias", forest.bias)
        # The one that counts as trained: a number for each node and logit.
        self._value = self._kept("value", forest.value, trainable=True)

    def _kept(self, name: str, values: npt.NDArray[Any], *, trainable: bool = False) -> tf.Variable:
        initial = tf_keras.initializers.Constant(values)
        return self.add_weight(name, values.shape, values.dtype, initializer=initial, trainable=trainable)

    def call(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Walk all trees. numeric [B, n], categorical [B, m] → [B, logits]."""
        columns = joined(inputs)
        rows = tf.shape(columns)[0]
        total = tf.zeros([rows, self._logits])
        if not self._iterations:
            return total + self._bias
        at_once = tf.maximum(1, _CELLS // (tf.maximum(rows, 1) * self._logits))

        def add_some(first: tf.Tensor, so_far: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            roots = tf.reshape(self._roots[first : first + at_once], [1, -1])  # [1, trees]
            leaves = self._walk.leaves(columns, tf.tile(roots, [rows, 1]))  # [B, trees]
            answers = tf.reshape(tf.gather(self._value, leaves), [rows, -1, self._logits])
            return first + at_once, so_far + tf.reduce_sum(answers, axis=1)

        shapes = (tf.TensorShape([]), tf.TensorShape([None, self._logits]))
        _, total = tf.while_loop(
            lambda first, _: first < self._iterations, add_some, (tf.constant(0), total), shape_invariants=shapes
        )
        return linked(self._link, total, self._iterations) + self._bias


def linked(link: Link, total: tf.Tensor, iterations: int) -> tf.Tensor:
    """Return what a link makes of the sum of so many iterations' answers. [B, logits] → [B, logits]."""
    if link == "sum":
        return total
    mean = total / float(iterations)
    if link == "mean":
        return mean
    mean = tf.clip_by_value(mean, _LEAST_SHARE, mean.dtype.max if link == "log" else 1 - _LEAST_SHARE)
    return tf.math.log(mean) - (tf.math.log1p(-mean) if link == "logit" else 0.0)


def joined(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
    """Return all columns, numbers first; ids stay as they are below 2 ** 24. [B, n], [B, m] → float32 [B, n + m]."""
    return tf.concat([inputs["numeric"], tf.cast(inputs["categorical"], tf.float32)], axis=1)


def build(shape: InputShape, outputs: int, _hyperparameters: HyperparameterSet) -> tf_keras.Model:
    """Build the model before a tree has grown: it answers with the share of the training split."""
    return forest_model(shape, Forest.empty(outputs))


def forest_model(shape: InputShape, forest: Forest) -> tf_keras.Model:
    """Build the model of a forest. numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    inputs = model_inputs(shape)
    return tf_keras.Model(inputs, ForestLogits(forest)(inputs), name="trees")


def pack_sets(sets: Sequence[npt.NDArray[np.bool_]]) -> tuple[npt.NDArray[np.int32], list[int]]:
    """Return sets of ids as words, and where each begins. [ids] each."""
    words, starts, at = [], [], 0
    for chosen in sets:
        padded = np.zeros(-(-len(chosen) // WORD_BITS) * WORD_BITS, np.bool_)
        padded[: len(chosen)] = chosen
        packed = np.packbits(padded.reshape(-1, WORD_BITS), axis=1, bitorder="little").view("<i4")
        starts.append(at)
        words.append(packed.ravel())
        at += len(padded) // WORD_BITS
    return (np.concatenate(words).astype(np.int32) if words else np.zeros(0, np.int32)), starts

"""Rows of a split that are drawn at random while it is read, kept as models are asked.

Comes in: the split's rows, a batch at a time. Goes out: a sample of them, and how much each of its rows counts so that
the sample stands for the split. A row's place in the draw is a hash of its key and the seed: the same rows are drawn in
whatever sequence they are read. Of a binary label the rarer class has at least a quarter of the sample, where there are
as many.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from trainer.features.values import missing_of
from trainer.objective.evidence import Rows
from trainer.objective.metrics import Floats, Mask

_LEAST_SHARE = 0.25
"""Of the sample, for the rarer class."""
_HASHES = 2**62


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A sample of a split.

    Attributes:
        columns: Its k rows as models are asked. [k] or [k, longest] each
        rows: Their numbers in the split. [k]
        judged: Places among them of the rows that are judged. [m]
        factors: How many rows of the split each of those stands for, by the mean over them. [m]
        donors: Places of as many rows of the split, each as likely as any other. [m]
    """

    columns: Mapping[str, tf.Tensor]
    rows: Rows
    judged: Rows
    factors: Floats
    donors: Rows


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Rows of one batch. [b] each."""

    rows: Rows
    hashes: Rows
    strata: Rows
    columns: Mapping[str, tf.Tensor]

    def chosen(self, mask: Mask) -> _Part:
        """Return some of them."""
        places = np.flatnonzero(mask)
        columns = {name: tf.gather(values, places) for name, values in self.columns.items()}
        return _Part(rows=self.rows[places], hashes=self.hashes[places], strata=self.strata[places], columns=columns)


@dataclass(kw_only=True)
class Drawing:
    """The draw, while a split is read.

    Attributes:
        rows: At most so many are judged.
        seed: Of the draw.
        inputs: Columns that are kept.
        by_label: Whether the label is binary.
    """

    rows: int
    seed: int
    inputs: Collection[str]
    by_label: bool
    _parts: list[_Part] = field(default_factory=list)
    _seen: int = 0
    _counts: Rows = field(default_factory=lambda: np.zeros(2, np.intp))
    _bounds: Rows = field(default_factory=lambda: np.full(2, _HASHES, np.intp))

    def take(self, keys: tf.Tensor, labels: Floats, raw: Mapping[str, tf.Tensor]) -> None:
        """Look at the next rows of the split: keys as text, labels, columns. [b], [b], [b] or [b, longest] each."""
        strata = np.asarray(labels == 1, np.intp) if self.by_label else np.zeros(len(labels), np.intp)
        part = _Part(
            rows=self._seen + np.arange(len(labels)),
            hashes=tf.strings.to_hash_bucket_strong(keys, _HASHES, [self.seed, 0]).numpy(),
            strata=strata,
            columns={name: raw[name] for name in self.inputs},
        )
        self._seen += len(labels)
        self._counts = self._counts + np.bincount(strata, minlength=2)
        wanted = part.hashes < self._bounds[strata]
        if wanted.any():
            self._parts.append(part.chosen(wanted))
            self._drop()

    def _drop(self) -> None:
        """Forget what cannot be drawn any more, once that is as many rows as are drawn."""
        hashes, strata = self._joined("hashes"), self._joined("strata")
        least = np.bincount(strata, minlength=2)
        if np.maximum(least - self.rows, 0).sum() < self.rows:
            return
        for stratum in np.flatnonzero(least > self.rows):
            self._bounds[stratum] = np.partition(hashes[strata == stratum], self.rows)[self.rows]
        kept = [part.chosen(part.hashes < self._bounds[part.strata]) for part in self._parts]
        self._parts = [part for part in kept if len(part.rows)]

    def _joined(self, name: str) -> Rows:
        return np.concatenate([getattr(part, name) for part in self._parts])

    def drawn(self) -> Drawn | None:
        """Return the sample; None: the split has no row, or there is nothing to ask for."""
        if not self._parts or not self.inputs:
            return None
        hashes, strata = self._joined("hashes"), self._joined("strata")
        sequence = np.argsort(hashes, kind="stable")
        sizes = self._sizes()
        judged = np.concatenate([sequence[strata[sequence] == stratum][:size] for stratum, size in enumerate(sizes)])
        donors = sequence[: len(judged)]
        factors = np.divide(self._counts, sizes, out=np.zeros(2), where=sizes > 0)[strata[judged]]
        kept = sequence[np.isin(sequence, np.concatenate([judged, donors]))]
        place = np.zeros(len(hashes), np.intp)
        place[kept] = np.arange(len(kept))
        return Drawn(
            columns={name: tf.gather(self._column(name), kept) for name in self.inputs},
            rows=self._joined("rows")[kept],
            judged=place[judged],
            factors=factors / factors.mean(),
            donors=place[donors],
        )

    def _sizes(self) -> Rows:
        """Return how many rows of each stratum are judged. [2]."""
        total, rare = int(self._counts.sum()), int(self._counts.argmin())
        rows = min(self.rows, total)
        share = max(self._counts[rare] / total, _LEAST_SHARE if self.by_label else 0.0)
        sizes = np.zeros(2, np.intp)
        sizes[rare] = min(self._counts[rare], round(rows * share))
        sizes[1 - rare] = min(self._counts[1 - rare], rows - sizes[rare])
        return sizes

    def _column(self, name: str) -> tf.Tensor:
        return join([part.columns[name] for part in self._parts])


def join(parts: Sequence[tf.Tensor]) -> tf.Tensor:
    """Join batches; lists become as long as the longest. [b] or [b, longest] each → the same."""
    if parts[0].shape.rank == 1:
        return tf.concat(parts, axis=0)
    lists = tf.concat([tf.RaggedTensor.from_tensor(part) for part in parts], axis=0)
    return lists.to_tensor(default_value=missing_of(parts[0].dtype))

"""What a training and an evaluation know of their examples: a source opens splits, a split gives batches of tensors.

Which reader stands behind it (TFRecords, CSV, the run table itself) is decided by the manifest; all of them give the
same columns with the same types and the same values for what is missing. Nothing here imports TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

ColumnSpec: TypeAlias = Any
"""How a column is parsed: one of TensorFlow's feature classes, or an `images.ImageFeature`."""

ParseSpec: TypeAlias = Mapping[str, ColumnSpec]
"""The columns wanted, as `tf.io.parse_example` takes them."""

Dataset: TypeAlias = Any
"""A `tf.data.Dataset`: TensorFlow publishes no types, and is not imported here."""

Tensor: TypeAlias = Any
"""A `tf.Tensor`."""

Tensors: TypeAlias = Any
"""A nest of tensors that share their first axis."""

ShuffleSeed: TypeAlias = Any
"""A whole number, or a scalar tensor of int64, that decides the order of files; None: as they stand."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """Which part of a split one input pipeline reads, where several replicas share it.

    Attributes:
        index: This pipeline, from 0.
        count: All of them.
    """

    index: int = 0
    count: int = 1


WHOLE = Share()


class Split(Protocol):
    """One split's examples.

    Attributes:
        rows: Examples that `batches` gives.
        stable: Whether they come in the same order each time; if not, `pipeline.blocks` sorts them.
    """

    rows: int
    stable: bool

    def batches(self, spec: ParseSpec, shuffle_seed: ShuffleSeed = None) -> Dataset:
        """Read the split once.

        Args:
            shuffle_seed: Decides the order of files.

        Returns:
            A data set of dictionaries by column. [≤ 1024] each, or [≤ 8192] from records of several rows
        """

    def reading(self, spec: ParseSpec) -> AbstractContextManager[None]:
        """Turn what TensorFlow says about a bad file inside the block into an error that names it.

        Raises:
            DataError: File, record, column, what was found, what was expected.
        """

    def require_rows(self, rows: int) -> None:
        """Check how many examples were read.

        Raises:
            DataError: Not as many as the manifest says; names the files.
        """


class Source(Protocol):
    """The splits of one manifest."""

    def open_split(self, name: str, *, may_be_empty: bool = False) -> Split:
        """Wait until a split can be read.

        Raises:
            DataError: It has no examples, or a file is missing or is not the one in the manifest.
            StorageError: Storage did not answer.
        """

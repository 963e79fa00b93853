"""A training's examples: both splits parsed, encoded, counted and kept in memory.

Comes in: a source of examples, the features and their preprocessing. Goes out: `Examples`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.documents import Manifest, TrainRequest
from trainer.errors import DataError
from trainer.input.pipeline import Blocks, blocks
from trainer.input.source import ParseSpec, Source, Split
from trainer.models.features import FeatureColumns, Preprocessing, parse_feature


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Both splits as model inputs: blocks of (encoded features, labels).

    Attributes:
        train: Blocks.
        validation: Blocks.
        train_rows: Examples.
        validation_rows: Examples.
        raw_validation: The validation split as a prediction request would hold it, in batches.
    """

    train: Blocks
    validation: tf.data.Dataset
    train_rows: int
    validation_rows: int
    raw_validation: tf.data.Dataset


def read_examples(
    request: TrainRequest,
    manifest: Manifest,
    source: Source,
    columns: FeatureColumns,
    preprocessing: Preprocessing,
) -> Examples:
    """Parse and encode both splits, and check that the examples are as many as the manifest says.

    Args:
        request: Whose label and seed.
        manifest: Of the run.
        source: Opens the splits train and validation.
        columns: Of the features.
        preprocessing: Encodes them.

    Raises:
        DataError: No examples, not as many as the manifest says, a corrupt one, or a label that is neither 0 nor 1.
    """
    label = label_type(request.label.name, manifest)
    parse_spec = {**columns.parse_spec(), request.label.name: parse_feature(label)}

    def encode(parsed: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        return preprocessing(columns.raw(parsed)), tf.cast(parsed[request.label.name], tf.float32)

    splits = {"train": source.open_split("train"), "validation": source.open_split("validation", may_be_empty=True)}
    seeds = {"train": request.seed, "validation": None}
    encoded = {name: blocks(split, parse_spec, encode, seeds[name]) for name, split in splits.items()}
    for name, split in splits.items():
        _count(encoded[name], split, parse_spec, request.label.name, name)
    return Examples(
        train=encoded["train"],
        validation=encoded["validation"].plain,
        train_rows=splits["train"].rows,
        validation_rows=splits["validation"].rows,
        raw_validation=splits["validation"].batches(parse_spec).map(columns.raw),
    )


def label_type(name: str, manifest: Manifest) -> str:
    """Give the label column's type.

    Raises:
        DataError: There is no such column, or it is not a whole number or boolean.
    """
    type_ = next((column.type for column in manifest.schema if column.name == name), None)
    if type_ not in ("INTEGER", "BOOLEAN", "FLOAT"):
        raise DataError(
            f"label {name!r}",
            f"column of type {type_}" if type_ else "no such column",
            "INTEGER, BOOLEAN or FLOAT, 0 or 1",
        )
    return type_


def _count(encoded: Blocks, split: Split, spec: ParseSpec, label: str, name: str) -> None:
    """Read a split once (which fills its cache), check the labels and the number of examples.

    Raises:
        DataError: A record is corrupt, a label is neither 0 nor 1, or examples are missing.
    """
    rows = 0
    with split.reading(spec):
        for _, labels in encoded.plain:
            values = labels.numpy()
            rows += len(values)
            wrong = ~np.isin(values, (0, 1))
            if wrong.any():
                raise DataError(
                    f"split {name}, label {label!r}",
                    f"{int(wrong.sum())} examples are missing it or have another value",
                    "0 or 1",
                    "Filter them in the query",
                )
    split.require_rows(rows)

"""A split's examples as columns, and columns as the matrix that trees read."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainer_kit.errors import RequestError
from trainer_kit.shards import Scalar, ShardError, read_rows
from trainer_kit.storage import Storage

Array = np.ndarray[Any, Any]
MOST_CATEGORIES = 200
"""Of a feature; the rarer ones count as missing. scikit-learn takes up to 255."""


def read_split(
    manifest: Mapping[str, Any], name: str, columns: Sequence[str], storage: Storage
) -> dict[str, list[Scalar]]:
    """Return the columns of a split, in the manifest's order.

    Raises:
        RequestError: The manifest has no such files or columns, or a file is not what it says.
    """
    known = {column["name"] for column in manifest["schema"] if column["mode"] != "REPEATED"}
    if unknown := [column for column in columns if column not in known]:
        raise RequestError(
            f"column {unknown[0]!r}", "these examples have no such single value", ", ".join(sorted(known))
        )
    if manifest["format"] != "tfrecord" or name not in manifest["splits"] or not manifest["splits"][name]["files"]:
        where = f"manifest of run {manifest['run_key']}, split {name}"
        raise RequestError(where, "no TFRecord files", "some", "Set training.input to tfrecord")
    table: dict[str, list[Scalar]] = {column: [] for column in columns}
    with tempfile.TemporaryDirectory() as folder:
        for file in manifest["splits"][name]["files"]:
            path = Path(folder, "shard")
            path.write_bytes(_fetch(file, storage))
            try:
                for row in read_rows(path, manifest["compression"], columns, manifest["layout"]):
                    for column, value in row.items():
                        table[column].append(value)
            except ShardError as error:
                raise RequestError(file["uri"], str(error), "examples", "Clear the run's export task") from error
    return table


def _fetch(file: Mapping[str, Any], storage: Storage) -> bytes:
    content = storage.read(file["uri"])
    digest = hashlib.sha256(content).hexdigest() if content is not None else "of nothing"
    if content is None or digest != file["sha256"]:
        found = "there is no such file" if content is None else f"SHA-256 {digest}"
        raise RequestError(file["uri"], found, f"SHA-256 {file['sha256']}", "Clear the run's export task")
    return content


def text_of(value: Scalar | bool) -> str:
    """Return a category, or a key, as text; missing: nothing."""
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else str(int(value) if isinstance(value, bool | float) else value)


def number_of(value: Scalar) -> float:
    """Return a number; missing: NaN."""
    return float("nan") if value is None else float(value)


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """Turns features into a matrix of numbers: a category is its place in the list of the training split's.

    Attributes:
        features: `name` and `kind` of each.
        categories: Of the categorical ones, most frequent first.
    """

    features: Sequence[Mapping[str, Any]]
    categories: Mapping[str, Sequence[str]]

    @classmethod
    def fit(cls, features: Sequence[Mapping[str, Any]], columns: Mapping[str, Sequence[Scalar]]) -> Encoder:
        """Return the encoder of a training split.

        Raises:
            RequestError: A feature of a kind that is not read.
        """
        for feature in features:
            if feature["kind"] not in ("numeric", "categorical"):
                found, expected = f"kind {feature['kind']}", "numeric or categorical, which this image reads"
                raise RequestError(f"feature {feature['name']!r}", found, expected, "Use this project's own trainer")
        categories = {}
        for feature in features:
            if feature["kind"] == "categorical":
                counts = Counter(map(text_of, columns[feature["name"]]))
                ranked = sorted((value for value in counts if value), key=lambda value: (-counts[value], value))
                categories[feature["name"]] = ranked[:MOST_CATEGORIES]
        features = [{"name": feature["name"], "kind": feature["kind"]} for feature in features]
        return cls(features=features, categories=categories)

    @property
    def names(self) -> list[str]:
        """Columns that are read, in the matrix's order."""
        return [feature["name"] for feature in self.features]

    @property
    def is_category(self) -> list[bool]:
        """Which columns of the matrix are categories."""
        return [feature["kind"] == "categorical" for feature in self.features]

    def encode(self, columns: Mapping[str, Sequence[Scalar]]) -> Array:
        """Return the matrix [rows, features] of float32; NaN: missing, or a category that training did not see."""
        encoded = []
        for feature in self.features:
            values = columns[feature["name"]]
            if feature["kind"] == "categorical":
                codes = {value: float(code) for code, value in enumerate(self.categories[feature["name"]])}
                encoded.append([codes.get(text_of(value), float("nan")) for value in values])
            else:
                encoded.append([number_of(value) for value in values])
        return np.array(encoded, np.float32).T

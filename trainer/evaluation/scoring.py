"""Scores of stored models on a split: read once, and every model sees the same rows as a request would bring them.

Comes in: a split, the manifest that describes its columns, and stored models. Goes out: labels, scores, and the values
of the columns by which quality is cut into slices; and both models as yes or no, at a threshold that is given or that
the challenger's answers to validation choose. The test split never chooses it: quality there would be that of the
luckiest threshold. The champion is measured at the same one, for whoever acts on answers has one threshold, whichever
model gives them.
"""

from __future__ import annotations

import contextlib
import logging
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.contract.column_types import NUMBERS, ROLE_TYPES, TEXTS
from trainer.contract.documents import AtThreshold, EvaluateRequest, Label, Manifest, ThresholdScores
from trainer.errors import NEW_ATTEMPT, DataError, RequestError
from trainer.evaluation.days import Days
from trainer.evaluation.drawing import Drawing, Drawn, join
from trainer.evaluation.slices import number_groups
from trainer.features.images import as_files
from trainer.features.values import as_list, as_number, as_text, as_time, parse_feature, parse_list_feature
from trainer.input.images import ImageFeature
from trainer.input.source import ColumnSpec, Split
from trainer.objective.bootstrap import Resampling
from trainer.objective.evidence import Rows
from trainer.objective.labels import label_type, labels_of, require_labels
from trainer.objective.metrics import Floats
from trainer.objective.thresholds import Choice, choose_threshold, measure_at
from trainer.saved_model.model import StoredModel, digest_folder, key_spec
from trainer.storage import Storage

CHALLENGER, CHAMPION, BEST = "challenger", "champion", "best"
REQUESTS = 200
"""Rows of a split that are kept as a request brings them."""

_PIXELS_AT_ONCE = 4 << 20  # a model's own memory is a few hundred times that
_ROWS_AT_ONCE = 1024


class Model(Protocol):
    """What is asked: a stored model, or a reference line."""

    @property
    def inputs(self) -> Mapping[str, str]:
        """Features that it reads, by name, with their dtypes."""

    @property
    def output(self) -> str:
        """Under which name the label's answers are."""

    def answer(self, raw: Mapping[str, Any]) -> Mapping[str, Floats]:
        """Return every answer for raw features, by name."""

    def answers_label(self, label: Label, /) -> bool:
        """Return whether it answers an auxiliary label."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """All examples of a split.

    Attributes:
        keys: As bytes. [n]
        labels: [n]
        scores: By model. [n] or [n, classes] each
        slices: Text values by column. [n] each
        numbers: Values of further columns, NaN for missing. [n] each
        auxiliary: Answers to auxiliary labels, by model and label. [n], or [n, classes or quantiles], each
        requests: The first rows as the models were asked. At most [REQUESTS] or [REQUESTS, longest] each
        weights: How much each example counts; None: all the same. [n]
        days: Of the examples; None: they are not asked for.
        references: What reference lines answer, by line. As `scores`
        drawn: A sample of the rows; None: none is asked for.
    """

    keys: npt.NDArray[np.object_]
    labels: Floats
    scores: Mapping[str, Floats]
    slices: Mapping[str, npt.NDArray[np.object_]]
    numbers: Mapping[str, Floats]
    auxiliary: Mapping[str, Mapping[str, Floats]]
    requests: Mapping[str, np.ndarray[Any, Any]]
    weights: Floats | None = None
    days: Days | None = None
    references: Mapping[str, Floats] = field(default_factory=dict)
    drawn: Drawn | None = None

    def groups_by(self, column: str | None) -> Rows | None:
        """Return the number of each example's group by a column; None: there is no column. [n]."""
        return number_groups(self.slices[column]) if column else None


@dataclass(frozen=True, kw_only=True)
class Further:
    """What is read of a split beside keys, labels and answers.

    Attributes:
        slices: Columns whose values are given as text.
        numbers: Columns whose values are given as numbers.
        auxiliary: Labels whose values are given as numbers too, with the answers of models that answer them.
        drawing: Draws rows; None: none are drawn.
    """

    slices: Sequence[str] = ()
    numbers: Sequence[str] = ()
    auxiliary: Sequence[Label] = ()
    drawing: Drawing | None = None


NOTHING_FURTHER = Further()


def load_model(uri: str, storage: Storage, digest: str | None = None) -> StoredModel:
    """Fetch and load a stored model.

    Args:
        uri: Its folder.
        digest: That it must have; None: any.

    Raises:
        DataError: There is none, it is another one, or it cannot be loaded.
    """
    with fetched_model(uri, storage, digest) as path:
        return StoredModel(path, uri, digest_folder(path))


@contextlib.contextmanager
def fetched_model(uri: str, storage: Storage, digest: str | None = None) -> Iterator[Path]:
    """Have a stored model's folder on this machine; arguments and errors are those of `load_model`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        if not storage.download_folder(uri, path):
            raise DataError(uri, "there is no model", "a SavedModel folder", "Clear the train task of its run")
        if digest and (stored_digest := digest_folder(path)) != digest:
            raise DataError(
                uri,
                f"a model with SHA-256 {stored_digest}: it was written again since the report",
                f"the report's, {digest}",
                f"{NEW_ATTEMPT}: it trains in a folder of its own. Bring a champion's files back "
                "as they were, or go back by the DAG rollback",
            )
        yield path


class Columns:
    """The columns of a manifest's examples, as models and slices read them.

    Raises:
        DataError: There is no such label.
    """

    def __init__(self, manifest: Manifest, label: Label, auxiliary: Sequence[Label] = ()) -> None:
        self._types = {column.name: column.type for column in manifest.columns}
        self._lists = frozenset(column.name for column in manifest.columns if column.mode == "REPEATED")
        self._images = {image.name: ImageFeature.of(image) for image in manifest.images}
        self._label = label
        for each in (label, *auxiliary):
            label_type(each, manifest)

    def mismatch(self, model: StoredModel) -> tuple[str, str] | None:
        """Say what a model reads or answers that does not fit these examples, and what would; None when all fits."""
        for name, dtype in model.inputs.items():
            type_ = self._types.get(name)
            if type_ is None:
                return f"reads {name!r}, which these examples do not have", f"columns {', '.join(sorted(self._types))}"
            if not self._readable(name, type_, dtype):
                return f"reads {name!r} as {dtype}, which is {type_} in these examples", "a type that it can read"
            if (name in model.lists) != (name in self._lists):
                forms = ("a list", "one value") if name in model.lists else ("one value", "a list")
                return f"reads {name!r} as {forms[0]}, which is {forms[1]} in these examples", forms[0]
        expected = labels_of(self._label).answers
        if model.answers != expected:
            return f"answers with {model.answers.description}", f"{expected.description}, as the label has"
        return None

    def require_slices(self, columns: Sequence[str]) -> None:
        """Check that slices can be cut by these columns.

        Raises:
            RequestError: One is missing or has no text values.
        """
        for column in columns:
            type_ = self._types.get(column)
            if type_ not in ROLE_TYPES["slice"] or column in self._lists:
                mode = "REPEATED " if column in self._lists else ""
                actual = f"column of type {mode}{type_}" if type_ else "there is no such column"
                raise RequestError(f"slice {column!r}", actual, f"a column of type {', '.join(ROLE_TYPES['slice'])}")

    def require_numbers(self, columns: Mapping[str, str], role: str = "numeric") -> None:
        """Check that columns can be read as numbers.

        Args:
            columns: By what messages call them.
            role: That they play.

        Raises:
            RequestError: A column is missing or holds none.
        """
        for name, column in columns.items():
            type_ = self._types.get(column)
            if type_ not in ROLE_TYPES[role] or column in self._lists:
                mode = "REPEATED " if column in self._lists else ""
                actual = f"column {column!r} of type {mode}{type_}" if type_ else f"there is no column {column!r}"
                raise RequestError(name, actual, f"a column of type {', '.join(ROLE_TYPES[role])}")

    def parse_spec(self, names: set[str]) -> dict[str, Any]:
        """Return columns as a split takes them."""
        return {name: self._images.get(name) or self._column_spec(name) for name in sorted(names)}

    def _column_spec(self, name: str) -> ColumnSpec:
        return (parse_list_feature if name in self._lists else parse_feature)(self._types[name])

    def raw(self, name: str, values: tf.Tensor, dtype: str) -> tf.Tensor:
        """Return a column as a request brings it. [B], lists or pixels → [B] or [B, longest]."""
        if name in self._images:
            return as_files(values)
        if name in self._lists:
            return as_list(values, self._types[name], numeric=dtype != "string")
        if dtype == "int64":
            return as_time(values, self._types[name])
        return self.text(name, values) if dtype == "string" else as_number(values)

    def text(self, name: str, values: tf.Tensor) -> tf.Tensor:
        """Return a column's values as text. [B] → [B]."""
        return as_text(values, self._types[name])

    def number(self, values: tf.Tensor) -> Floats:
        """Return a column's values as numbers, NaN for missing. [B] → [B]."""
        numbers: Floats = as_number(values).numpy().astype(np.float64)
        return numbers

    def is_plain(self, name: str) -> bool:
        """Return whether a column has one number or text per example."""
        return name in self._types and name not in self._lists and name not in self._images

    def shown(self, name: str, values: tf.Tensor, row: int) -> str:
        """Say what one example has: of an image its size, of a list its length, "" for a missing value."""
        if name in self._images:
            return " x ".join(str(size) for size in values.shape[1:])
        if name in self._lists:
            return f"{len(values[row])} values"
        if values.dtype.is_floating:
            number = float(values[row])
            return "" if math.isnan(number) else f"{number:g}"
        return bytes(self.text(name, values[row : row + 1]).numpy()[0]).decode(errors="replace")

    def key_spec(self, key: str) -> tf.TensorSpec:
        """Return the key as a model takes it."""
        return key_spec(key, self._types.get(key))

    def rows_at_once(self, names: set[str]) -> int | None:
        """Return how many rows a model can take; None: as they are read."""
        pixels = sum(int(np.prod(image.shape)) for name, image in self._images.items() if name in names)
        return min(_ROWS_AT_ONCE, max(1, _PIXELS_AT_ONCE // pixels)) if pixels else None

    def _readable(self, name: str, type_: str, dtype: str) -> bool:
        if name in self._images:
            return dtype == "string"
        return type_ in {"string": TEXTS, "float32": NUMBERS, "int64": ROLE_TYPES["time"]}.get(dtype, ())


def parts(batches: tf.data.Dataset, rows: int | None) -> Iterator[Mapping[str, Any]]:
    """Yield batches of at most so many rows. `rebatch` would have to hold lists of different lengths."""
    for batch in batches:
        there = next(iter(batch.values())).shape[0]
        for start in range(0, there, rows or there):
            yield batch if rows is None else {name: column[start : start + rows] for name, column in batch.items()}


def score(
    split: Split,
    columns: Columns,
    label: Label,
    key: str,
    models: Mapping[str, Model],
    further: Further = NOTHING_FURTHER,
) -> Scored:
    """Read a split once; every model scores each batch.

    Args:
        key: Column that names an example.
        models: By the name under which the scores are given. They fit the columns.
        further: What is read beside.

    Raises:
        DataError: A corrupt example, a label that is wrong, scores that are not finite.
    """
    inputs = {name: dtype for model in models.values() for name, dtype in model.inputs.items()}
    numbers = (*further.numbers, *(each.name for each in further.auxiliary))
    spec = columns.parse_spec({*inputs, label.name, key, *further.slices, *numbers})
    taken: dict[tuple[str, str], list[Any]] = defaultdict(list)
    first: list[Mapping[str, tf.Tensor]] = []
    with split.reading(spec):
        for parsed in parts(split.batches(spec), columns.rows_at_once(set(inputs))):
            raw = {name: columns.raw(name, parsed[name], dtype) for name, dtype in inputs.items()}
            keys, labels = columns.text(key, parsed[key]), parsed[label.name].numpy().astype(np.float64)
            taken["key", key].append(keys.numpy())
            taken["label", label.name].append(labels)
            _ask(models, raw, taken, first)
            if further.drawing:
                further.drawing.take(keys, labels, raw)
            for name in further.slices:
                taken["slice", name].append(columns.text(name, parsed[name]).numpy())
            for name in numbers:
                taken["number", name].append(columns.number(parsed[name]))
    whole = {place: np.concatenate(batches) for place, batches in taken.items()}
    scored = Scored(
        keys=whole["key", key],
        labels=whole["label", label.name],
        scores={name: whole[name, model.output] for name, model in models.items()},
        slices={name: whole["slice", name] for name in further.slices},
        numbers={name: whole["number", name] for name in numbers},
        auxiliary=_auxiliary(further.auxiliary, models, whole),
        requests={name: join([raw[name] for raw in first])[:REQUESTS].numpy() for name in inputs},
        drawn=further.drawing.drawn() if further.drawing else None,
    )
    split.require_rows(len(scored.labels))
    _require_right(scored, label)
    return scored


def _ask(
    models: Mapping[str, Model],
    raw: Mapping[str, tf.Tensor],
    taken: dict[tuple[str, str], list[Any]],
    first: list[Mapping[str, tf.Tensor]],
) -> None:
    """Take all models' answers to a batch, and keep the batch where it is among the first REQUESTS rows."""
    if raw and sum(len(next(iter(batch.values()))) for batch in first) < REQUESTS:
        first.append(raw)
    for name, model in models.items():
        for output, answers in model.answer(raw).items():
            taken[name, output].append(answers)


def _auxiliary(
    labels: Sequence[Label], models: Mapping[str, Model], whole: Mapping[tuple[str, str], Floats]
) -> dict[str, dict[str, Floats]]:
    return {
        name: {label.name: whole[name, label.name] for label in labels if model.answers_label(label)}
        for name, model in models.items()
    }


def _require_right(scored: Scored, label: Label) -> None:
    require_labels(label, scored.labels)
    for name, scores in scored.scores.items():
        if not np.isfinite(scores).all():
            wrong = int((~np.isfinite(scores)).sum())
            raise DataError(f"{name} model", f"{wrong} scores are not finite", "finite answers")


LOGGER = logging.getLogger(__name__)


def measure_threshold(
    request: EvaluateRequest,
    scored: Scored,
    chosen_on: tuple[Floats, Floats, Floats | None] | None,
    resampling: Resampling,
) -> ThresholdScores | None:
    """Measure the models of a comparison; None: the request has no rule.

    Args:
        scored: The test split.
        chosen_on: Labels of the validation split, the challenger's answers, and weights or None; None: the request
            gives a number. [n] each
        resampling: Of the test split.
    """
    rule = request.threshold
    if rule is None:
        return None
    given = Choice(threshold=rule.at, message="as the model's file says")
    choice = given if chosen_on is None else choose_threshold(rule, *chosen_on)
    LOGGER.info("evaluate: threshold %s: %s", choice.threshold, choice.message)
    measured: dict[str, AtThreshold | None] = {"challenger": None, "champion": None}
    if choice.threshold is not None:
        for name in measured.keys() & scored.scores.keys():
            measured[name] = measure_at(choice.threshold, scored.labels, scored.scores[name], resampling)
    return ThresholdScores(
        threshold=choice.threshold, message=choice.message, confidence=resampling.confidence, **measured
    )

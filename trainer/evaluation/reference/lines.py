"""The reference lines: trained on the run's own training shards in a minute, and scored beside the challenger.

Comes in: an evaluate request and the training split. Goes out: lines that are asked as stored models are, and what the
evaluation says of each: its metrics on the test rows, and the interval of the challenger's difference to it. Where
there can be no line, or a shard cannot be read, the evaluation says so and goes on.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from trainer.contract.documents import (
    EvaluateRequest,
    Label,
    Manifest,
    ReferenceLine,
    ReferenceRequest,
    RegressionLabel,
)
from trainer.errors import DataError
from trainer.evaluation.reference.columns import Coder, Columns, Design, Values, is_text
from trainer.evaluation.reference.fits import fit_linear, fit_trees, most_linear_rows, most_tree_rows
from trainer.evaluation.reference.losses import Loss, loss_of
from trainer.evaluation.scoring import CHALLENGER, Scored, parts
from trainer.evaluation.scoring import Columns as SplitColumns
from trainer.evaluation.splits import TRAIN
from trainer.input.source import Source, Split
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics, find_evidence
from trainer.objective.labels import class_count, labels_of
from trainer.objective.metrics import Floats
from trainer.objective.quality import measure_by

LOGGER = logging.getLogger(__name__)
Name = Literal["linear", "trees"]
NAMES: tuple[Name, ...] = ("linear", "trees")
LEAST_ROWS = 100
MOST_FEATURES, MOST_CLASSES = 200, 50
OUTPUT = "score"


class _NoLineError(Exception):
    """Why there is no line; every one becomes a sentence of the evaluation."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line, asked as a stored model is.

    Attributes:
        inputs: Features that it reads, by name, with their dtypes.
        reply: From raw columns to answers. [n] each → [n], [n, classes] or [n, quantiles]
    """

    inputs: Mapping[str, str]
    reply: Callable[[Columns], Floats]
    output: str = OUTPUT

    def answer(self, raw: Mapping[str, Any]) -> dict[str, Floats]:
        """Return answers for raw features; those that it does not read are ignored."""
        return {OUTPUT: self.reply({name: _plain(raw[name].numpy()) for name in self.inputs})}

    def answers_label(self, _label: Label) -> bool:
        """Return that it answers no auxiliary label."""
        return False


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A line, or why there is none.

    Attributes:
        rows: That it was fitted on.
        features: That it reads.
    """

    name: Name
    line: Line | None = None
    rows: int = 0
    features: int = 0
    not_judged: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows that lines are fitted on.

    Attributes:
        columns: [n] each
        labels: [n]
        weights: Their mean is 1. [n]
    """

    columns: Columns
    labels: Floats
    weights: Floats

    def first(self, rows: int) -> _Rows:
        """Return at most so many of them."""
        columns = {name: values[:rows] for name, values in self.columns.items()}
        return _Rows(columns=columns, labels=self.labels[:rows], weights=self.weights[:rows])


def train_lines(
    request: EvaluateRequest,
    manifest: Manifest,
    source: Source,
    columns: SplitColumns,
    clock: Callable[[], float] = time.monotonic,
) -> list[Trained]:
    """Train the lines; none where the request asks for none.

    Args:
        source: Opens the training split, where it lies in files.
        columns: Of the examples.
        clock: Seconds.

    Raises:
        StorageError: Storage did not answer.
    """
    asked = request.reference
    if asked is None:
        return []
    start = clock()

    def check() -> None:
        if clock() - start > asked.seconds:
            raise _NoLineError(f"it was not trained in {asked.seconds} seconds")

    try:
        inputs = _inputs(request, manifest, columns)
        rows = _read(request, asked, source.open_split(TRAIN), columns, inputs, check)
    except (_NoLineError, DataError) as error:
        return [Trained(name=name, not_judged=str(error)) for name in NAMES]
    return [_train(name, request.label, rows, inputs, asked.seed, check) for name in NAMES]


def _inputs(request: EvaluateRequest, manifest: Manifest, columns: SplitColumns) -> dict[str, str]:
    """Return the features that lines read, the first ones of the spec, with their dtypes."""
    dtypes = {"numeric": "float32", "categorical": "string"}
    known = {item.name: dtypes[item.kind] for item in request.features if item.kind in dtypes}
    inputs = {name: dtype for name, dtype in known.items() if columns.is_plain(name)}
    if not inputs:
        raise _NoLineError("no feature is a number or a category")
    if request.label.kind == "multiclass" and class_count(request.label) > MOST_CLASSES:
        raise _NoLineError(f"there are {class_count(request.label)} classes, at most {MOST_CLASSES} are tried")
    train = manifest.splits.get(TRAIN)
    if train is None or not train.files:
        raise _NoLineError("the training split lies in no files (training.input: bigquery)")
    return dict(list(inputs.items())[:MOST_FEATURES])


def _read(
    request: EvaluateRequest,
    asked: ReferenceRequest,
    split: Split,
    columns: SplitColumns,
    inputs: Mapping[str, str],
    check: Callable[[], None],
) -> _Rows:
    """Read the first rows of the split, those with a label and a weight that are right."""
    label, weight = request.label.name, request.weight
    spec = columns.parse_spec({*inputs, label, *([weight] if weight else [])})
    taken: dict[str, list[Values]] = defaultdict(list)
    there = 0
    with split.reading(spec):
        for parsed in parts(split.batches(spec), None):
            check()
            labels = parsed[label].numpy().astype(np.float64)
            weights = columns.number(parsed[weight]) if weight else np.ones(len(labels))
            right = ~labels_of(request.label).wrong(labels) & np.isfinite(weights) & (weights >= 0)
            taken["labels"].append(labels[right])
            taken["weights"].append(weights[right])
            for name, dtype in inputs.items():
                taken[f"column {name}"].append(_plain(columns.raw(name, parsed[name], dtype).numpy()[right]))
            there += int(right.sum())
            if there >= asked.rows:
                break
    whole: dict[str, Any] = {name: np.concatenate(batches)[: asked.rows] for name, batches in taken.items()}
    return _usable(
        request.label,
        _Rows(
            columns={name: whole[f"column {name}"] for name in inputs},
            labels=whole["labels"],
            weights=whole["weights"],
        ),
    )


def _usable(label: Label, rows: _Rows) -> _Rows:
    """Return the rows, their weights by the mean weight."""
    if len(rows.labels) < LEAST_ROWS:
        raise _NoLineError(f"it has {len(rows.labels)} training rows, {LEAST_ROWS} are needed")
    if not rows.weights.any():
        raise _NoLineError("every training row has the weight 0")
    if len(np.unique(rows.labels[rows.weights > 0])) < 2:
        what = "number" if label.kind == "regression" else "class"
        raise _NoLineError(f"its {len(rows.labels)} training rows have one {what} alone")
    return replace(rows, weights=rows.weights / rows.weights.mean())


def _train(
    name: Name, label: Label, rows: _Rows, inputs: Mapping[str, str], seed: int, check: Callable[[], None]
) -> Trained:
    start = time.monotonic()
    try:
        fit = _linear if name == "linear" else _trees
        used, scores, loss = fit(label, rows, seed, check)
    except _NoLineError as error:
        LOGGER.warning("evaluate: no reference line %s: %s", name, error)
        return Trained(name=name, not_judged=str(error))
    except np.linalg.LinAlgError as error:
        return Trained(name=name, not_judged=f"it could not be fitted: {error}")
    line = Line(inputs=inputs, reply=_reply(label, loss, scores, used))
    LOGGER.info("evaluate: reference line %s of %s rows in %.1f s", name, len(used.labels), time.monotonic() - start)
    return Trained(name=name, line=line, rows=len(used.labels), features=len(inputs))


Fit = tuple[_Rows, Callable[[Columns], Floats], Loss]
"""The rows, from raw columns to scores, and the loss."""


def _linear(label: Label, rows: _Rows, _seed: int, check: Callable[[], None]) -> Fit:
    design = Design(rows.columns)
    width = design.matrix({name: values[:1] for name, values in rows.columns.items()}).shape[1]
    outputs = loss_of(label, rows.labels, rows.weights).outputs
    used = rows.first(most_linear_rows(width, outputs))
    loss = loss_of(label, used.labels, used.weights)
    coefficients = fit_linear(design.matrix(used.columns), used.labels, used.weights, loss, check)
    return used, lambda columns: loss.start() + design.matrix(columns) @ coefficients, loss


def _trees(label: Label, rows: _Rows, seed: int, check: Callable[[], None]) -> Fit:
    used = rows.first(most_tree_rows(len(rows.columns), loss_of(label, rows.labels, rows.weights).outputs))
    loss = loss_of(label, used.labels, used.weights)
    ranked = used.labels
    if label.kind == "multiclass":
        ranked = (ranked == np.bincount(ranked.astype(np.intp), used.weights).argmax()).astype(np.float64)
    coder = Coder(used.columns, ranked, used.weights)
    boosted = fit_trees(coder.codes(used.columns), used.labels, used.weights, loss, seed, check)
    return used, lambda columns: boosted.scores(coder.codes(columns)), loss


def _reply(label: Label, loss: Loss, scores: Callable[[Columns], Floats], rows: _Rows) -> Callable[[Columns], Floats]:
    """Return what makes answers of raw columns; quantiles lie as far from it as the fitted rows' residuals."""
    if not isinstance(label, RegressionLabel) or not label.quantiles:
        return lambda columns: loss.answers(scores(columns))
    residuals = rows.labels - loss.answers(scores(rows.columns))
    distances = np.quantile(residuals, label.quantiles)
    return lambda columns: loss.answers(scores(columns))[:, None] + distances


def _plain(values: np.ndarray[Any, Any]) -> Values:
    """Return texts as they are, numbers as float64 with NaN for what is not finite."""
    if is_text(values):
        return values
    numbers = values.astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def compare_lines(
    request: EvaluateRequest, scored: Scored, trained: Sequence[Trained], resampling: Resampling
) -> tuple[ReferenceLine, ...]:
    """Return what the evaluation says of each line.

    The intervals share the level that a difference is judged by: with two of them each errs half as often (Bonferroni).

    Args:
        scored: The test split, with the lines' answers.
        resampling: As champion and challenger are compared.
    """
    together = max(1, sum(item.line is not None for item in trained))
    shared = replace(resampling, confidence=1 - (1 - resampling.confidence) / together)
    return tuple(_compare(request, scored, item, shared) for item in trained)


def _compare(request: EvaluateRequest, scored: Scored, item: Trained, resampling: Resampling) -> ReferenceLine:
    if item.line is None:
        return ReferenceLine(name=item.name, rows=0, features=0, not_judged=item.not_judged)
    answers, label = scored.references[item.name], request.label
    groups = scored.groups_by(request.group)
    pair = Pair.of(label, scored.labels, scored.scores[CHALLENGER], answers, groups)
    metrics = measure_by(label, scored.labels, answers, scored.weights, groups)
    found = bootstrap_metrics(pair, [request.metric], resampling).get(request.metric)
    LOGGER.info("evaluate: reference line %s: %s %s", item.name, request.metric, getattr(metrics, request.metric))
    return ReferenceLine(
        name=item.name,
        rows=item.rows,
        features=item.features,
        metrics=metrics,
        difference=found,
        evidence=find_evidence(pair, request.metric, resampling),
    )

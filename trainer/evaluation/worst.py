"""The examples that a model errs on most, for people to look at: by their keys, and where it is asked for by values.

Comes in: the scores of a split. Goes out: at most 20 examples, of equal losses those with the first keys.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trainer.contract.documents import EvaluateRequest, Label, RegressionLabel, WorstExample
from trainer.evaluation.scoring import Columns, Scored, parts
from trainer.input.source import Split
from trainer.objective.metrics import Floats, log_losses
from trainer.objective.number_metrics import absolute_errors, point

MOST_EXAMPLES = 20
MOST_CHARACTERS = 100


def worst_examples(
    request: EvaluateRequest, scored: Scored, model: str, other: str, split: Split, columns: Columns
) -> tuple[WorstExample, ...]:
    """Return what `find_worst` finds; where the request asks for values, with those of the features."""
    found = find_worst(request.label, scored, model, other)
    if not request.show_rows:
        return found
    return read_values(found, split, columns, request.key, [feature.name for feature in request.features])


def find_worst(label: Label, scored: Scored, model: str, other: str) -> tuple[WorstExample, ...]:
    """Return the examples with the largest losses of a model, the worst first, with what another answers to them.

    Args:
        model: By its part in the comparison.
        other: Likewise; it may be missing.
    """
    losses = {name: _losses(label, scored.labels, scores) for name, scores in scored.scores.items()}
    answers = {name: _answers(label, scores) for name, scores in scored.scores.items()}
    ours, keys = losses[model], scored.keys
    least = np.partition(ours, -MOST_EXAMPLES)[-MOST_EXAMPLES] if len(ours) > MOST_EXAMPLES else -np.inf
    candidates = np.flatnonzero(ours >= least).tolist()
    return tuple(
        WorstExample(
            key=_text(keys[row]),
            label=float(scored.labels[row]),
            loss=float(ours[row]),
            answer=float(answers[model][row]),
            champion_loss=float(losses[other][row]) if other in losses else None,
            champion_answer=float(answers[other][row]) if other in answers else None,
        )
        for row in heapq.nsmallest(MOST_EXAMPLES, candidates, key=lambda row: (-ours[row], keys[row]))
    )


def read_values(
    examples: Sequence[WorstExample], split: Split, columns: Columns, key: str, names: Sequence[str]
) -> tuple[WorstExample, ...]:
    """Return the examples with the values of some columns; the split is read once more.

    Args:
        key: Column that names an example.
        names: Of the columns.
    """
    wanted, values = {example.key for example in examples}, dict[str, dict[str, str]]()
    spec = columns.parse_spec({key, *names})
    with split.reading(spec):
        for parsed in parts(split.batches(spec), columns.rows_at_once(set(names))):
            for row, name in enumerate(map(_text, columns.text(key, parsed[key]).numpy())):
                if name in wanted:
                    values[name] = {column: _cut(columns.shown(column, parsed[column], row)) for column in names}
    return tuple(replace(example, values=values[example.key]) for example in examples)


def _losses(label: Label, labels: Floats, scores: Floats) -> Floats:
    if isinstance(label, RegressionLabel):
        return absolute_errors(labels, point(scores, label.quantiles))
    return log_losses(labels, scores)


def _answers(label: Label, scores: Floats) -> Floats:
    if isinstance(label, RegressionLabel):
        return point(scores, label.quantiles)
    return scores.argmax(axis=1) if scores.ndim == 2 else scores


def _text(key: bytes) -> str:
    return key.decode(errors="replace")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"

"""The trainer's documents, made with the few fields that a test is about."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

import numpy as np

from trainer.contract import documents
from trainer.contract.documents import Feature, FeatureStatistics, Label, SplitStatistics, Statistics

RUN_KEY = "20240110t030000z-0a1b2c3d4e5f"
OWN: dict[str, Any] = {
    cls.kind: cls
    for cls in (
        documents.ExportRequest,
        documents.TrainRequest,
        documents.EvaluateRequest,
        documents.Manifest,
        documents.Span,
        documents.Report,
        documents.Evaluation,
        documents.Statistics,
        documents.ScoreRequest,
        documents.ModelScores,
        documents.MultivariateRequest,
        documents.Multivariate,
    )
}
"""The trainer's documents, by kind."""
WINDOW = documents.Window(start="2024-01-01", end="2024-01-07", test_start="2024-01-06")


def make_feature(name: str, kind: str, **given: Any) -> Feature:
    """Return a feature of that kind."""
    return _member(Feature, kind)(name=name, **given)


def make_label(name: str, kind: str, **given: Any) -> Label:
    """Return a label of that kind."""
    return _member(Label, kind)(name=name, **given)


def make_feature_statistics(kind: str, nulls: int = 0, **given: Any) -> FeatureStatistics:
    """Return statistics of that kind: no values, where none are given, and no lengths or counts."""
    member = _member(FeatureStatistics, kind)
    hints = typing.get_type_hints(member)
    rest = {
        name: () if typing.get_origin(hint) is tuple else (0 if hint is int else None) for name, hint in hints.items()
    }
    return member(**{**rest, "kind": kind, "nulls": nulls, **given})


def make_statistics(rows: int = 10, **features: FeatureStatistics) -> Statistics:
    """Return statistics of a run whose training split has these features."""
    split = SplitStatistics(rows=rows, features=features, label=documents.LabelStatistics(mean=0.5, nulls=0))
    return Statistics(
        model="parcels",
        run_key=RUN_KEY,
        table="project.dataset.run",
        window=WINDOW,
        keys=documents.KeyStatistics(distinct=rows, nulls=0),
        splits={"train": split},
    )


def make_number_statistics(values: np.ndarray | None, *, log1p: bool = False) -> Statistics:
    """Return statistics of a run whose training labels are these numbers; None: they say nothing of a number."""
    made = make_statistics()
    if values is None:
        return made
    trained = np.log1p(values) if log1p else values
    numbers = documents.LabelNumbers(
        min=float(values.min()),
        max=float(values.max()),
        mean=float(values.mean()),
        stddev=float(values.std()),
        quantiles=tuple(np.quantile(values, np.linspace(0, 1, 21)).tolist()),
        trained_mean=float(trained.mean()),
        trained_stddev=float(trained.std()),
    )
    label = documents.LabelStatistics(mean=None, nulls=0, numbers=numbers)
    split = dataclasses.replace(made.splits["train"], label=label)
    return dataclasses.replace(made, splits={"train": split})


def _member(union: Any, kind: str) -> Any:
    """Return the class of a union whose `kind` is that one."""
    fields = {field.default: member for member in typing.get_args(union) for field in dataclasses.fields(member)}
    return fields[kind]

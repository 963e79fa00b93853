"""Labels that are texts: `label.classes` lists them, and the run table has their numbers.

In: a spec, and a query whose labels are texts. Out: a query whose labels are the texts' places in the list, so that
statistics, export, training and evaluation have numbers as with any label; what the monitor asks for labels goes the
same way. A text that is not listed becomes -1, which is no class: `check_data` refuses it, and names the texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.checks import LabelStatistics, Statistics, UnlistedText
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError
from retraining.core.spec.features import class_names
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import TemplateValues

SHOWN_TEXTS = 5
"""Of a label, that a message names."""
_SHOWN_CHARACTERS = 100
_EXPECTED = "STRING: label.classes lists its texts"
_WAY_OUT = "Select the texts; or, where the column has numbers from 0 on, give their count as classes"


def named_labels(spec: ModelSpec) -> dict[str, tuple[str, ...]]:
    """Return the texts of the labels that are texts, by the labels' names."""
    labels = (spec.label, *spec.auxiliary_labels)
    return {label.name: names for label in labels if (names := class_names(label))}


def with_class_numbers(sql: str, spec: ModelSpec, *, checked: bool = True) -> str:
    """Return a query with numbers for the texts of its labels; unchanged where no label is a text.

    Args:
        sql: As it can stand in parentheses; `class_parameters` are what the result names beside its own.
        checked: Whether a text that is not listed becomes -1, for the checks to find; else it is NULL.
    """
    labels = _rendered_labels(spec)
    return render("class_names.sql.j2", query=sql, labels=labels, checked=checked) if labels else sql


def _rendered_labels(spec: ModelSpec) -> list[TemplateValues]:
    """Return each label with the parameters that are its texts, in the order of their numbers."""
    named = enumerate(named_labels(spec).items())
    return [
        {"name": name, "parameters": [f"class_{at}_{number}" for number in range(len(texts))]}
        for at, (name, texts) in named
    ]


def class_parameters(spec: ModelSpec) -> tuple[Parameter, ...]:
    """Return the texts that such a query names."""
    return tuple(
        Parameter(name=f"class_{at}_{number}", type="STRING", value=text)
        for at, texts in enumerate(named_labels(spec).values())
        for number, text in enumerate(texts)
    )


def require_texts(spec: ModelSpec, schema: Iterable[Mapping[str, Any]], where: str) -> None:
    """Refuse labels that are no texts, though the spec lists texts, before anything is joined with them.

    Args:
        spec: Of the model.
        schema: Of the query.
        where: Names the query.

    Raises:
        DataError: One is none.
    """
    types = {column["name"]: (column["type"], column.get("mode", "NULLABLE")) for column in schema}
    for name in named_labels(spec):
        type_, mode = types.get(name, ("STRING", "NULLABLE"))  # a missing column is refused for all roles
        if type_ != "STRING" or mode == "REPEATED":
            found = f"{type_} {mode}" if mode == "REPEATED" else str(type_)
            raise DataError(f"{where}, column {name}", found, _EXPECTED, _WAY_OUT)


def numbered_columns(spec: ModelSpec, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns as the run table has them: a label of texts has whole numbers there."""
    named = named_labels(spec)
    return tuple(
        column.model_copy(update={"type": "INTEGER"}) if column.name in named and column.type == "STRING" else column
        for column in columns
    )


def render_unlisted_sql(sql: str, spec: ModelSpec, parameters: Sequence[Parameter], *, in_window: bool = True) -> Query:
    """Return the query of the texts that no label lists: `label, text, row_count`, the most frequent first.

    Args:
        sql: Whose labels are texts, as it can stand in parentheses.
        spec: Of the model.
        parameters: That it names.
        in_window: Whether rows outside the window do not count.
    """
    labels = _rendered_labels(spec)
    event_time = spec.data.event_time if in_window else None
    sql = render(
        "unlisted_classes.sql.j2",
        query=sql,
        labels=labels,
        event_time=event_time,
        shown_characters=_SHOWN_CHARACTERS,
        shown_texts=SHOWN_TEXTS * len(labels),
    )
    return Query(sql=sql, parameters=(*parameters, *class_parameters(spec)))


def unlisted_texts(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[UnlistedText, ...]]:
    """Return the rows of `render_unlisted_sql` by label."""
    found: dict[str, list[UnlistedText]] = defaultdict(list)
    for row in rows:
        found[str(row["label"])].append(UnlistedText(text=str(row["text"]), rows=int(row["row_count"])))
    return {name: tuple(texts[:SHOWN_TEXTS]) for name, texts in found.items()}


def shown_texts(texts: Sequence[UnlistedText]) -> str:
    """Return texts for a sentence."""
    return ", ".join(f"{item.text!r} ({item.rows})" for item in texts)


def has_unlisted(spec: ModelSpec, statistics: Statistics) -> bool:
    """Return whether a label of texts has one that is not listed."""
    named = named_labels(spec)
    return any(counted.outside for name, counted in _labels(spec, statistics) if name in named)


def with_unlisted(spec: ModelSpec, statistics: Statistics, texts: Mapping[str, tuple[UnlistedText, ...]]) -> Statistics:
    """Return the statistics with the texts beside the labels that are none."""

    def told(name: str, counted: LabelStatistics) -> LabelStatistics:
        if counted.outside is None or name not in texts:
            return counted
        return counted.model_copy(update={"outside": counted.outside.model_copy(update={"texts": texts[name]})})

    splits = {
        split: found.model_copy(
            update={
                "label": told(spec.label.name, found.label),
                "auxiliary_labels": {name: told(name, each) for name, each in found.auxiliary_labels.items()},
            }
        )
        for split, found in statistics.splits.items()
    }
    return statistics.model_copy(update={"splits": splits})


def _labels(spec: ModelSpec, statistics: Statistics) -> Iterator[tuple[str, LabelStatistics]]:
    for found in statistics.splits.values():
        yield spec.label.name, found.label
        yield from found.auxiliary_labels.items()

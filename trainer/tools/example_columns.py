"""The columns of a table that `tf.train.Example`s fill: said by their user, or found by a look at some of them.

Comes in: `id:STRING, seen:INT64, pixels:FLOAT64[784], tags:STRING[]`, or examples. Goes out: values by column, or the
message about an example that has others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import tensorflow as tf

from trainer.errors import DataError, RequestError

TYPES = {"STRING": "bytes_list", "BYTES": "bytes_list", "INT64": "int64_list", "FLOAT64": "float_list"}
"""What may be said of a column, and the lists of an example that it is made of."""

_ARROW = {"STRING": pa.string(), "BYTES": pa.binary(), "INT64": pa.int64(), "FLOAT64": pa.float32()}
_BY_KIND = {"int64_list": "INT64", "float_list": "FLOAT64"}
_SAID = re.compile(rf"([^:,\s]+):({'|'.join(TYPES)})(?:\[(\d*)\])?")
_LEAST_LIST = 2
WAY_OUT = (
    "Say in SCHEMA what every example has, as name:TYPE of one value, name:TYPE[] of any number of values; features "
    "that it does not name are left out"
)


@dataclass(frozen=True, kw_only=True)
class ExampleColumn:
    """A column, and the feature that it is made of.

    Attributes:
        feature: As the examples call it.
        type: One of `TYPES`.
        values: How many each example has; 1: one or none, a column of plain values; None: any number.
    """

    feature: str
    type: str
    values: int | None

    @property
    def name(self) -> str:
        """As BigQuery can call it: with `_` for what no column's name may have."""
        name = re.sub(r"[^A-Za-z0-9_]", "_", self.feature)
        return f"_{name}" if name[:1].isdigit() else name

    @property
    def said(self) -> str:
        """As `SCHEMA` says it."""
        size = "" if self.values == 1 else f"[{self.values or ''}]"
        return f"{self.feature}:{self.type}{size}"

    @property
    def type_in_spec(self) -> str:
        """As `data.files.columns` says it."""
        return self.type if self.values == 1 else f"ARRAY<{self.type}>"

    @property
    def field(self) -> pa.Field:
        """In a Parquet file."""
        type_ = _ARROW[self.type]
        return pa.field(self.name, type_ if self.values == 1 else pa.list_(type_))

    def value_of(self, example: tf.train.Example, where: str) -> object:
        """Return an example's value, or its values; None: it has none.

        Raises:
            DataError: It has others than the column can hold; names the place and the column.
        """
        kind, values = _values(example, self.feature)
        if values and kind != TYPES[self.type]:
            raise self._mismatch(where, f"{kind} of {_counted(values)}")
        if len(values) != self.values and self.values is not None and (values or self.values > 1):
            raise self._mismatch(where, _counted(values))
        if self.type == "STRING":
            try:
                values = [value.decode() for value in values]
            except UnicodeDecodeError as error:
                raise self._mismatch(where, f"bytes that are no UTF-8 text ({error.reason})") from error
        return values if self.values != 1 else values[0] if values else None

    def _mismatch(self, where: str, found: str) -> DataError:
        return DataError(f"{where}, feature {self.feature!r}", found, self.said, WAY_OUT)


def parse_columns(text: str) -> tuple[ExampleColumn, ...]:
    """Return the columns that are said.

    Raises:
        RequestError: One is said wrong.
    """
    columns = []
    for part in filter(None, re.split(r"[,\s]+", text)):
        match = _SAID.fullmatch(part)
        values = 1 if match is None or match[3] is None else int(match[3]) if match[3] else None
        if match is None or (match[3] and int(match[3]) < _LEAST_LIST):
            expected = f"name:TYPE, name:TYPE[] or name:TYPE[3], TYPE one of {', '.join(TYPES)}"
            raise RequestError("SCHEMA", repr(part), expected, "Correct it")
        columns.append(ExampleColumn(feature=match[1], type=match[2], values=values))
    return _distinct(columns)


@dataclass
class _Seen:
    """What some examples have of a feature."""

    kinds: set[str] = field(default_factory=set)
    sizes: set[int] = field(default_factory=set)
    examples: int = 0
    is_text: bool = True


def find_columns(examples: Iterable[tf.train.Example]) -> tuple[ExampleColumn, ...]:
    """Return the columns that fit some examples, by name; bytes are STRING where all of them are UTF-8 text.

    Raises:
        DataError: There is no example, or a feature has values of two kinds.
    """
    features: defaultdict[str, _Seen] = defaultdict(_Seen)
    count = 0
    for example in examples:
        count += 1
        for name in example.features.feature:
            _look(features[name], *_values(example, name))
    if not features:
        raise DataError("FROM", f"{count} examples, of no feature", "examples with features", "Name other files")
    return _distinct([_found(name, features[name], count) for name in sorted(features) if features[name].kinds])


def _look(seen: _Seen, kind: str, values: Sequence[Any]) -> None:
    seen.examples += 1
    seen.sizes.add(len(values))
    if values:
        seen.kinds.add(kind)
        seen.is_text = seen.is_text and all(map(_is_text, values))


def _found(name: str, seen: _Seen, count: int) -> ExampleColumn:
    if len(seen.kinds) > 1:
        raise DataError(f"feature {name!r}", " and ".join(sorted(seen.kinds)), "values of one kind", "Write them anew")
    (kind,) = seen.kinds
    sizes = seen.sizes | ({0} if seen.examples < count else set())
    values = 1 if sizes <= {0, 1} else next(iter(sizes)) if len(sizes) == 1 else None
    type_ = _BY_KIND.get(kind, "STRING" if seen.is_text else "BYTES")
    return ExampleColumn(feature=name, type=type_, values=values)


def require_known(example: tf.train.Example, columns: Mapping[str, ExampleColumn], where: str) -> None:
    """Refuse an example with a feature that the look did not find.

    Raises:
        DataError: It has one.
    """
    new = sorted(name for name in example.features.feature if name not in columns and _values(example, name)[1])
    if new:
        expected = f"the features {', '.join(sorted(columns))}"
        raise DataError(where, f"a feature {new[0]!r}, which the first examples do not have", expected, WAY_OUT)


def _distinct(columns: Sequence[ExampleColumn]) -> tuple[ExampleColumn, ...]:
    by_name: dict[str, str] = {}
    for column in columns:
        if other := by_name.get(column.name.lower()):
            found = f"{other!r} and {column.feature!r}, both column {column.name!r}"
            raise DataError("features", found, "names that BigQuery tells apart", "Name one of them in SCHEMA")
        by_name[column.name.lower()] = column.feature
    return tuple(columns)


def _values(example: tf.train.Example, name: str) -> tuple[str, list[Any]]:
    feature = example.features.feature.get(name)
    kind = feature.WhichOneof("kind") if feature is not None else None
    return (kind, list(getattr(feature, kind).value)) if kind else ("", [])


def _is_text(value: object) -> bool:
    try:
        return not isinstance(value, bytes) or bool(value.decode() or True)
    except UnicodeDecodeError:
        return False


def _counted(values: Sequence[object]) -> str:
    return f"{len(values)} value{'s' if len(values) != 1 else ''}"

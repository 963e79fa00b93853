"""CSV files: how they are read, and the message about one that cannot be.

A file has a header line with the manifest's columns in the schema's order, then one example per line (RFC 4180 quotes,
no line break inside a field, UTF-8), as `trainer.export.encoding.csv` writes it: NULL is an empty field, a boolean 0 or
1, dates and times are whole numbers. Whole batches of lines are decoded at once; floats as doubles, which are then
rounded to float32 as the TFRecord export rounds them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import tensorflow as tf

from trainer.contract.documents import Column
from trainer.errors import DataError, RequestError
from trainer.input.content import Content, CutOffError, opened
from trainer.input.files import WAY_OUT, Shard
from trainer.input.images import ImageFeature
from trainer.input.pipeline import READ_BUFFER_BYTES, READ_ROWS
from trainer.input.source import ColumnSpec, Dataset, ParseSpec, Share, Tensor, Tensors

_SHOWN_CHARACTERS = 60
_LINE_BYTES = 1 << 16


class CsvLines:
    """Files of comma-separated values.

    Args:
        schema: Of the exported table: its names are the header.
    """

    def __init__(self, schema: Sequence[Column]) -> None:
        self._schema = tuple(schema)

    def batches_of(self, path: Tensor, compression: str, within: Share | None) -> Dataset:
        """Return a file's lines after the header, which must be the right one."""
        header = tf.data.TextLineDataset(path, compression).take(1).filter(self._other_header)
        lines = tf.data.TextLineDataset(path, compression, READ_BUFFER_BYTES).skip(1)
        if within is not None:
            lines = lines.shard(within.count, within.index)
        return header.concatenate(lines).batch(READ_ROWS)

    def parser(self, spec: ParseSpec) -> Callable[[Tensor], Tensors]:
        """Return what decodes a batch of lines.

        Raises:
            RequestError: A column that a line cannot hold, or that the files do not have.
        """
        return _LineParser(spec, self._schema)

    def rows_within(self, rows: int, within: Share | None) -> int:
        """Count the lines of a share."""
        return rows if within is None else len(range(within.index, rows, within.count))

    def find_fault(self, shard: Shard, compression: str, spec: ParseSpec) -> DataError | None:
        """Check the header and each line's fields until one is wrong."""
        try:
            for number, line in enumerate(_lines(shard, compression)):
                fault = self._header_fault(shard, line) if number == 0 else self._fault(shard, number, line, spec)
                if fault is not None:
                    return fault
        except DataError as fault:
            return fault
        return None

    def count_rows(self, shard: Shard, compression: str) -> int:
        """Count the lines after the header."""
        return max(0, sum(1 for _ in _lines(shard, compression)) - 1)

    def _other_header(self, line: Tensor) -> Tensor:
        """Fail on a header that is not the schema's; give False, so that a right one is left out."""
        header = tf.stack(tf.io.decode_csv(line, [""] * len(self._schema)))
        expected = tf.constant([column.name for column in self._schema])
        right = tf.debugging.Assert(tf.reduce_all(header == expected), ["another header than the schema's", line])
        with tf.control_dependencies([right] if right is not None else []):
            return tf.constant(False)

    def _header_fault(self, shard: Shard, line: str) -> DataError | None:
        header, expected = next(csv.reader([line]), []), [column.name for column in self._schema]
        if header == expected:
            return None
        where = f"{shard.uri}, header"
        for index, (one, other) in enumerate(zip(header, expected, strict=False)):
            if one != other:
                return DataError(where, f"column {index + 1} is {one!r}", f"{other!r}, as in the schema", WAY_OUT)
        return DataError(where, f"{len(header)} columns", f"{len(expected)}: {', '.join(expected)}", WAY_OUT)

    def _fault(self, shard: Shard, number: int, line: str, spec: ParseSpec) -> DataError | None:
        where = f"{shard.uri}, line {number + 1}"
        if line.count('"') % 2:
            return DataError(
                where,
                "a quoted field does not end on its line",
                "no line break inside a field",
                "Remove it in the query, or set training.input to tfrecord",
            )
        fields = next(csv.reader([line]), [])
        if len(fields) != len(self._schema):
            return DataError(where, f"{len(fields)} fields", f"{len(self._schema)}, as in the header", WAY_OUT)
        for column, field in zip(self._schema, fields, strict=True):
            expected = _expected(column, spec.get(column.name), field)
            if expected:
                shown = repr(field[:_SHOWN_CHARACTERS])
                return DataError(f"{where}, column {column.name!r}", shown, expected, WAY_OUT)
        return None


class _LineParser:
    """Decodes the wanted columns of whole batches of lines."""

    def __init__(self, spec: ParseSpec, schema: Sequence[Column]) -> None:
        self._spec = dict(spec)
        places = {column.name: index for index, column in enumerate(schema)}
        for name, feature in spec.items():
            column = schema[places[name]] if name in places else None
            _require_form(name, feature, column, places)
        self._names = sorted(spec, key=places.__getitem__)
        self._places = [places[name] for name in self._names]
        self._defaults = [_default(spec[name]) for name in self._names]

    def __call__(self, lines: Tensor) -> Tensors:
        """Decode. [B] → [B] each."""
        decoded = tf.io.decode_csv(lines, self._defaults, select_cols=self._places)
        columns = dict(zip(self._names, decoded, strict=True))
        return {name: _typed(columns[name], feature) for name, feature in self._spec.items()}


def _require_form(name: str, feature: ColumnSpec, column: Column | None, names: Iterable[str]) -> None:
    if column is None:
        raise RequestError(
            f"column {name!r}", "is not in the files", f"one of {', '.join(names)}", "Add it to the query"
        )
    if column.mode == "REPEATED" or column.type == "BYTES" or isinstance(feature, ImageFeature):
        form = "REPEATED" if column.mode == "REPEATED" else column.type
        raise RequestError(
            f"column {name!r}", f"is {form}", "a scalar other than BYTES in CSV", "Set training.input to tfrecord"
        )


def _default(feature: tf.io.FixedLenFeature) -> Tensor:
    """Return what an empty field becomes; no value where it is an error."""
    dtype = _STORED.get(feature.dtype, feature.dtype)
    return tf.constant([] if feature.default_value is None else [feature.default_value], dtype)


def _typed(values: Tensor, feature: tf.io.FixedLenFeature) -> Tensor:
    if feature.dtype == tf.string and feature.default_value:
        return tf.where(values == "", feature.default_value, values)  # a quoted empty text is no empty field
    return values if values.dtype == feature.dtype else tf.cast(values, feature.dtype)


def _expected(column: Column, feature: ColumnSpec, field: str) -> str:
    """Return what a field should have been; nothing where it is right or not read."""
    dtype = getattr(feature, "dtype", tf.string)
    if dtype == tf.string:
        return ""
    if not field:
        return "" if feature.default_value is not None else "a value"
    try:
        _NUMBERS[dtype](field)
    except ValueError:
        return f"{column.type}, as in the schema"
    return ""


_STORED = {tf.float32: tf.float64}
_NUMBERS: Mapping[tf.DType, Callable[[str], object]] = {tf.int64: int, tf.float32: float}


def _lines(shard: Shard, compression: str) -> Iterator[str]:
    """Yield a file's lines without their ends.

    Raises:
        DataError: The file is missing or cut off; names the line.
    """
    number = 1
    try:
        with opened(shard, compression) as content:
            for line in _split_lines(content):
                yield line.decode(errors="replace")
                number += 1
    except CutOffError as error:
        raise DataError(
            f"{shard.uri}, line {number}", f"the file ends inside it: {error}", f"{shard.rows} examples", WAY_OUT
        ) from error


def _split_lines(content: Content) -> Iterator[bytes]:
    rest = b""
    while chunk := content.read(_LINE_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in whole)
    if rest:
        yield rest

r"""Patches values written as JSON, which DuckDB writes in ways of its own.

| GoogleSQL | without it |
|---|---|
| TO_JSON_STRING and TO_JSON of a TIMESTAMP, a DATETIME: `"2017-03-06T12:34:56Z"`, without the `Z` | with a blank |
| of BYTES: Base64 | as text |
| of NaN, infinities: texts | no JSON |
| TO_JSON_STRING of 1.0, 1e300, 1/3: `1`, `1e+300`, seventeen digits | `1.0`, `1e300`, sixteen |
| TO_JSON_STRING of an INT64 beyond 2^53, of a NUMERIC that is no whole number below it: a text | a number |
| of NULL: `null` | NULL |
| JSON_TYPE | `ubigint`, `varchar` |
| JSON_OBJECT, JSON_ARRAY, JSON_SET, JSON_ARRAY_INSERT of them: as TO_JSON writes them | as DuckDB does |
| TO_JSON with `stringify_wide_numbers`, which is refused by name | an error of DuckDB's |
| intervals, which are refused by name | `5 days` |

All of it in structs and arrays too. What a value is, DuckDB's `typeof` says; texts are read and written anew, row by
row, where that or a look at the column says that something is to be done.

Source: the table of JSON encodings in the reference of JSON functions,
cloud.google.com/bigquery/docs/reference/standard-sql/json_functions#json_encodings.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.refusals import refuse
from localcloud.untyped import Untyped

_WRITTEN = "localcloud_encoded(CAST(to_json(x) AS VARCHAR), typeof(x), {wide})"
MACROS: Mapping[str, str] = {
    "localcloud_json(x)": f"CASE WHEN x IS NULL THEN 'null' ELSE {_WRITTEN.format(wide='TRUE')} END",
    "localcloud_to_json(x)": (
        f"CAST(CASE WHEN x IS NULL THEN 'null' ELSE {_WRITTEN.format(wide='FALSE')} END AS JSON)"
    ),
    "localcloud_json_kind(kind)": (
        "CASE WHEN kind IN ('bigint', 'ubigint', 'hugeint', 'double') THEN 'number'"
        " WHEN kind = 'varchar' THEN 'string' ELSE kind END"
    ),
}
_MADE_OF_VALUES = (exp.JSONObject, exp.JSONArray, exp.JSONSet, exp.JSONArrayInsert)
_LARGEST = 2**53
_OTHERWISE = re.compile(r"TIMESTAMP|TIME\b|DECIMAL|BLOB|INTERVAL")
"""Types whose values are never as DuckDB writes them."""
_ODD_NUMBER = r"(?:^|[:\[,])-?(?:[0-9.]{16,}|[0-9.]+e)|NaN|Infinity"
_NO_POINT_IN_STRINGS = r'^(?:[^"]|"(?:[^"\\.]|\\.)*")*$'
_ESCAPED_BYTE = re.compile(rb"\\x([0-9A-F]{2})")
_NO_NAME = r'"_field_\d+":'
"""The key of a field that has no name (`selected_structs`); in a text its quotes are escaped."""
_FRACTION = re.compile(r"\.([0-9]+)")


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = list(tree.find_all(exp.JSONFormat, exp.JSONType, *_MADE_OF_VALUES))
    patched = [_patch(node) for node in reversed(nodes)]
    return any(patched)


def _patch(node: exp.Expression) -> bool:
    match node:
        case exp.JSONType():
            node.replace(call("localcloud_json_kind", node, type_="STRING"))
        case exp.JSONFormat() if isinstance(node.args.get("options"), exp.Kwarg):
            refuse(f"TO_JSON with {node.args['options'].name}")
        case exp.JSONFormat() if node.args.get("options"):
            return False
        case exp.JSONFormat():
            is_json = node.args.get("to_json")
            name, type_ = ("localcloud_to_json", "JSON") if is_json else ("localcloud_json", "STRING")
            node.replace(call(name, node.this, type_=type_))
        case _:
            encoded_values = [_encode(value) for value in _values_of(node)]
            return any(encoded_values)
    return True


def _values_of(node: exp.Expression) -> list[exp.Expression]:
    """Return what becomes JSON in an object, in an array, or in place of something."""
    if isinstance(node, exp.JSONObject):
        return [pair.expression for pair in node.expressions if isinstance(pair, exp.JSONKeyValue)]
    return list(node.expressions[1::2] if isinstance(node, exp.JSONSet | exp.JSONArrayInsert) else node.expressions)


def _encode(value: exp.Expression) -> bool:
    if isinstance(value, exp.Literal | exp.Boolean | exp.Null | exp.Kwarg):
        return False
    value.replace(call("localcloud_to_json", value, type_="JSON"))
    return True


def encoded(texts: pa.Array, types: pa.Array, wide: pa.Array) -> pa.Array:
    """Return what DuckDB wrote as JSON as BigQuery writes it.

    Args:
        texts: DuckDB's.
        types: Of the values, as `typeof` has them; the same for all.
        wide: Whether numbers that a FLOAT64 does not hold become texts, as in TO_JSON_STRING; the same for all.
    """
    column = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if not len(column):
        return column
    kind, as_text = types[0].as_py(), wide[0].as_py()
    write = _writer(kind, wide=as_text)
    if _OTHERWISE.search(kind):
        found = pa.array([None if text is None else write(_read(text)) for text in column.to_pylist()], pa.string())
    else:
        found = _with_odd_rows(column, write, wide=as_text)
    return pc.replace_substring_regex(found, _NO_NAME, '"":') if "_field_" in kind else found


def _with_odd_rows(column: pa.Array, write: Callable[[Untyped], str], *, wide: bool) -> pa.Array:
    """Return a column of which most is as BigQuery has it, but for points without digits: one pass over most rows."""
    if wide:
        rare = pc.match_substring_regex(column, _ODD_NUMBER)
        is_simple = pc.and_not(pc.match_substring_regex(column, _NO_POINT_IN_STRINGS), rare)
        quick = pc.replace_substring_regex(column, r"(\d)\.0([,}\]]|$)", r"\1\2")
    else:
        quick, is_simple = column, pc.invert(pc.match_substring_regex(column, "NaN|Infinity"))
    others = column.filter(pc.invert(is_simple))
    slow = pa.array([None if text is None else write(_read(text)) for text in others.to_pylist()], pa.string())
    return pc.replace_with_mask(quick.cast(pa.string()), pc.fill_null(pc.invert(is_simple), fill_value=False), slow)


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Untyped]]):
    """An object's keys and values, in order; a struct may have a name twice."""

    __slots__ = ()


_DECODER = json.JSONDecoder(
    parse_float=_Number, parse_int=_Number, parse_constant=_Number, object_pairs_hook=_Pairs, strict=False
)


def _read(text: str) -> Untyped:
    return _DECODER.decode(text)


@functools.lru_cache(maxsize=256)
def _writer(kind: str, *, wide: bool) -> Callable[[Untyped], str]:
    """Return what writes a value of a type of DuckDB, as it was read from DuckDB's JSON."""
    if kind.endswith("]"):
        return functools.partial(_array, _writer(kind[: kind.rindex("[")], wide=wide))
    if kind.startswith("STRUCT("):
        return functools.partial(_object, [_writer(each, wide=wide) for each in _fields(kind[len("STRUCT(") : -1])])
    scalars: Mapping[str, Callable[[Untyped], str]] = {
        "TIMESTAMP WITH TIME ZONE": lambda value: f'"{_in_threes(value.removesuffix("+00")).replace(" ", "T")}Z"',
        "TIMESTAMP": lambda value: f'"{_in_threes(value).replace(" ", "T")}"',
        "TIME": lambda value: f'"{_in_threes(value)}"',
        "BLOB": lambda value: f'"{base64.b64encode(_bytes(value)).decode()}"',
        "INTERVAL": _refuse_interval,
        "DOUBLE": functools.partial(_double, wide=wide),
        "FLOAT": functools.partial(_double, wide=wide),
    }
    if kind.startswith("DECIMAL"):
        write: Callable[[Untyped], str] = functools.partial(_decimal, wide=wide)
    elif kind.endswith(("INT", "INTEGER")) and wide:
        write = _integer
    else:
        write = scalars.get(kind, _as_it_is)
    return lambda value: "null" if value is None else write(value)


def _fields(inside: str) -> list[str]:
    """Return the types of a struct's fields, of `a BIGINT, "b c" STRUCT(x BIGINT)[]`; names may be missing."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, letter in enumerate(inside):
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and not depth:
                parts.append(inside[start:at].strip())
                start = at + 1
    return [_without_name(part) for part in (*parts, inside[start:].strip())]


def _without_name(field: str) -> str:
    named = re.fullmatch(r'(?:"(?:[^"]|"")*"|[^\s"(]+)\s+(?!WITH TIME ZONE)(.+)', field, re.DOTALL)
    return named.group(1) if named else field


def _array(write: Callable[[Untyped], str], values: Untyped) -> str:
    return "null" if values is None else f"[{','.join(map(write, values))}]"


def _object(writers: list[Callable[[Untyped], str]], pairs: Untyped) -> str:
    if pairs is None:
        return "null"
    fields = (f"{_text(name)}:{write(value)}" for (name, value), write in zip(pairs, writers, strict=True))
    return f"{{{','.join(fields)}}}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_it_is(value: Untyped) -> str:
    """Write what a column of JSON holds, or anything that DuckDB writes as BigQuery does."""
    match value:
        case _Number():
            return _text(str(value)) if value.endswith(("NaN", "Infinity")) else str(value)
        case _Pairs():
            return f"{{{','.join(f'{_text(name)}:{_as_it_is(each)}' for name, each in value)}}}"
        case list():
            return f"[{','.join(map(_as_it_is, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _integer(value: str) -> str:
    return value if abs(int(value)) <= _LARGEST else f'"{value}"'


def _decimal(value: str, *, wide: bool) -> str:
    number = Decimal(value)
    text = format(number.normalize() if number else Decimal(0), "f")
    return text if not wide or ("." not in text and abs(number) <= _LARGEST) else f'"{text}"'


def _double(value: str, *, wide: bool) -> str:
    if value.endswith(("NaN", "Infinity")):
        return f'"{value}"'
    if not wide:
        return str(value)
    number = float(value)
    short = f"{number:.15g}"
    return short if float(short) == number else f"{number:.17g}"


def _in_threes(value: str) -> str:
    """Return a time with parts of a second in threes, as few as say it."""
    return _FRACTION.sub(lambda match: f".{match.group(1):0<{3 if len(match.group(1)) <= 3 else 6}}", value)


def _bytes(value: str) -> bytes:
    r"""Return the bytes that DuckDB writes as `a\x00b`."""
    return _ESCAPED_BYTE.sub(lambda match: bytes.fromhex(match.group(1).decode()), value.encode())


def _refuse_interval(value: str) -> str:
    raise ValueError(f"The local cloud has no texts of intervals: {value}")

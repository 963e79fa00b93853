"""Patches functions of JSON that take what BigQuery refuses, or give what it does not.

| GoogleSQL | without it |
|---|---|
| JSON_QUERY, JSON_EXTRACT of JSON: JSON; of a text with null there: NULL | a text; `null` |
| INT64, FLOAT64, BOOL, STRING of another kind of JSON: refused | converted |
| LAX_BOOL of a number, LAX_INT64 of true; LAX_STRING of an array: NULL | NULL, NULL; a text |
| JSON_STRIP_NULLS: also in arrays | in objects only |
| JSON_STRIP_NULLS, JSON_SET and JSON_ARRAY_INSERT with further arguments, which are refused by name | without them |

Source: the reference of JSON functions, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.refusals import refuse
from localcloud.untyped import Untyped

_KIND = "json_type(CAST(j AS JSON))"
_TEXT = "json_extract_string(CAST(j AS JSON), '$')"
_NUMBERS = "('BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT', 'DOUBLE')"
_NUMBER = f"TRY_CAST({_TEXT} AS DOUBLE)"


def _other(kind: str) -> str:
    """Return what ends a statement, of type BIGINT."""
    return f"CAST('The provided JSON input is not {kind}: ' || CAST(j AS VARCHAR) AS BIGINT)"


MACROS: Mapping[str, str] = {
    # `source` is asked for its type only.
    "localcloud_json_part(found, source)": (
        "cast_to_type(CASE WHEN typeof(source) <> 'JSON' AND CAST(found AS VARCHAR) = 'null' THEN NULL"
        " ELSE CAST(found AS VARCHAR) END, source)"
    ),
    "localcloud_json_int64(j)": (
        f"CASE WHEN j IS NULL THEN NULL WHEN {_KIND} NOT IN {_NUMBERS} THEN {_other('an integer')}"
        f" WHEN {_KIND} <> 'DOUBLE' THEN CAST({_TEXT} AS BIGINT)"
        f" WHEN {_NUMBER} = trunc({_NUMBER}) THEN CAST({_NUMBER} AS BIGINT) ELSE {_other('an integer')} END"
    ),
    "localcloud_json_float64(j)": (
        f"CASE WHEN j IS NULL THEN NULL WHEN {_KIND} IN {_NUMBERS} THEN {_NUMBER} ELSE {_other('a number')} END"
    ),
    "localcloud_json_bool(j)": (
        f"CASE WHEN j IS NULL THEN NULL WHEN {_KIND} = 'BOOLEAN' THEN {_TEXT} = 'true'"
        f" ELSE {_other('a boolean')} <> 0 END"
    ),
    "localcloud_string_of(j)": (
        f"CASE WHEN typeof(j) <> 'JSON' THEN localcloud_text(j) WHEN j IS NULL THEN NULL WHEN {_KIND} = 'VARCHAR'"
        f" THEN {_TEXT} ELSE CAST({_other('a string')} AS VARCHAR) END"
    ),
    "localcloud_lax_bool(j)": (
        f"CASE WHEN {_KIND} IN {_NUMBERS} THEN {_NUMBER} <> 0 WHEN {_KIND} IN ('BOOLEAN', 'VARCHAR')"
        f" THEN CASE lower({_TEXT}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END END"
    ),
    "localcloud_lax_int64(j)": (
        f"CASE WHEN {_KIND} = 'BOOLEAN' THEN CASE {_TEXT} WHEN 'true' THEN 1 ELSE 0 END"
        f" WHEN {_KIND} IN ('ARRAY', 'OBJECT', 'NULL') THEN NULL"
        f" WHEN regexp_matches({_TEXT}, '^-?[0-9]+$') THEN TRY_CAST({_TEXT} AS BIGINT)"
        f" ELSE TRY_CAST(round({_NUMBER}) AS BIGINT) END"
    ),
    "localcloud_lax_string(j)": f"CASE WHEN {_KIND} IN ('ARRAY', 'OBJECT', 'NULL') THEN NULL ELSE {_TEXT} END",
    "localcloud_without_nulls(j)": "CAST(localcloud_stripped(CAST(j AS VARCHAR)) AS JSON)",
}
_CALLS: Mapping[type[exp.Expression], tuple[str, str | None]] = {
    exp.Int64: ("localcloud_json_int64", "INT64"),
    exp.Float64: ("localcloud_json_float64", "FLOAT64"),
    exp.JSONBool: ("localcloud_json_bool", "BOOL"),
    exp.String: ("localcloud_string_of", "STRING"),
    exp.LaxBool: ("localcloud_lax_bool", "BOOL"),
    exp.LaxInt64: ("localcloud_lax_int64", "INT64"),
    exp.LaxString: ("localcloud_lax_string", "STRING"),
    exp.JSONStripNulls: ("localcloud_without_nulls", None),
}
_PAIR = 2


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in reversed(list(tree.find_all(*_CALLS, exp.JSONExtract, exp.JSONSet, exp.JSONArrayInsert))):
        new = _right(node)
        if new is not None:
            node.replace(new)
            found = True
    return found


def _right(node: exp.Expression) -> exp.Expression | None:
    match node:
        case exp.JSONExtract() if not isinstance(node.this, exp.Null):
            return call("localcloud_json_part", node, node.this, type_=None)
        case exp.JSONSet() | exp.JSONArrayInsert():
            if len(node.expressions) > _PAIR:
                refuse(f"{node.sql_name()} with further arguments")
        case exp.JSONStripNulls() if any(value for name, value in node.args.items() if name != "this"):
            refuse("JSON_STRIP_NULLS with further arguments")
        case exp.String() if node.args.get("zone") is not None:
            return None  # of a timestamp
        case _ if type(node) in _CALLS:
            name, type_ = _CALLS[type(node)]
            return call(name, node.this, type_=type_)
    return None


def stripped(texts: pa.Array) -> pa.Array:
    """Return JSON texts without the nulls in their objects and arrays."""
    found = [None if text is None else _written(_stripped(json.loads(text))) for text in texts.to_pylist()]
    return pa.array(found, pa.string())


def _written(value: Untyped) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _stripped(value: Untyped) -> Untyped:
    if isinstance(value, dict):
        return {key: _stripped(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_stripped(each) for each in value if each is not None]
    return value

r"""Patches JSON_KEYS, texts of bytes that are none, zones in PARSE_TIMESTAMP, and aliases in PIVOT.

| GoogleSQL | without it |
|---|---|
| JSON_KEYS: keys at every depth, by their paths, in order | those at the top, as they are written |
| SAFE_CONVERT_BYTES_TO_STRING(b'\xc2') | NULL |
| PARSE_TIMESTAMP with `%z` | a DATETIME |
| PIVOT with an alias of the aggregate, which is refused by name | the value's name before the aggregate's |

Source: the reference of JSON, string and timestamp functions and of queries,
cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.refusals import refuse
from localcloud.untyped import Untyped

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EVERY_DEPTH = 2**31
MACROS: Mapping[str, str] = {
    "localcloud_keys(j, depth)": "localcloud_json_keys(CAST(j AS VARCHAR), CAST(depth AS BIGINT))",
    "localcloud_text_of(b)": "localcloud_replaced(CAST(b AS BLOB))",
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    kinds = (exp.JSONKeysAtDepth, exp.SafeConvertBytesToString, exp.StrToTime, exp.Pivot)
    for node in reversed(list(tree.find_all(*kinds))):
        found = _patch(node) or found
    return found


def _patch(node: exp.Expression) -> bool:
    match node:
        case exp.JSONKeysAtDepth() if node.args.get("mode") is not None:
            refuse("JSON_KEYS with a mode")
        case exp.JSONKeysAtDepth():
            depth = node.args.get("expression") or _EVERY_DEPTH
            node.replace(call("localcloud_keys", node.this, depth, type_="ARRAY<STRING>"))
        case exp.SafeConvertBytesToString():
            node.replace(call("localcloud_text_of", node.this, type_="STRING"))
        case exp.StrToTime() if "%z" in node.args["format"].name and not isinstance(node.parent, exp.Cast):
            node.replace(exp.cast(node.copy(), "TIMESTAMP", dialect="bigquery"))
        case exp.Pivot() if not node.args.get("unpivot") and any(isinstance(e, exp.Alias) for e in node.expressions):
            refuse("PIVOT with an alias of the aggregate")
        case _:
            return False
    return True


def json_keys(texts: pa.Array, depths: pa.Array) -> pa.Array:
    """Return the paths of all keys in JSON texts down to a depth, in order; keys inside of arrays are none."""
    pairs = zip(texts.to_pylist(), depths.to_pylist(), strict=True)
    found = [None if text is None else sorted(set(_paths(json.loads(text), depth))) for text, depth in pairs]
    return pa.array(found, pa.list_(pa.string()))


def _paths(value: Untyped, depth: int, before: str = "") -> Iterator[str]:
    if not isinstance(value, dict) or depth < 1:
        return
    for key, child in value.items():
        path = before + (key if _PLAIN_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False))
        yield path
        yield from _paths(child, depth - 1, f"{path}.")


def replaced(values: pa.Array) -> pa.Array:
    """Return bytes as texts, with U+FFFD in the place of what is no UTF-8."""
    texts = [None if value is None else value.decode(errors="replace") for value in values.to_pylist()]
    return pa.array(texts, pa.string())

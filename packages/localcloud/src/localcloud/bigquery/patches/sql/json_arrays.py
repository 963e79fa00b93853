"""Patches arrays out of JSON, which have other elements in DuckDB, and JSON that is written out beside a table.

| GoogleSQL | without it |
|---|---|
| JSON_QUERY_ARRAY, JSON_EXTRACT_ARRAY of a text: texts, of JSON: JSON | JSON |
| of what is no array: NULL | an error, or an empty array |
| JSON_VALUE_ARRAY, JSON_EXTRACT_STRING_ARRAY with an element that is no scalar: NULL | the element as a text |
| `JSON_VALUE('{"a": 1}', '$.a')` beside a table | the text is read as a column: `->` begins a function in DuckDB |

Source: the reference of JSON functions, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

MACROS: Mapping[str, str] = {
    # `found` is what a path leads to; `source` is asked for its type only.
    "localcloud_json_parts(found, source)": (
        "CASE WHEN json_type(CAST(found AS JSON)) = 'ARRAY'"
        " THEN cast_to_type(json_extract(CAST(found AS JSON), '$[*]'), [source]) END"
    ),
    "localcloud_json_scalars(found)": (
        "CASE WHEN json_type(CAST(found AS JSON)) = 'ARRAY' AND len(list_filter(json_extract(CAST(found AS JSON),"
        " '$[*]'), lambda part: json_type(part) IN ('ARRAY', 'OBJECT'))) = 0"
        " THEN json_extract_string(CAST(found AS JSON), '$[*]') END"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = list(tree.find_all(exp.JSONExtractArray, exp.JSONValueArray))
    for node in reversed(nodes):
        query = exp.JSONExtract(this=node.this.copy(), expression=node.expression.copy())
        if isinstance(node, exp.JSONValueArray):
            node.replace(call("localcloud_json_scalars", query, type_="ARRAY<STRING>"))
        else:
            node.replace(call("localcloud_json_parts", query, node.this, type_=None))
    return any([bool(nodes), _cast_literals(tree)])


def _cast_literals(tree: exp.Expression) -> bool:
    """Say of texts that something is taken out of what they are."""
    found = [node.this for node in tree.find_all(exp.JSONExtract, exp.JSONExtractScalar)]
    literals = [text for text in found if isinstance(text, exp.Literal) and text.is_string]
    for text in literals:
        text.replace(exp.cast(text.copy(), "STRING", dialect="bigquery"))
    return bool(literals)

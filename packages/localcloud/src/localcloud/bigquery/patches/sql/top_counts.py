"""Patches APPROX_TOP_COUNT: it would give values without their counts."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

# A macro of DuckDB's, made at start by `emulator`: exact counts, because DuckDB's approx_top_k gives values only.
MACRO = """
CREATE OR REPLACE TEMP MACRO localcloud_top_count(x, n) AS list_slice(
  list_transform(
    list_sort(list_concat(
      list_transform(map_entries(histogram(x)), lambda e: {'c': -CAST(e.value AS BIGINT), 'v': e.key}),
      CASE WHEN count(*) > count(x) THEN [{'c': count(x) - count(*), 'v': NULL}] ELSE [] END
    )),
    lambda e: {'value': e.v, 'count': -e.c}
  ),
  1, n
)
"""


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = list(tree.find_all(exp.ApproxTopK))
    for node in nodes:
        node.replace(exp.Anonymous(this="localcloud_top_count", expressions=[node.this.copy(), node.expression.copy()]))
    return bool(nodes)

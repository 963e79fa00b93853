"""GoogleSQL that bqemulator translates wrongly, rewritten to GoogleSQL that it translates rightly.

In: one statement in GoogleSQL. Out: an equal statement; the same text when nothing in it is concerned. Each rewrite is
a file of `patches`, with what goes wrong without it. Multi-statement scripts pass unchanged.
"""

from __future__ import annotations

import re

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.patches.sql import REWRITES, column_names
from localcloud.bigquery.types.columns import BIGNUMERIC

# A macro of DuckDB's, made at start by `emulator`: exact counts, because DuckDB's approx_top_k gives values only.
TOP_COUNT_MACRO = """
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


def rewrite(statement: str) -> str:
    """Give a statement that bqemulator understands as BigQuery understands the original."""
    try:
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return statement  # bqemulator says what is wrong with it
    if len(trees) != 1 or trees[0] is None or isinstance(trees[0], exp.Command):
        return statement
    changed = [rewrite_one(trees[0]) for rewrite_one in (*REWRITES, _cast_big_decimals)]
    return str(trees[0].sql(dialect="bigquery")) if any(changed) else statement


def nameless_column(statement: str) -> str:
    """Give what the service says of a CREATE TABLE or VIEW … AS SELECT with a column that has no name; "" if all have.

    Columns are counted from 1.
    """
    try:
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return ""
    if len(trees) != 1 or not isinstance(trees[0], exp.Create) or trees[0].kind not in ("TABLE", "VIEW"):
        return ""
    if isinstance(trees[0].this, exp.Schema):  # the statement names them itself
        return ""
    select = column_names.result_of(trees[0].expression) if trees[0].expression else None
    for number, column in enumerate(select.expressions if select else [], 1):
        if not column_names.output_name(column):
            return f"CREATE {trees[0].kind} columns must be named, but column {number} has no name"
    return ""


def widen_numerics(translated: str) -> str:
    """Mend NUMERIC and BIGNUMERIC in DuckDB's SQL.

    They become DECIMAL(18, 3), too narrow for the sum of fingerprints, and DECIMAL(38, 5), too coarse.
    """

    def widen(match: re.Match[str]) -> str:
        if not match.group().startswith("DECIMAL"):
            return match.group()
        return BIGNUMERIC if match.group().endswith("5)") else "DECIMAL(38, 9)"

    return re.sub(r"""'(?:[^']|'')*'|"[^"]*"|\bDECIMAL(?:\((?:18, 3|38, 5)\)|\b(?!\s*\())""", widen, translated)


def _cast_big_decimals(tree: exp.Expression) -> bool:
    """Give `BIGNUMERIC '1.5'` the digits of the local cloud's own type; it would have as many as it is written with."""
    return any(node.to.is_type("bigdecimal") and isinstance(node.this, exp.Literal) for node in tree.find_all(exp.Cast))

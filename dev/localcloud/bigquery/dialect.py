"""GoogleSQL that bqemulator translates wrongly, rewritten to GoogleSQL that it translates rightly.

In: one statement in GoogleSQL. Out: an equal statement; the same text when nothing in it is concerned. Each rewrite is
one function over the syntax tree, with what goes wrong without it. Multi-statement scripts pass unchanged.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.column_types import BIGNUMERIC

# A macro of DuckDB's, made at start by `mends`: exact counts, because DuckDB's approx_top_k gives values only.
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
    changed = [rewrite_one(trees[0]) for rewrite_one in _REWRITES]
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
    select = _result_of(trees[0].expression) if trees[0].expression else None
    for number, column in enumerate(select.expressions if select else [], 1):
        if not _output_name(column):
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


def _index_arrays_by_expression(tree: exp.Expression) -> bool:
    """Mend `a[OFFSET(i)]`: DuckDB counts from one, and only a literal index is shifted (some of them twice)."""
    found = [node for node in tree.find_all(exp.Bracket) if node.args.get("offset") is not None]
    for node in reversed(found):  # inner ones first
        index = node.expressions[0].copy()
        if node.args["offset"] == 0:
            index = exp.Add(this=exp.Paren(this=index), expression=exp.Literal.number(1))
        node.replace(exp.Anonymous(this="list_extract", expressions=[node.this.copy(), index]))
    return bool(found)


def _keep_offset_names(tree: exp.Expression) -> bool:
    """Mend `SELECT o … WITH OFFSET o`: the column would be called `(o - 1)`, or be unknown without `AS element`."""
    nameless = [node for node in tree.find_all(exp.Unnest) if node.args.get("offset") and not node.args.get("alias")]
    for index, node in enumerate(nameless):
        node.set("alias", exp.TableAlias(columns=[exp.to_identifier(f"localcloud_element_{index}")]))
    names = {
        offset.name if isinstance(offset, exp.Identifier) else "offset"
        for offset in (node.args.get("offset") for node in tree.find_all(exp.Unnest))
        if offset
    }
    found = [
        column
        for select in tree.find_all(exp.Select)
        for column in select.expressions
        if isinstance(column, exp.Column) and column.name in names
    ]
    for column in found:
        column.replace(exp.alias_(column.copy(), column.name))
    return bool(found or nameless)


def _count_top_values(tree: exp.Expression) -> bool:
    """Mend APPROX_TOP_COUNT: it would give values without their counts."""
    found = list(tree.find_all(exp.ApproxTopK))
    for node in found:
        node.replace(exp.Anonymous(this="localcloud_top_count", expressions=[node.this.copy(), node.expression.copy()]))
    return bool(found)


def _name_struct_fields(tree: exp.Expression) -> bool:
    """Mend `STRUCT(a, t.b)`: its fields would have no names instead of `a` and `b`."""
    found = [
        column for node in tree.find_all(exp.Struct) for column in node.expressions if isinstance(column, exp.Column)
    ]
    for column in found:
        name = exp.to_identifier(column.name, quoted=True)
        column.replace(exp.PropertyEQ(this=name, expression=column.copy()))
    return bool(found)


def _select_structs(tree: exp.Expression) -> bool:
    """Mend `SELECT AS STRUCT f(x) AS n … ORDER BY n`: DuckDB would see a field of a struct, not an alias."""
    found = [
        select
        for select in tree.find_all(exp.Select)
        if select.args.get("kind") == "STRUCT" and all(each.alias_or_name for each in select.expressions)
    ]
    for select in found:
        aliases = {each.alias: each.this for each in select.expressions if isinstance(each, exp.Alias)}
        for clause in filter(None, (select.args.get("order"), select.args.get("group"))):
            for column in list(clause.find_all(exp.Column)):
                if not column.table and column.name in aliases:
                    column.replace(aliases[column.name].copy())
        fields = [
            exp.PropertyEQ(this=exp.to_identifier(each.alias_or_name, quoted=True), expression=each.unalias().copy())
            for each in select.expressions
        ]
        select.set("kind", None)
        select.set("expressions", [exp.Struct(expressions=fields)])
    return bool(found)


def _spell_bytes(tree: exp.Expression) -> bool:
    r"""Mend `b'\x00\xff'`: DuckDB knows no such escapes."""
    found = list(tree.find_all(exp.ByteString))
    for node in found:
        value, _ = codecs.escape_decode(node.name.encode())
        node.replace(exp.Anonymous(this="FROM_HEX", expressions=[exp.Literal.string(value.hex())]))
    return bool(found)


def _cast_big_decimals(tree: exp.Expression) -> bool:
    """Mend `BIGNUMERIC '1.5'`: it would get as many digits as it is written with. As a cast it gets the type's own."""
    return any(node.to.is_type("bigdecimal") and isinstance(node.this, exp.Literal) for node in tree.find_all(exp.Cast))


def _divide_whole_terms(tree: exp.Expression) -> bool:
    """Mend `DIV(a + b, c * d)`: in DuckDB it would be `a + b // c * d`."""
    found = list(tree.find_all(exp.IntDiv))
    for node in found:
        for name, term in (("this", node.this), ("expression", node.expression)):
            if isinstance(term, exp.Binary):
                node.set(name, exp.Paren(this=term.copy()))
        if isinstance(node.parent, exp.Binary | exp.Unary) and not isinstance(node.parent, exp.Paren):
            node.replace(exp.Paren(this=node.copy()))
    return bool(found)


def _name_columns(tree: exp.Expression) -> bool:
    """Mend `SELECT COUNT(*), 1`: the columns are called `f0_` and `f1_`, not `count_star()` and `1`.

    Those of the statement itself, and of the subqueries behind its FROM, whose columns `*` would show.
    """
    found = False
    for select in filter(None, map(_result_of, [tree, *tree.find_all(exp.Subquery, exp.CTE)])):
        nameless = [column for column in select.expressions if not _output_name(column)]
        for index, column in enumerate(nameless):
            column.replace(exp.alias_(column.copy(), f"f{index}_"))
        found = found or bool(nameless)
    return found


def _result_of(node: exp.Expression) -> exp.Select | None:
    """Give the SELECT that names the columns of a statement, or of a table in FROM or WITH."""
    if isinstance(node, exp.Create):
        return None  # the service refuses it: see `require_names`
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Join):
        return None
    query = node.this if isinstance(node, exp.Subquery | exp.CTE) else node
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query if isinstance(query, exp.Select) and not query.args.get("kind") else None


def _output_name(column: exp.Expression) -> str:
    """Give the name that a column of a result has in GoogleSQL; "" when it gets a made-up one."""
    column = column.unnest()
    if isinstance(column, exp.Alias | exp.Column | exp.Dot | exp.Star | exp.PropertyEQ):
        return str(column.alias_or_name) or "*"
    return "*" if column.is_star else ""


_REWRITES: tuple[Callable[[exp.Expression], bool], ...] = (
    _index_arrays_by_expression,
    _keep_offset_names,
    _count_top_values,
    _name_struct_fields,
    _select_structs,
    _spell_bytes,
    _cast_big_decimals,
    _divide_whole_terms,
    _name_columns,
)

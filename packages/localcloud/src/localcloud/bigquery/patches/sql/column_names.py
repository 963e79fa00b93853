"""Patches `SELECT COUNT(*), 1`: the columns are called `f0_` and `f1_`, not `count_star()` and `1`.

`STRUCT(1 AS a).a` is called `a`, not as it is written; a function of a dataset has no name, either.

Those of the statement itself, and of the subqueries behind its FROM, whose columns `*` would show.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

UNNAMED = "localcloud_unnamed"
"""Begins the alias of a column that has no name, where an alias was needed."""


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    rewritten = False
    for select in filter(None, map(result_of, [tree, *tree.find_all(exp.Subquery, exp.CTE)])):
        nameless = [column for column in select.expressions if not output_name(column)]
        for index, column in enumerate(nameless):
            column.replace(exp.alias_(column.unalias().copy(), f"f{index}_"))
        fields = [column for column in select.expressions if isinstance(column, exp.Dot) and output_name(column)]
        for column in fields:
            column.replace(exp.alias_(column.copy(), output_name(column), quoted=True))
        rewritten = rewritten or bool(nameless) or bool(fields)
    return rewritten


def result_of(node: exp.Expression) -> exp.Select | None:
    """Return the SELECT that names the columns of a statement, or of a table in FROM or WITH."""
    if isinstance(node, exp.Create):
        return None  # the service refuses it: see `dialect.nameless_column`
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Join):
        return None
    query = node.this if isinstance(node, exp.Subquery | exp.CTE) else node
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query if isinstance(query, exp.Select) and not query.args.get("kind") else None


def output_name(column: exp.Expression) -> str:
    """Return the name that a column of a result has in GoogleSQL; "" when it gets a made-up one."""
    column = column.unnest()
    if isinstance(column, exp.Dot) and not isinstance(column.expression, exp.Identifier | exp.Star):
        return ""  # a function of a dataset
    if isinstance(column, exp.Alias) and column.alias.startswith(UNNAMED):
        return ""
    if isinstance(column, exp.Alias | exp.Column | exp.Dot | exp.Star | exp.PropertyEQ):
        return str(column.alias_or_name) or "*"
    return "*" if column.is_star else ""

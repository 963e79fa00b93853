"""Patches GoogleSQL that is stored and read later: it would be translated as it is, with every fault of the translator.

| stored | when it is translated |
|---|---|
| view | put in its place after the statement that reads it was rewritten |
| materialized view | when it is made, and made anew |
| SQL function, table function | when it is made |
| condition of a row access policy | put in its place as a view is |

What the catalog shows stays as it was written.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import SimpleNamespace

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches import language, numerics, sql, unnested_fields
from localcloud.refusals import NotOfferedError
from localcloud.untyped import Untyped

_VALUE = "localcloud_value"


def apply() -> None:
    """Rewrite what is stored as a statement is."""
    from bqemulator.catalog import ddl_sync
    from bqemulator.sql.rewriter import row_access_filter
    from bqemulator.udf import sql_udf, table_valued
    from bqemulator.versioning.materialized_views import MaterializedViewManager

    rewriter = row_access_filter._Rewriter
    expand, combine = rewriter._expand_view, rewriter._or_combine_filters

    @functools.wraps(expand)
    def expand_rewritten(self: Untyped, node: Untyped, *, view_body: str, **kwargs: Untyped) -> Untyped:
        body = _rewritten(view_body, kwargs["view_project"], self._catalog)
        return expand(self, node, view_body=body, **kwargs)

    @functools.wraps(combine)
    def combine_rewritten(self: Untyped, policies: Iterable[Untyped]) -> Untyped:
        written = [
            each.model_copy(update={"filter_predicate": rewrite_expression(each.filter_predicate)}) for each in policies
        ]
        return combine(self, tuple(written))

    detect = ddl_sync._detect_plain_create_view
    # The catalog has a view as the parser writes it, which does not know `\\u00e9`.
    ddl_sync._detect_plain_create_view = lambda statement: detect(sql.text_escapes.with_characters(statement))
    rewriter._expand_view = expand_rewritten
    rewriter._or_combine_filters = combine_rewritten
    translate_view = MaterializedViewManager._translate

    @functools.wraps(translate_view)
    def translate_rewritten(self: Untyped, bq_sql: str, project_id: str) -> str:
        return numerics.widen(translate_view(self, _rewritten(bq_sql, project_id, self._ctx.catalog), project_id))

    MaterializedViewManager._translate = translate_rewritten
    translate_value, translate_table = sql_udf._translate_body, table_valued._translate_tvf_body
    sql_udf._translate_body = lambda body, *rest: numerics.widen(translate_value(rewrite_expression(body), *rest))
    table_valued._translate_tvf_body = lambda body, *rest: numerics.widen(translate_table(_offered(body), *rest))


def _rewritten(statement: str, project: str, catalog: Untyped) -> str:
    """Return a query that is rewritten with what is known of the tables that it reads."""
    from bqemulator.sql.catalog_schema import build_catalog_schema

    statement = unnested_fields.named(statement, project, SimpleNamespace(catalog=catalog))
    return _offered(statement, build_catalog_schema(statement, project_id=project, catalog=catalog))


def _offered(statement: str, tables: Untyped = None) -> str:
    from bqemulator.domain.errors import UnsupportedFeatureError

    language.check(statement, language.temporary_functions(statement))  # what came by REST was not looked at before
    try:
        return sql.rewrite(statement, tables)
    except NotOfferedError as error:
        raise UnsupportedFeatureError(str(error)) from error


def rewrite_expression(text: str) -> str:
    """Return an expression of GoogleSQL that bqemulator understands as BigQuery understands the original."""
    statement = _offered(f"SELECT {text} AS {_VALUE}")
    try:
        tree = sqlglot.parse_one(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return text  # bqemulator says what is wrong with it
    is_value = isinstance(tree, sqlglot.exp.Select) and len(tree.selects) == 1
    return str(tree.selects[0].unalias().sql(dialect="bigquery")) if is_value else text

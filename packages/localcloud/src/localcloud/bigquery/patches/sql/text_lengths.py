"""Patches `STRING(n)` and `BYTES(n)` of CREATE TABLE: the length is dropped, and any text is taken.

DuckDB keeps it as a CHECK of the column, which holds for whatever writes a row; a length is in characters of a STRING,
in bytes of BYTES (https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types#parameterized_data_types).
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

_LENGTHS = {
    exp.DataType.Type.TEXT: "LEN",
    exp.DataType.Type.VARCHAR: "LEN",
    exp.DataType.Type.BINARY: "OCTET_LENGTH",
    exp.DataType.Type.VARBINARY: "OCTET_LENGTH",
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether it is concerned."""
    if not isinstance(tree, exp.Create) or tree.kind != "TABLE" or not isinstance(tree.this, exp.Schema):
        return False
    limited = [each for each in tree.this.expressions if isinstance(each, exp.ColumnDef) and limit_of(each)]
    for column in limited:
        length = exp.Anonymous(this=_LENGTHS[column.kind.this], expressions=[exp.column(column.this.copy())])
        check = exp.LTE(this=length, expression=exp.Literal.number(limit_of(column)))
        column.append("constraints", exp.ColumnConstraint(kind=exp.CheckColumnConstraint(this=check)))
        column.kind.set("expressions", None)
    return bool(limited)


def limit_of(column: exp.ColumnDef) -> int:
    """Return the most characters or bytes of a column; 0 where any number is taken."""
    kind = column.kind
    if kind is None or kind.this not in _LENGTHS or not kind.expressions:
        return 0
    return int(kind.expressions[0].name)

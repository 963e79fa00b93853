"""Patches casts to NUMERIC(p, s): written out anew, a statement lost the digits, and nothing was rounded or refused.

sqlglot takes them for allowed in CREATE TABLE alone.
https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types#parameterized_data_types
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def apply() -> None:
    """Write casts with the digits of their types."""
    from sqlglot.generators.bigquery import BigQueryGenerator  # type: ignore[import-not-found]

    BigQueryGenerator.TRANSFORMS = {**BigQueryGenerator.TRANSFORMS, exp.Cast: lambda self, node: self.cast_sql(node)}

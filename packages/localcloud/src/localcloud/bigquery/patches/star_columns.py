"""Patches `*` over columns of a type that the translator cannot name, such as GEOGRAPHY: it writes the others out."""

from __future__ import annotations


def apply() -> None:
    """Give such columns a type, so that they are not forgotten where the columns of `*` are written out."""
    from bqemulator.sql import catalog_schema

    known = catalog_schema._safe_bq_to_duckdb
    catalog_schema._safe_bq_to_duckdb = lambda kind: known(kind) or "STRUCT"

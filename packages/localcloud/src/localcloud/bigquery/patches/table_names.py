"""Patches names of tables: those with spaces and letters of other languages are made, and then not found.

A name has up to 1,024 bytes of letters, marks, numbers, connectors, dashes and spaces of Unicode:
https://cloud.google.com/bigquery/docs/tables#table_naming.
"""

from __future__ import annotations

import unicodedata

from localcloud.untyped import Untyped

MOST_BYTES = 1024
_SIGNS = frozenset({"Pc", "Pd", "Zs"})


def apply() -> None:
    """Take the names that the service takes."""
    from bqemulator.storage import sql_identifiers

    validate = sql_identifiers._validate_sql_id

    def validate_named(value: Untyped, kind: str) -> str:
        is_name = kind == "table" and isinstance(value, str) and is_table_name(value)
        return str(value) if is_name else str(validate(value, kind))

    sql_identifiers._validate_sql_id = validate_named


def is_table_name(name: str) -> bool:
    """Return whether a table can have a name."""
    kinds = map(unicodedata.category, name)
    return 0 < len(name.encode()) <= MOST_BYTES and all(kind[0] in "LMN" or kind in _SIGNS for kind in kinds)

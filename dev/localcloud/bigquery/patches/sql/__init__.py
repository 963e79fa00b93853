"""One file per fault of bqemulator's translation of SQL: what is wrong, and the rewrite that avoids it.

In: the syntax tree of one statement in GoogleSQL, changed in place. Out: whether anything in it was concerned. A test
asks the unpatched emulator too, and fails when it has become right: then the file goes.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql import (
    array_indexes,
    byte_literals,
    column_names,
    offset_names,
    selected_structs,
    struct_fields,
    top_counts,
    whole_division,
)

REWRITES: tuple[Callable[[exp.Expression], bool], ...] = (
    array_indexes.rewrite,
    offset_names.rewrite,
    top_counts.rewrite,
    struct_fields.rewrite,
    selected_structs.rewrite,
    byte_literals.rewrite,
    whole_division.rewrite,
    column_names.rewrite,
)

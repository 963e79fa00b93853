"""Patches NUMERIC and BIGNUMERIC: they have too few digits.

NUMERIC becomes DECIMAL(18, 3), too narrow for the sum of fingerprints. BIGNUMERIC becomes DECIMAL(38, 5), too coarse,
or 76 digits, and DuckDB ends at 38.
"""

from __future__ import annotations

import functools
import re

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.columns import BIGNUMERIC
from localcloud.untyped import Untyped


def apply(executor: Untyped) -> None:
    """Give NUMERIC its width, and BIGNUMERIC a type that DuckDB has."""
    from bqemulator.sql import parameters
    from bqemulator.storage import type_map

    type_map._BQ_TO_DUCKDB["BIGNUMERIC"] = BIGNUMERIC
    parameters._BQ_SCALAR_TO_DUCKDB["BIGNUMERIC"] = BIGNUMERIC
    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_widened(bq_sql: str, **kwargs: Untyped) -> str:
        return widen(await translate(bq_sql, **kwargs))

    executor.rewrite_and_translate_statement = translate_widened


def widen(translated: str) -> str:
    """Write the widths that the service has into DuckDB's SQL."""

    def widened(match: re.Match[str]) -> str:
        if not match.group().startswith("DECIMAL"):
            return match.group()
        return BIGNUMERIC if match.group().endswith("5)") else "DECIMAL(38, 9)"

    return re.sub(r"""'(?:[^']|'')*'|"[^"]*"|\bDECIMAL(?:\((?:18, 3|38, 5)\)|\b(?!\s*\())""", widened, translated)


def rewrite(tree: exp.Expression) -> bool:
    """Give `BIGNUMERIC '1.5'` the digits of the local cloud's own type; it would have as many as it is written with.

    `1.` and `.5` are FLOAT64, as `1.0` and `0.5` are; they would be NUMERIC.
    """
    # Each of both.
    return any([_is_big(tree), _write_digits(tree)])


def _is_big(tree: exp.Expression) -> bool:
    return any(node.to.is_type("bigdecimal") and isinstance(node.this, exp.Literal) for node in tree.find_all(exp.Cast))


def _write_digits(tree: exp.Expression) -> bool:
    numbers = [node for node in tree.find_all(exp.Literal) if not node.is_string]
    bare = {id(node): re.sub(r"\.(?![0-9])", ".0", re.sub(r"^\.", "0.", node.name)) for node in numbers}
    changed = [node for node in numbers if bare[id(node)] != node.name]
    for node in changed:
        node.set("this", bare[id(node)])
    return bool(changed)

"""The documented answers once more, of columns in place of the dates, times and numbers that are written there.

The types of columns are known later than those of literals, and for some functions DuckDB has another type, or another
answer, then.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.cloud import bigquery

from packages.localcloud.tests.bigquery.test_documented_answers import DOCUMENTED, answer, same

TYPED = re.compile(r"\b(?:DATE|TIMESTAMP|DATETIME|TIME|NUMERIC|BIGNUMERIC|JSON) '[^']*'")
COLUMNS: tuple[tuple[str, Any], ...] = tuple(
    pair for group in DOCUMENTED.values() for pair in group if TYPED.search(pair[0]) and "SELECT" not in pair[0]
)
"""Answers of expressions that have such values, and no query of their own, from which a column would not be seen."""


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


def of_columns(expression: str) -> str:
    """The same of columns, as an expression of its own."""
    values: list[str] = []

    def lift(found: re.Match[str]) -> str:
        values.append(found[0])
        return f"q.c{len(values) - 1}"

    lifted = TYPED.sub(lift, expression)
    columns = ", ".join(f"{value} AS c{place}" for place, value in enumerate(values))
    return f"(SELECT {lifted} FROM (SELECT {columns}) AS q)"


def test_columns_have_the_answers_of_literals(client: bigquery.Client) -> None:
    assert len(COLUMNS) > 300
    found = {expression: answer(client, of_columns(expression)) for expression, _ in COLUMNS}
    assert {e: (found[e], expected) for e, expected in COLUMNS if not same(found[e], expected)} == {}

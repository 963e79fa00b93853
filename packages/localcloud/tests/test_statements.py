"""Statements keep their form whatever names are in them."""

from __future__ import annotations

import sqlite3

import pytest

from localcloud.bigquery.types.columns import quoted
from localcloud.statements import statement


@pytest.mark.parametrize("name", ["plain", 'with "quotes"', "with 'those'", "a; DROP TABLE b", "a -- b", "a /* b */"])
def test_a_quoted_name_is_a_name(name):
    """Whatever stands in it."""
    connection = sqlite3.connect(":memory:")
    connection.execute(statement("CREATE TABLE {table} (n)", table=quoted(name)))
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [(name,)]


@pytest.mark.parametrize("part", ["a; DROP TABLE b", "a -- b", "a /* b", "a'", 'a"', "'a' || 'b", '"a" = "b'])
def test_a_part_that_is_not_whole_is_refused(part):
    """It would change the statement around it."""
    with pytest.raises(ValueError, match="Expected SQL whose quotes are closed"):
        statement("SELECT {part} FROM t", part=part)

"""Statements are parsed once, and each caller gets trees of its own."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import localcloud
from localcloud.bigquery.parsed_once import Trees
from tests.support.local_cloud import LOCALCLOUD_PYTHON

COUNTED = """
import sqlglot
from sqlglot import Dialect
from localcloud.bigquery import parsed_once

parsed, parse = [], Dialect.parse
Dialect.parse = lambda self, sql, **opts: parsed.append(sql) or parse(self, sql, **opts)
parsed_once.apply()
first, second = (sqlglot.parse_one("SELECT a", read="bigquery") for _ in range(2))
first.set("expressions", [])
print(parsed.count("SELECT a"), second.sql(), sqlglot.parse_one("SELECT a", read="bigquery").sql())
print(sqlglot.parse_one("SELECT a", read="duckdb").sql(), parsed.count("SELECT a"))
for _ in range(2):
    try:
        sqlglot.parse("SELECT (", read="bigquery")
    except sqlglot.errors.ParseError:
        print("refused")
"""


@dataclass
class Tree:
    """What `Trees` asks of sqlglot's trees."""

    names: list[str] = field(default_factory=list)

    def copy(self) -> Tree:
        """Return another of the same."""
        return Tree(list(self.names))


class Bigquery:
    """A dialect."""


class Duckdb:
    """Another."""


def test_a_caller_that_changes_its_tree_changes_no_other():
    trees, made = Trees(), Tree(["a"])
    trees.keep(Bigquery, "SELECT a", [made, None])
    made.names.append("changed by who parsed")
    first = trees.get(Bigquery, "SELECT a")
    assert first == [Tree(["a"]), None]
    first[0].names.append("changed by who asked")
    assert trees.get(Bigquery, "SELECT a") == [Tree(["a"]), None]


def test_dialects_do_not_share_trees():
    trees = Trees()
    trees.keep(Bigquery, "SELECT a", [Tree(["a"])])
    assert trees.get(Duckdb, "SELECT a") is None


def kept(trees: Trees, *statements: str) -> list[Any]:
    return [statement for statement in statements if trees.get(Bigquery, statement)]


def test_the_statements_asked_for_last_are_kept_as_far_as_they_fit():
    trees = Trees(most=10)
    for statement in ("aaaa", "bbbb"):
        trees.keep(Bigquery, statement, [Tree()])
    assert kept(trees, "bbbb", "aaaa") == ["bbbb", "aaaa"]
    trees.keep(Bigquery, "cccc", [Tree()])
    assert kept(trees, "aaaa", "bbbb", "cccc") == ["aaaa", "cccc"]
    trees.keep(Bigquery, "longer than all that is kept", [Tree()])
    assert kept(trees, "aaaa", "cccc", "longer than all that is kept") == ["aaaa", "cccc"]


def test_keeping_a_statement_twice_counts_it_once():
    trees = Trees(most=10)
    for _ in range(5):
        trees.keep(Bigquery, "aaaa", [Tree()])
    trees.keep(Bigquery, "bbbb", [Tree()])
    assert kept(trees, "aaaa", "bbbb") == ["aaaa", "bbbb"]


def test_sqlglot_parses_a_statement_once():
    """Of each dialect; what is no statement is refused each time."""
    environ = {**os.environ, "PYTHONPATH": str(Path(localcloud.__file__).parents[1])}
    done = subprocess.run([LOCALCLOUD_PYTHON, "-c", COUNTED], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["1 SELECT a SELECT a", "SELECT a 2", "refused", "refused"]

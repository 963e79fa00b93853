"""The type table: complete, as documented, and refusing by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.refusals import refuses
from trainer.contract.column_types import COLUMN_TYPES, WAYS_OUT
from trainer.contract.documents import Column
from trainer.errors import RequestError
from trainer.export.encoding import types

PAGE = Path(__file__).parents[4] / "docs" / "types.md"
# https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types, ARRAY and STRUCT aside.
BIGQUERY_TYPES = {
    "INT64",
    "FLOAT64",
    "BOOL",
    "STRING",
    "BYTES",
    "NUMERIC",
    "BIGNUMERIC",
    "DATE",
    "DATETIME",
    "TIME",
    "TIMESTAMP",
    "JSON",
    "GEOGRAPHY",
    "INTERVAL",
    "RANGE",
}


def column(name: str, type_: str, mode: str = "NULLABLE") -> Column:
    return Column(name=name, type=type_, mode=mode)


def table_of(heading: str) -> list[list[str]]:
    """Return the body of the first table below a heading of the page, a list of cells per row."""
    section = PAGE.read_text().split(f"## {heading}\n")[1]
    lines = section[section.index("|") :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][2:]


def test_the_page_has_every_refusal() -> None:
    refused = {name: way for name, way in WAYS_OUT.items() if name != "STRUCT"}
    assert {row[0].strip("`"): row[1] for row in table_of("What is refused") if row[0].startswith("`")} == refused


def test_every_type_of_bigquery_is_mapped_or_refused_with_a_way_out() -> None:
    assert {row.sql for row in COLUMN_TYPES.values()} | set(WAYS_OUT) == BIGQUERY_TYPES | {"STRUCT"}


@pytest.mark.parametrize(("legacy", "name"), [("INTEGER", "INT64"), ("FLOAT", "FLOAT64"), ("BOOLEAN", "BOOL")])
def test_both_names_of_a_type_mean_the_same(legacy: str, name: str) -> None:
    assert types.kind_of(legacy) is types.kind_of(name) is types.FeatureKind(COLUMN_TYPES[legacy].feature)


def test_all_columns_without_mapping_are_named_at_once_with_their_ways_out() -> None:
    with refuses(RequestError, found=("address (RECORD)", "stay (INTERVAL)"), expected="INT64"):
        types.require_mapped(
            [column("x", "INTEGER"), column("address", "RECORD"), column("stay", "INTERVAL")], "schema"
        )


def test_the_run_tables_own_names_are_refused() -> None:
    with pytest.raises(RequestError, match="part is taken"):
        types.require_mapped([column("part", "STRING")], "schema")


def test_as_many_columns_as_bigquery_takes_and_no_more() -> None:
    columns = [column(f"c{index}", "FLOAT") for index in range(9_996)]
    types.require_mapped(columns, "schema")
    with refuses(RequestError, found="9,997", expected="at most 9,996"):
        types.require_mapped([*columns, column("one_more", "FLOAT")], "schema")

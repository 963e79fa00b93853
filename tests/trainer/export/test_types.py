"""The type table: complete, and refusing by name."""

from __future__ import annotations

import pytest

from trainer.documents import Column
from trainer.errors import RequestError
from trainer.export import types


def column(name: str, type_: str) -> Column:
    return Column(name=name, type=type_, mode="NULLABLE")


def test_every_mapped_type_stands_in_the_documented_table() -> None:
    documented = {
        word.strip(" |`")
        for line in types.__doc__.splitlines()
        for word in line.split("|")[1:2]
        for word in word.split(",")
    }
    legacy = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN"}
    assert {legacy.get(name, name) for name in types.KINDS} <= documented


def test_all_columns_without_mapping_are_named_at_once() -> None:
    with pytest.raises(RequestError, match=r"address \(RECORD\), stay \(INTERVAL\)"):
        types.require_mapped(
            [column("x", "INTEGER"), column("address", "RECORD"), column("stay", "INTERVAL")], "schema"
        )


def test_the_run_tables_own_names_are_refused() -> None:
    with pytest.raises(RequestError, match="part is taken"):
        types.require_mapped([column("part", "STRING")], "schema")

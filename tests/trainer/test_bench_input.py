"""`make bench-input` on a few rows: every contender reads every example, and the table says what was measured."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bench.input import CONTENDERS, Contender, render, summarise
from bench.input_contender import Measured, read_once
from bench.input_files import Files, write_files

FLIGHTS, WIDE = 3001, 1025


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sets of files, small."""
    path = tmp_path_factory.mktemp("bench")
    try:
        write_files(path, FLIGHTS, WIDE)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return path


@pytest.mark.parametrize("contender", CONTENDERS.values(), ids=CONTENDERS)
def test_every_contender_reads_every_example(folder: Path, contender: Contender) -> None:
    files = Files.load(folder, contender.files)
    measured = read_once(dataclasses.replace(contender, rows=0), files)
    assert measured.rows == files.rows == (WIDE if "wide" in contender.files else FLIGHTS)
    assert measured.stall_s is not None


def test_a_contender_that_stops_early_has_no_end_to_wait_for(folder: Path) -> None:
    contender = dataclasses.replace(CONTENDERS["tutorial flights"], rows=1024)
    measured = read_once(contender, Files.load(folder, contender.files))
    assert measured == Measured(rows=1024, seconds=measured.seconds, stall_s=None)


def test_ratios_are_to_the_others_on_the_same_rows() -> None:
    rates = dict.fromkeys(CONTENDERS, 100) | {"tutorial flights": 10, "tutorial wide": 5, "ours wide": 40}
    rates |= {"helper flights": 20, "autotune flights": 50}
    readings = {
        name: [{"rows": rate, "seconds": 1, "stall_s": 0.05}, {"rows": rate, "seconds": 1, "stall_s": None}]
        for name, rate in rates.items()
    }
    rows = summarise(readings)
    found = {(row["contender"], row["data"], row["compression"], row["layout"]): row for row in rows}
    assert found["ours", "flights", "none", "columns"]["ratio_to_tutorial"] == 10
    assert found["ours", "flights", "none", "pre-batched"]["ratio_to_helper"] == 5
    assert found["ours", "flights", "none", "columns"]["ratio_to_autotune"] == 2
    assert found["ours", "flights", "GZIP", "columns"]["ratio_to_tutorial"] == 1
    assert found["ours", "wide", "none", "vector"]["ratio_to_tutorial"] == 20
    assert found["ours", "flights", "none", "pre-batched"]["stall_s"] == 0.05
    assert "0 of 5 targets reached; 0 stalls of more than 0.1 s" in render(rows)

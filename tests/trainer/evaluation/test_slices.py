"""Slices by one column and by two, and groups of rows."""

from __future__ import annotations

import numpy as np

from trainer.evaluation.slices import cut, number_groups

CARRIER = np.array([b"UA", b"UA", b"AA", b"UA", b""], object)
ORIGIN = np.array([b"EWR", b"JFK", b"EWR", b"EWR", b"JFK"], object)
COLUMNS = {"carrier": CARRIER, "origin": ORIGIN}


def test_rows_are_cut_by_one_column_and_by_two() -> None:
    found = cut(COLUMNS, ["carrier"], [("carrier", "origin")], 1)
    assert [(each.value, each.rows.tolist()) for each in found["carrier"]] == [
        ("UA", [0, 1, 3]),
        ("", [4]),
        ("AA", [2]),
    ]
    crossed = {each.value: each.rows.tolist() for each in found["carrier & origin"]}
    assert crossed == {"UA & EWR": [0, 3], "UA & JFK": [1], "AA & EWR": [2], " & JFK": [4]}
    assert all(each.column == name for name, cuts in found.items() for each in cuts)


def test_small_slices_are_left_out() -> None:
    found = cut(COLUMNS, ["carrier"], [("carrier", "origin")], 2)
    assert [each.value for each in found["carrier"]] == ["UA"]
    assert [each.value for each in found["carrier & origin"]] == ["UA & EWR"]
    assert cut(COLUMNS, ["carrier"], [], 6) == {"carrier": []}


def test_a_row_without_a_value_is_a_group_of_its_own() -> None:
    planes = np.array([b"N1", b"", b"N2", b"N1", b""], object)
    groups = number_groups(planes)
    assert groups[0] == groups[3]
    assert len(set(groups.tolist())) == 4
    assert sorted(set(groups.tolist())) == [0, 1, 2, 3]

"""JSON lines to score: counted piece by piece, and compared with what the version reads."""

from __future__ import annotations

import pytest

from retraining.core.scoring.lines import LineCount


@pytest.mark.parametrize(
    ("text", "lines", "first"),
    [
        (b"", 0, b""),
        (b"\n \r\n", 0, b""),
        (b"abc\n\ndefg\nhi", 3, b"abc"),
        (b"\nabcdefgh\r\n", 1, b"abcdefgh\r"),
    ],
    ids=["empty", "blank", "no end", "one"],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_lines_are_counted_in_pieces_of_any_size(text: bytes, lines: int, first: bytes, size: int) -> None:
    counted = LineCount()
    for start in range(0, len(text), size):
        counted.add(text[start : start + size])
    counted.end()
    assert (counted.lines, counted.first) == (lines, first)

"""`make coverage`: a file that tests hardly run has a reason in CONTRIBUTING.md, and no other file has one."""

from __future__ import annotations

import json
import runpy

import pytest

from tests.support.contracts import EXAMPLES

ROOT = EXAMPLES.parents[2]
SCRIPT = runpy.run_path(str(ROOT / ".ci" / "low_coverage.py"))
PAGE = """
| `before.py` | of another table |

## Coverage

| under 80 % | why |
|---|---|
| `trainer/low.py` | runs in jobs alone |
| `trainer/empty.py` |  |

## Words

| `after.py` | of another table |
"""


def test_the_table_is_the_sections_and_each_row_has_a_reason() -> None:
    """Rows without a reason count as none."""
    assert SCRIPT["read_table"](PAGE) == {"trainer/low.py"}
    with pytest.raises(SystemExit, match="no section 'Coverage'"):
        SCRIPT["read_table"]("## Words")


def test_this_page_has_the_section_and_its_files_are_there() -> None:
    """The script reads it; a file that was moved leaves no row behind."""
    for path in SCRIPT["read_table"]((ROOT / "CONTRIBUTING.md").read_text()):
        assert (ROOT / path).is_file(), path


@pytest.mark.parametrize(
    ("percent", "reasons", "words"),
    [
        pytest.param(80.0, set(), [], id="enough"),
        pytest.param(79.6, {"a.py"}, [], id="has its reason"),
        pytest.param(79.6, set(), ["a.py: 79.6 %. Expected 80 %: test it"], id="has none"),
        pytest.param(80.0, {"a.py"}, ["a.py: 80.0 %, and CONTRIBUTING.md says why"], id="needs none any more"),
        pytest.param(80.0, {"b.py"}, ["b.py: not measured, and CONTRIBUTING.md says why"], id="is gone"),
    ],
)
def test_files_and_reasons_are_compared(percent: float, reasons: set[str], words: list[str]) -> None:
    """By name, both ways."""
    report = json.dumps({"files": {"a.py": {"summary": {"percent_covered": percent}}}})
    found = list(SCRIPT["compare"](SCRIPT["read_report"](report), reasons))
    assert len(found) == len(words)
    for line, expected in zip(found, words, strict=True):
        assert line.startswith(expected)

"""The README is whole: every page in its table, and no picture that one waits for."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_every_page_is_in_the_table() -> None:
    """Each file of docs has its row."""
    rows = set(re.findall(r"^\| \[(docs/[\w-]+\.md)\]", README, re.MULTILINE))
    assert rows == {f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md")}


def test_pictures_are_small() -> None:
    """Nobody waits for them."""
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert pictures
    assert all((REPOSITORY / picture).stat().st_size < 150_000 for picture in pictures)

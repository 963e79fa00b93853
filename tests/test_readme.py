"""The README stays short and whole: every task in its picture, every page in its table, one figure of the disk."""

from __future__ import annotations

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PICTURE = re.findall(r"^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[0]
WORDS_A_MINUTE = 240
"""https://doi.org/10.1016/j.jml.2019.104047: silent reading of non-fiction, 238."""


def task_ids() -> set[str]:
    """Return the ids of the tasks that every model has."""
    found = set()
    for name in ("retrain.py", "monitor.py"):
        for node in ast.walk(ast.parse((REPOSITORY / "dags" / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "task_id" and isinstance(node.value, ast.Constant):
                found.add(str(node.value.value))
    return found - {"read_spec"}  # stands in for a model whose file is broken


def test_every_task_is_in_the_picture() -> None:
    """Also those that only some models have."""
    assert len(task_ids()) > 12
    assert not {task_id for task_id in task_ids() if not re.search(rf"[┤│] +{task_id} +[├│]", PICTURE)}


def test_the_picture_is_straight() -> None:
    """Every box is as wide at its top as at its bottom, and no line is wider than a terminal of 120 columns."""
    lines = PICTURE.splitlines()
    assert max(map(len, lines)) <= 120
    ends = {(number, place) for number, line in enumerate(lines) for place, sign in enumerate(line) if sign in "┌┐"}
    for number, place in ends:
        below = [line[place : place + 1] for line in lines[number + 1 :]]
        depth = next(index for index, sign in enumerate(below) if sign in ("└", "┘"))
        assert set(below[:depth]) <= set("│┤├"), f"line {number + 1}, column {place + 1}"


def test_every_page_is_in_the_table() -> None:
    """Each file of docs has its row."""
    rows = set(re.findall(r"^\| \[(docs/[\w-]+\.md)\]", README, re.MULTILINE))
    assert rows == {f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md")}


def test_it_is_read_in_five_minutes() -> None:
    """Prose and tables, without what a program printed or drew."""
    text = re.sub(r"^```.*?^```|\]\([^)]*\)", "", README, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"[A-Za-z][\w'-]*", text)) <= 5 * WORDS_A_MINUTE


def test_pictures_are_small() -> None:
    """Nobody waits for them."""
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert pictures
    assert all((REPOSITORY / picture).stat().st_size < 150_000 for picture in pictures)

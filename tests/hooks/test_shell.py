"""What commands print: text of documents and services, in which a terminal obeys nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from retraining.core.errors import SpecError
from retraining.core.printable import printable
from retraining.hooks.shell import print_answer

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
TITLE = "\x1b]0;owned\x07"
ATTACKS = {
    "clears the screen": "\x1b[2J\x1b[H",
    "sets the title": TITLE,
    "one byte for escape": "\x9b31m",
    "goes back": "passed\rFAILED",
    "deletes": "secret\x08\x08\x7f",
    "writes backwards": "\u202egnp.exe\u2066",
    "half a character": "\ud800",
    "line of its own": "fine\u2028passed    floor: it is",
    "null": "a\x00b",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_terminal_obeys_nothing_in_a_text(name, capsys) -> None:
    """Neither in a line nor in a message."""
    text = ATTACKS[name]

    def refuse() -> tuple[list[str], bool]:
        raise SpecError("m.yaml", text, "", text)

    assert print_answer(lambda: ([f"reason {text}", "next"], True)) == 0
    assert print_answer(refuse) == 1
    printed = capsys.readouterr()
    for shown in (printed.out, printed.err):
        assert shown.encode()
        assert all(letter == "\n" or letter.isprintable() for letter in shown)
    assert len(printed.out.splitlines()) == 2


def test_a_line_of_ours_is_one_line(capsys) -> None:
    """A document cannot add one that looks like ours; what people write stays as it is."""
    print_answer(lambda: (["reason no data\npassed    floor: auc 0.9", "Zürich, 東京, \N{PILE OF POO}, a\tb"], True))
    assert capsys.readouterr().out.splitlines() == [
        "reason no data passed    floor: auc 0.9",
        "Zürich, 東京, \N{PILE OF POO}, a b",
    ]


def test_a_message_of_several_lines_keeps_them() -> None:
    """An error of a file shows where."""
    assert printable("a\n  b\x1b[2J", keep_lines=True) == "a\n  b\N{REPLACEMENT CHARACTER}[2J"


def test_what_is_printed_goes_through_one_place() -> None:
    """Every print of the product names it; the two without a document's text have none to name."""
    own = ("region not checked:", "no model. Copy one")
    found = [
        f"{path.relative_to(PLUGINS)}:{node.lineno}"
        for path in PLUGINS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
        and "printable" not in (text := ast.unparse(node))
        and not any(words in text for words in own)
    ]
    assert found == []

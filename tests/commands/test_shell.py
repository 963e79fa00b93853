"""What all commands share: text in which a terminal obeys nothing, errors in four parts, and the exit status."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from google.api_core.exceptions import Forbidden

from retraining.__main__ import PROGRAM, main
from retraining.commands.shell import Shell, check_each, print_answer, print_error, print_warning, run_program
from retraining.core.errors import SpecError

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


def run(command: Callable[[], None]) -> int:
    """A program of one command."""
    program = click.Group("program", commands=[click.command("do")(command)])
    return run_program(program, ["do"], Shell())


@pytest.mark.parametrize("name", ATTACKS)
def test_a_terminal_obeys_nothing_in_a_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in a line nor in a message."""
    text = ATTACKS[name]

    def refuse() -> None:
        print_warning(f"warning {text}")
        raise SpecError("m.yaml", text, "", text)

    assert run(lambda: print_answer([f"reason {text}", "next"])) == 0
    assert run(refuse) == 1
    printed = capsys.readouterr()
    for shown in (printed.out, printed.err):
        assert shown.encode()
        assert all(letter == "\n" or letter.isprintable() for letter in shown)
    assert len(printed.out.splitlines()) == 2


def test_a_line_of_ours_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A document cannot add one that looks like ours; what people write stays as it is."""
    print_answer(["reason no data\npassed    floor: auc 0.9", "Zürich, 東京, \N{PILE OF POO}, a\tb"])
    assert capsys.readouterr().out.splitlines() == [
        "reason no data passed    floor: auc 0.9",
        "Zürich, 東京, \N{PILE OF POO}, a b",
    ]


def test_a_message_of_several_lines_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of a file shows where."""
    print_error("a\n  b\x1b[2J")
    assert capsys.readouterr().err == "a\n  b\N{REPLACEMENT CHARACTER}[2J\n"


def test_what_is_printed_goes_through_one_place() -> None:
    """Every print of the product stands in one file, and makes its text printable."""
    found = {
        (path.relative_to(PLUGINS / "retraining").as_posix(), "printable" in ast.unparse(node))
        for path in PLUGINS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write")
    }
    assert found == {("commands/shell.py", True)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "retraining: Missing command. Expected one of: models, runs, why, "),
        (("wy",), "retraining: No such command 'wy'"),
        (("why",), "retraining why: Missing argument 'MODEL'. Expected retraining why [OPTIONS] MODEL. "),
        (("preview", "late", "--asof", "x"), "retraining preview: No such option"),
        (("check-queries", "--region", "r"), "retraining check-queries: Missing option '--project'"),
        (("check-models", "--day", "today"), "retraining check-models: Invalid value for '--day': 'today'"),
    ],
)
def test_wrong_words_are_refused_in_four_parts(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, with the way out, and a status of their own."""
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(message)
    assert " Expected " in printed.err
    assert printed.err.endswith(" --help explains it.\n")
    assert printed.err.count("\n") == 1
    assert not printed.out


def test_an_error_of_googles_has_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    """What nobody foresaw comes out as it is."""

    def refused() -> None:
        raise Forbidden("no bigquery.jobs.create")

    def broken() -> None:
        raise LookupError("a bug")

    assert run(refused) == 1
    assert "Give the connection's account the role" in capsys.readouterr().err
    with pytest.raises(LookupError):
        run(broken)


def test_one_file_hides_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever its check does."""

    def check(path: Path) -> str:
        if path.stem == "refused":
            raise SpecError(path.name, "wrong", "right", "Correct it")
        if path.stem == "broken":
            raise RecursionError("too deep")
        return f"{path.stem}: ok"

    assert not check_each([Path("refused.yaml"), Path("broken.yaml"), Path("good.yaml")], check)
    printed = capsys.readouterr()
    assert printed.out == "good: ok\n"
    assert printed.err == "refused.yaml: wrong. Expected right. Correct it.\nbroken.yaml: RecursionError: too deep\n"


def test_ctrl_c_ends_it_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """With the status that shells know."""

    def waits() -> None:
        raise KeyboardInterrupt

    assert run(waits) == 130
    assert capsys.readouterr().err.strip() == ""


def test_it_is_a_program_that_needs_no_airflow() -> None:
    """Its import would make a folder of Airflow's own in the home of who types this."""
    words = [sys.executable, "-X", "importtime", "-m", "retraining", "-h"]
    done = subprocess.run(words, check=True, env={"PYTHONPATH": str(PLUGINS)}, capture_output=True, text=True)
    assert all(f"\n  {name} " in done.stdout for name in PROGRAM.commands)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "retraining.commands.preview" in imported
    assert "airflow" not in imported

"""Packages add commands to the program; none takes the place of its own, and a broken one breaks nothing else."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import click
import pytest

from retraining.__main__ import main
from retraining.commands import program


@click.command("greet")
def greet() -> None:
    """Greet whoever asks."""
    print("hello")


@pytest.fixture
def install(monkeypatch):
    """Bring entry points of the group."""

    def install_points(**values: str) -> None:
        points = [EntryPoint(name=name, value=value, group=program.GROUP) for name, value in values.items()]
        monkeypatch.setattr(program, "entry_points", lambda group: points if group == program.GROUP else [])

    return install_points


HERE = f"{__name__}:greet"


def test_an_installed_command_is_one_of_the_programs(install, capsys, monkeypatch) -> None:
    """It runs, and stands in the help and in what is expected of a misspelt word."""
    monkeypatch.setattr(program, "_load", lambda _: greet)
    install(greet=HERE)
    assert main(["greet"]) == 0
    assert capsys.readouterr().out == "hello\n"
    assert main(["--help"]) == 0
    assert "Greet whoever asks." in capsys.readouterr().out
    assert main(["gret"]) == 2
    assert "greet" in capsys.readouterr().err


def test_none_takes_the_place_of_an_own_one(install, capsys) -> None:
    """Whatever a package calls its command."""
    install(doctor="no.such.module:doctor")
    assert main(["doctor", "--help"]) == 0
    assert "Usage: retraining doctor" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["no.such.module:greet", "json:loads", "json:no_such_name"])
def test_one_that_cannot_be_had_is_named_and_hides_no_other(install, capsys, value: str) -> None:
    """By its own name, with what is wrong; the other commands go on."""
    install(greet=value)
    assert main(["greet"]) == 1
    said = capsys.readouterr().err
    assert f"command greet: {value}" in said
    assert "Expected a command of click" in said
    assert main(["greet", "--whom", "me"]) == 1
    assert "Expected a command of click" in capsys.readouterr().err
    assert main(["doctor", "--help"]) == 0
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert "Cannot be loaded from the package" in listed
    assert "doctor" in listed

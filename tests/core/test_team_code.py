"""Functions of a team's own: found, looked at without running them, loaded, and whatever they do is one error."""

from __future__ import annotations

import hashlib
import sys
import time
from importlib.metadata import EntryPoint

import pytest

from retraining.core import team_code
from retraining.core.errors import SpecError
from retraining.core.team_code import Place
from tests.support.refusals import refuses

GOOD = """
from dataclasses import dataclass


@dataclass
class Answer:
    passes: "bool"


def gate(run):
    return Answer(True).passes, "fine"
"""


@pytest.fixture
def place(tmp_path):
    """A folder of gates."""
    (tmp_path / "gates" / "of").mkdir(parents=True)
    return Place(folder=tmp_path / "gates", group="retraining.gates")


def write(place, text, path="late.py"):
    (place.folder / path).write_text(text, encoding="utf-8")


def test_a_function_is_loaded_with_the_digest_of_its_file(place):
    write(place, GOOD, "of/late.py")
    team_code.look("of/late.py:gate", "late.yaml", place)
    found = team_code.load("of/late.py:gate", "late.yaml", place)
    assert found.call(None) == (True, "fine")
    assert found.sha256 == hashlib.sha256(GOOD.encode()).hexdigest()
    assert found.package is None


def test_a_file_that_changed_is_another_one(place):
    write(place, GOOD)
    before = team_code.load("late.py:gate", "late.yaml", place)
    write(place, GOOD.replace("True", "False"))
    now = team_code.load("late.py:gate", "late.yaml", place)
    assert (before.call(None)[0], now.call(None)[0]) == (True, False)
    assert before.sha256 != now.sha256


@pytest.mark.parametrize(
    ("text", "function", "found"),
    [
        (GOOD, "lat.py:gate", "no file 'lat.py'"),
        (GOOD, "late.py:gat", "no function 'gat' in it"),
        ("def gate(:", "late.py:gate", "it is no Python: SyntaxError"),
        (
            "import no_such_package\ndef gate(run): ...",
            "late.py:gate",
            "no_such_package, which is not installed",
        ),
        ("from . import other\ndef gate(run): ...", "late.py:gate", "it imports ."),
        ("gate = 1", "late.py:gate", "no function 'gate'"),
        (GOOD, "gate", "no 'gate'"),
    ],
    ids=["no file", "no function", "no Python", "not installed", "its folder", "no def", "no entry point"],
)
def test_what_can_be_seen_without_running_it_is_seen_when_files_are_parsed(place, text, function, found):
    write(place, text)
    for use in (team_code.look, team_code.load):
        with refuses(SpecError, where="late.yaml", found=found):
            use(function, "late.yaml", place)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("raise ValueError('no such day')", "it cannot be imported: ValueError: no such day"),
        ("import sys; sys.exit(3)", "it cannot be imported: RuntimeError: it ended the program: SystemExit: 3"),
        ("import json.no_such_module", "it cannot be imported: ModuleNotFoundError"),
        ("del gate", "gate is NoneType"),
        ("gate = 5", "gate is int"),
        ("while True: pass", "it cannot be imported: OutOfTimeError: not done within 0.2 seconds"),
    ],
    ids=["raises", "ends the program", "a missing module", "deletes it", "replaces it", "never ends"],
)
def test_what_its_import_does_is_one_error_and_no_parse_runs_it(place, statement, found, monkeypatch):
    if "while" in statement:
        statement = "import time; time.sleep(20)"
        monkeypatch.setattr(team_code, "LOAD_S", 0.2)
    write(place, f"def gate(run):\n    return True, 'fine'\n{statement}\n")
    started = time.monotonic()
    team_code.look("late.py:gate", "late.yaml", place)
    with refuses(SpecError, where="late.yaml, late.py", found=found):
        team_code.load("late.py:gate", "late.yaml", place)
    assert time.monotonic() - started < 10


def test_a_file_outside_the_folder_is_refused(place, tmp_path):
    (tmp_path / "other.py").write_text(GOOD)
    (place.folder / "link.py").symlink_to(tmp_path / "other.py")
    with refuses(SpecError, where="late.yaml", found="leads outside"):
        team_code.look("link.py:gate", "late.yaml", place)


@pytest.fixture
def install(monkeypatch):
    """Bring entry points of the group."""

    def install_points(**values):
        points = [EntryPoint(name=name, value=value, group="retraining.gates") for name, value in values.items()]
        monkeypatch.setattr(team_code, "entry_points", lambda group: points if group == "retraining.gates" else [])

    return install_points


def test_an_installed_package_brings_one_by_an_entry_point(place, install, tmp_path, monkeypatch):
    (tmp_path / "packages" / "our_gates").mkdir(parents=True)
    (tmp_path / "packages" / "our_gates" / "__init__.py").write_text("")
    file = tmp_path / "packages" / "our_gates" / "late.py"
    file.write_text(GOOD)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    install(no_loss="our_gates.late:gate")
    team_code.look("no_loss", "late.yaml", place)
    assert "our_gates.late" not in sys.modules
    found = team_code.load("no_loss", "late.yaml", place)
    assert found.call(None) == (True, "fine")
    assert found.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("value", ["no.such.module:gate", "json:no_such_name", "json:__all__"])
def test_an_entry_point_that_cannot_be_had_is_named(place, install, value):
    install(no_loss=value)
    with refuses(SpecError, where=("late.yaml", value)):
        team_code.load("no_loss", "late.yaml", place)


def test_the_installed_ones_are_named_where_none_is_meant(place, install):
    install(no_loss="json:loads")
    with refuses(
        SpecError, found="no 'no_los'", expected="retraining.gates (no_loss)", way_out="Did you mean 'no_loss'"
    ):
        team_code.look("no_los", "late.yaml", place)

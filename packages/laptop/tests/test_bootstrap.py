"""`retraining demo` up to the point where the story begins: what it refuses, what it makes, what it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from retraining import __version__
from retraining.commands.shell import Shell, run_program
from retraining.core.errors import SettingsError
from retraining.core.team_repository import render_repository
from retraining_laptop.bootstrap import command, environments
from retraining_laptop.bootstrap.environments import make_environments

REAL_POPEN = subprocess.Popen


class Pip:
    """Stands in for venv and pip: an interpreter appears, commands are noted; one that fails, if asked."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.fails_at: str | None = None

    def __call__(self, words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        """Note a command."""
        self.commands.append(words)
        if self.fails_at and any(self.fails_at in word for word in words):
            return subprocess.CompletedProcess(words, 1, "", "ERROR: no matching distribution\n")
        if words[1:3] == ["-m", "venv"]:
            python = Path(words[3], "bin", "python")
            python.parent.mkdir(parents=True)
            python.write_text("")
        return subprocess.CompletedProcess(words, 0, "", "")

    def installed(self) -> list[str]:
        """Return what pip was told to install, a line for each call."""
        return [" ".join(words[6:]) for words in self.commands if "pip" in words]


@pytest.fixture
def pip(monkeypatch, tmp_path: Path) -> Pip:
    """No environment is made in a test of the quick suite; the locks are files of a few bytes."""
    pip = Pip()
    monkeypatch.setattr("retraining_laptop.bootstrap.environments.subprocess.run", pip)
    monkeypatch.setattr(environments, "LOCKS_PATH", tmp_path / "locks")
    (tmp_path / "locks").mkdir()
    for name in ("localcloud", "trainer"):
        (tmp_path / "locks" / f"{name}.txt").write_text(f"{name}-lock\n")
    return pip


@pytest.fixture
def started(monkeypatch) -> list[list[str]]:
    """What would be started in this process's place."""
    calls: list[list[str]] = []
    monkeypatch.setattr(
        "retraining_laptop.bootstrap.command.os.execve",
        lambda program, words, environ: calls.append([program, *words[1:], *environ]),
    )
    return calls


@pytest.fixture
def team(tmp_path: Path, monkeypatch) -> Path:
    """A team's repository as `retraining init` makes it; the working folder."""
    folder = tmp_path / "team"
    for name, text in render_repository("team", __version__).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("RETRAINING_INCLUDE", raising=False)
    return folder


def demo(*words: str) -> int:
    """Run the command; return the exit status."""
    return run_program(command.run_demo, list(words), Shell())


def option(words: list[str], name: str) -> str:
    """Return what an option was given."""
    return words[words.index(f"--{name}") + 1]


class TestEnvironments:
    """Made once, whole, and anew for another lock or version."""

    def test_by_hash_first_then_this_version(self, pip: Pip, tmp_path: Path) -> None:
        """What is locked by its hashes, and of this software nothing but itself."""
        os.close(make_environments(tmp_path / "made", "1.2.3", print))
        assert pip.installed() == [
            f"--no-deps --require-hashes -r {tmp_path}/locks/localcloud.txt",
            "--no-deps localcloud==1.2.3 retraining-laptop==1.2.3",
            f"--no-deps --require-hashes -r {tmp_path}/locks/trainer.txt",
            "--no-deps retraining-trainer==1.2.3",
        ]

    def test_once(self, pip: Pip, tmp_path: Path) -> None:
        """A second time nothing is run."""
        os.close(make_environments(tmp_path / "made", "1.2.3", print))
        before = len(pip.commands)
        os.close(make_environments(tmp_path / "made", "1.2.3", print))
        assert len(pip.commands) == before

    def test_anew_for_another_version_or_lock(self, pip: Pip, tmp_path: Path) -> None:
        """Only that one whose lock is another; both for a new version."""
        os.close(make_environments(tmp_path / "made", "1.2.3", print))
        (tmp_path / "locks" / "trainer.txt").write_text("another\n")
        pip.commands.clear()
        os.close(make_environments(tmp_path / "made", "1.2.3", print))
        assert pip.installed()[-1:] == ["--no-deps retraining-trainer==1.2.3"]
        assert len(pip.commands) == 3
        os.close(make_environments(tmp_path / "made", "1.2.4", print))
        assert pip.installed()[-1:] == ["--no-deps retraining-trainer==1.2.4"]

    @pytest.mark.parametrize("step", ["venv", "--require-hashes", "localcloud=="])
    def test_one_that_was_not_finished_is_made_anew(
        self, pip: Pip, tmp_path: Path, capsys, started, team, step
    ) -> None:
        """Nothing is started on it, and the message has the way out."""
        pip.fails_at = step
        assert demo() == 1
        said = capsys.readouterr().err
        assert "environment localcloud: ERROR: no matching distribution" in said
        assert "PIP_INDEX_URL" in said
        assert started == []
        pip.fails_at = None
        pip.commands.clear()
        assert demo() == 0
        assert len(pip.installed()) == 4

    def test_a_disk_without_room_is_named_before_anything_is_made(self, pip: Pip, capsys, monkeypatch, team) -> None:
        """With how much there is and how much is needed."""
        monkeypatch.setattr(environments, "NEEDED_DISK_BYTES", 2**62)
        assert demo() == 1
        assert "GB free on its disk" in capsys.readouterr().err
        assert pip.commands == []

    def test_nobody_makes_them_while_another_uses_them(self, pip: Pip, started, team: Path, capsys) -> None:
        """Neither anew for another lock, nor the same at once; a second one that needs nothing made may start."""
        assert demo() == 0  # holds them: this process does not become another one here
        assert demo() == 0
        (environments.LOCKS_PATH / "trainer.txt").write_text("another\n")
        made = len(pip.commands)
        assert demo() == 1
        assert "another `retraining demo` makes or uses its environments" in capsys.readouterr().err
        assert len(pip.commands) == made

    def test_they_are_held_by_what_this_process_becomes(self, pip: Pip, tmp_path: Path) -> None:
        """Until it ends."""
        (tmp_path / "made").mkdir()
        script = (
            "import os, sys; from pathlib import Path; from retraining_laptop.bootstrap import environments as e;"
            "e.ENVIRONMENTS = (); e.make_environments(Path(sys.argv[1]), '1', print);"
            "os.execv('/bin/cat', ['cat'])"
        )
        with REAL_POPEN(
            [sys.executable, "-c", script, str(tmp_path / "made")],
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as other:
            deadline = time.monotonic() + 60
            while "cat" not in Path(f"/proc/{other.pid}/cmdline").read_text().split("\0")[0]:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            with pytest.raises(SettingsError, match="another `retraining demo`"):
                make_environments(tmp_path / "made", "1.2.3", print)
        make_environments(tmp_path / "made", "1.2.3", print)
        assert pip.installed()


class TestCommand:
    """What is started: the repository's own model, day and data, or what was named."""

    def test_the_example_of_a_new_repository(self, pip: Pip, started, team: Path) -> None:
        """Needs no word."""
        assert demo() == 0
        ((program, *words),) = started
        assert program == str(team / ".demo/environments/localcloud/bin/python")
        assert words[:2] == ["-m", "retraining_laptop"]
        assert option(words, "model") == "late"
        assert option(words, "as-of") == "2026-01-16T03:00:00Z"
        assert option(words, "data") == str(team / "demo/data")
        assert option(words, "include") == str(team / "include")
        assert option(words, "trainer") == str(team / ".demo/environments/trainer/bin/python")
        assert option(words, "airflow") == sys.prefix
        assert "--once" not in words

    def test_nothing_of_a_real_environment_goes_along(self, pip: Pip, started, team: Path, monkeypatch) -> None:
        """Neither its stage and network, nor its database, nor whom it tells."""
        of_real = (
            "RETRAINING_STAGE",
            "RETRAINING_NETWORK",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
            "AIRFLOW_CONN_SLACK",
        )
        for name in of_real:
            monkeypatch.setenv(name, "real")
        assert demo() == 0
        assert not set(of_real) & set(started[0])
        assert "PATH" in started[0]

    def test_what_is_named_goes_before(self, pip: Pip, started, team: Path, tmp_path: Path) -> None:
        """Before what the repository says."""
        (team / "include/models/other.yaml").write_text((team / "include/models/late.yaml").read_text())
        (tmp_path / "rows").mkdir()
        named = ("other", "--as-of", "2026-01-20T00:00:00+01:00", "--data", str(tmp_path / "rows"), "--port", "81")
        assert demo(*named, "--once") == 0
        ((_, *words),) = started
        assert option(words, "model") == "other"
        assert option(words, "as-of") == "2026-01-20T00:00:00+01:00"
        assert option(words, "data") == str(tmp_path / "rows")
        assert option(words, "port") == "81"
        assert "--once" in words

    @pytest.mark.parametrize(
        ("change", "words", "said"),
        [
            (None, ["lat"], "no model 'lat'"),
            (None, ["--as-of", "2026-01-22"], "--as-of: '2026-01-22'"),
            (None, ["--as-of", "tonight"], "--as-of: 'tonight'"),
            (None, ["--data", "nowhere"], "nowhere: no such folder"),
            (None, ["--include", "nowhere"], "no folder models in 'nowhere'"),
            (lambda path: path.unlink(), [], "--as-of: none, and demo/demo.yaml has none"),
            (lambda path: path.write_text("modle: late\n"), [], "demo/demo.yaml, modle"),
            (lambda path: path.write_text("model: 3\n"), [], "demo/demo.yaml, model: 3"),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(
        self,
        pip: Pip,
        started,
        team: Path,
        capsys,
        change: Callable[[Path], None] | None,
        words: list[str],
        said: str,
    ) -> None:
        """Before an environment is made."""
        if change:
            change(team / "demo/demo.yaml")
        assert demo(*words) == 1
        assert said in capsys.readouterr().err
        assert started == []
        assert pip.commands == []

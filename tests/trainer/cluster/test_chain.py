"""`trainer.task chain`: stages of one machine, each when it is asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trainer import task
from trainer.cluster.chain import Chain, Stage
from trainer.errors import StorageError
from trainer.storage import Storage

PROGRAM = """
import sys, time, signal, pathlib
command, _, request = sys.argv[1:]
with open({done!r}, "a") as done:
    done.write(command + " ")
words = pathlib.Path(request).read_text()
if words == "wait":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pathlib.Path(request + ".waits").touch()
    time.sleep(60)
if words == "finish":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    pathlib.Path(request + ".waits").touch()
    time.sleep(60)
if words == "killed":
    import os
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(int(words))
"""


class Machine:
    """A machine with two stages, whose program does what the requests say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 0.0
        self.at: dict[float, Callable[[], None]] = {}
        program = folder / "program.py"
        program.write_text(PROGRAM.format(done=str(folder / "done")))
        self.chain = Chain(
            stages=[self.stage("export"), self.stage("train")],
            wait_s=10,
            storage=Storage(),
            program=(sys.executable, str(program)),
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    def stage(self, command: str) -> Stage:
        """Of which the request is a file."""
        return Stage(command=command, request_uri=str(self.folder / f"{command}.json"))

    def ask(self, command: str, words: str) -> None:
        """Write a request."""
        (self.folder / f"{command}.json").write_text(words)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        for second in [second for second in self.at if second <= self.now]:
            self.at.pop(second)()

    @property
    def done(self) -> list[str]:
        """The stages that ran."""
        return (self.folder / "done").read_text().split()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose first request is there."""
    machine = Machine(tmp_path)
    machine.ask("export", "0")
    return machine


def test_a_stage_begins_when_its_request_is_there(machine: Machine) -> None:
    machine.at[6.0] = lambda: machine.ask("train", "0")
    assert machine.chain.run() == 0
    assert machine.done == ["export", "train"]
    assert machine.now == 6.0


def test_a_machine_that_nobody_asks_ends_well(machine: Machine, caplog) -> None:
    machine.at[10.5] = lambda: machine.ask("train", "0")
    assert machine.chain.run() == 0
    assert machine.done == ["export"]
    assert "nobody asked for train within 10 s" in caplog.text


def test_a_storage_that_does_not_answer_for_a_while_ends_no_wait(machine: Machine, monkeypatch) -> None:
    exists = machine.chain.storage.exists

    def away(uri: str) -> bool:
        if machine.now < 6.0:
            raise StorageError(uri, "503", "an answer")
        return exists(uri)

    machine.ask("train", "0")
    monkeypatch.setattr(machine.chain.storage, "exists", away)
    assert machine.chain.run() == 0
    assert machine.done == ["export", "train"]


@pytest.mark.parametrize(("words", "code"), [("2", 2), ("1", 1), ("killed", 137)])
def test_what_a_stage_ends_with_is_what_the_job_ends_with(machine: Machine, words, code) -> None:
    machine.ask("export", words)
    machine.ask("train", "0")
    assert machine.chain.run() == code
    assert machine.done == ["export"]


@pytest.mark.parametrize("words", ["wait", "finish"])
def test_a_machine_that_is_taken_away_tells_its_stage_and_begins_no_other(machine: Machine, words) -> None:
    """Also where the stage came to its end just then."""
    machine.ask("export", words)
    machine.ask("train", "0")
    waits = machine.folder / "export.json.waits"

    def take() -> None:
        while not waits.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=take)
    thread.start()
    assert machine.chain.run() == 143
    thread.join()
    assert machine.done == ["export"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_machine_that_is_taken_away_while_it_waits_ends(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text("0")
    arguments = [f"--stage=export={tmp_path}/export.json", f"--stage=train={tmp_path}/train.json"]
    code = (
        "import sys, time; from trainer.cluster.chain import Chain, parse_chain; from trainer.storage import Storage; "
        "stages, wait = parse_chain(sys.argv[1:]); sleep = lambda s: (print('waits', flush=True), time.sleep(s)); "
        "program = (sys.executable, '-c', ''); "
        "sys.exit(Chain((stages[1], stages[0]), wait, Storage(), program, sleep=sleep).run())"
    )
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    process.terminate()
    assert process.wait(timeout=20) == 143


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "0 stages"),
        (["--stage=export"], "no <command>=<request>"),
        (["--stage=exprt=/x.json"], "no <command>=<request>"),
        (["--stage=chain=/x.json"], "no <command>=<request>"),
        (["--stage=export=/x.json", "--wait=-1"], "--wait=-1"),
        (["--stage=export=/x.json", "--wait=soon"], "soon"),
        (["--stage=export=/x.json", "--waiting=3"], "--waiting"),
    ],
)
def test_flags_that_cannot_be_read_are_named(arguments, words, capsys) -> None:
    """With exit code 2: another try reads the same."""
    assert task.main(["chain", *arguments]) == 2
    assert words in capsys.readouterr().err

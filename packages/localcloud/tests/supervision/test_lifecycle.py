"""`up`, `status`, `down`: one cloud per directory, data that survives, and no process that does not."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from localcloud.supervision import processes

PATIENCE_S = 20


def members(state_path: Path) -> list[int]:
    """Pids of all processes that have this state directory on their command line."""
    found = []
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = command_line.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(str(state_path).encode() in argument for argument in arguments):
            found.append(int(command_line.parent.name))
    return found


def wait_until_gone(state_path: Path) -> list[int]:
    """Wait until no process of the directory is left; give those that stay."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := members(state_path)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def ask(state_path: Path, script: str) -> str:
    """Run a script with the real clients in a process of its own, in the environment of this cloud."""
    values = json.loads((state_path / "environment.json").read_text())
    environ = {**os.environ, **values}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environ, text=True, capture_output=True, check=True, timeout=120).stdout.strip()


WRITE = """
from google.cloud import bigquery, storage
storage.Client().bucket("local-bucket").blob("kept.txt").upload_from_string("kept", content_type="text/x-kept")
client = bigquery.Client()
client.create_dataset("kept")
client.query_and_wait("CREATE TABLE kept.numbers AS SELECT n FROM UNNEST([1, 2, 3]) n")
client.query("SELECT 1", job_id="kept-job", job_retry=None).result()
print(storage.Client().bucket("local-bucket").get_blob("kept.txt").generation)
"""
READ = """
from google.api_core import exceptions
from google.cloud import bigquery, storage
blob = storage.Client().bucket("local-bucket").get_blob("kept.txt")
assert blob.download_as_text() == "kept" and blob.content_type == "text/x-kept"
try:
    storage.Client().bucket("local-bucket").blob("kept.txt").upload_from_string("new", if_generation_match=0)
    raise AssertionError("written over")
except exceptions.PreconditionFailed:
    pass
client = bigquery.Client()
assert sorted(row.n for row in client.query_and_wait("SELECT n FROM kept.numbers")) == [1, 2, 3]
assert client.get_table("kept.numbers").num_rows == 3
try:
    client.query("SELECT 2", job_id="kept-job", job_retry=None)
    raise AssertionError("a job id was used twice")
except exceptions.Conflict:
    pass
print(blob.generation)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_restart_keeps_everything(localcloud_commands, tmp_path, number):
    """Objects, tables, job ids, ports, the authority and the key are the same; nothing of the first one is left."""
    process = localcloud_commands.start_ready(tmp_path)
    before = localcloud_commands.run("env", "--json", "--state", str(tmp_path)).stdout
    (tmp_path / "environment.json").write_text(before)
    authority = (tmp_path / "authority.pem").read_bytes()
    generation = ask(tmp_path, WRITE)
    process.send_signal(number)
    process.wait(timeout=PATIENCE_S)
    assert wait_until_gone(tmp_path) == []
    localcloud_commands.start_ready(tmp_path)
    again = json.loads(localcloud_commands.run("env", "--json", "--state", str(tmp_path)).stdout)
    changed = "GOOGLE_AUTH_TOKEN_FOR_TESTING"  # one more, which ends later
    assert again == {**json.loads(before), changed: again[changed]}
    assert ask(tmp_path, READ) == generation
    assert (tmp_path / "authority.pem").read_bytes() == authority


def test_status_down_and_a_second_up(localcloud_commands, tmp_path):
    """A second `up` says who runs; `status` shows it; `down` ends it and waits; both say so when nothing runs."""
    process = localcloud_commands.start_ready(tmp_path)
    second = localcloud_commands.run("up", "--state", str(tmp_path), check=False)
    assert second.returncode == 2
    assert f"already running on this directory (pid {process.pid})" in second.stderr
    assert "localcloud down" in second.stderr
    status = localcloud_commands.run("status", "--state", str(tmp_path))
    assert f"running (pid {process.pid}), ready" in status.stdout
    assert status.stdout.count("listening") >= 5
    assert "stopped" in localcloud_commands.run("down", "--state", str(tmp_path)).stdout
    assert process.wait(timeout=PATIENCE_S) == 0
    assert members(tmp_path) == []
    assert "not running" in localcloud_commands.run("down", "--state", str(tmp_path)).stdout
    status = localcloud_commands.run("status", "--state", str(tmp_path), check=False)
    assert (status.returncode, "not running" in status.stdout) == (1, True)


@pytest.mark.long  # a killed one is in test_restart_keeps_everything too
def test_kill_of_the_supervisor_leaves_nothing(localcloud_commands, tmp_path):
    """SIGKILL of `up` ends every server."""
    process = localcloud_commands.start_ready(tmp_path)
    assert len(members(tmp_path)) >= 4
    process.kill()
    process.wait()
    assert wait_until_gone(tmp_path) == []


@pytest.mark.parametrize(
    ("delay_s", "number"),
    [
        (0.3, signal.SIGINT),
        (1.0, signal.SIGTERM),
        *(
            pytest.param(delay_s, number, marks=pytest.mark.long)
            for number, others in ((signal.SIGINT, [0, 0.1, 0.6, 1, 2]), (signal.SIGTERM, [0, 0.1, 0.3, 0.6, 2]))
            for delay_s in others
        ),
    ],
)
def test_stop_during_the_start_leaves_nothing(localcloud_commands, tmp_path, delay_s, number):
    """Ctrl-C at any moment: the exit is prompt and nothing is left."""
    process = localcloud_commands.start(tmp_path)
    time.sleep(delay_s)
    os.killpg(process.pid, number)  # as a terminal does: the whole foreground group
    process.communicate(timeout=PATIENCE_S)
    assert wait_until_gone(tmp_path) == []


def test_a_dead_server_ends_all_and_is_named(localcloud_commands, tmp_path):
    """With its name, how it ended, and the end of its log."""
    process = localcloud_commands.start_ready(tmp_path)
    (bigquery,) = [pid for pid in members(tmp_path) if b"bigquery.server" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(bigquery, signal.SIGKILL)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "localcloud: bigquery: this server ended by itself by signal SIGKILL" in output
    assert str(tmp_path / "server-logs" / "bigquery.log") in output
    assert wait_until_gone(tmp_path) == []


def server_pid(state_path: Path, name: str) -> int | None:
    """Pid of a server; None: it is not there."""
    for pid in members(state_path):
        with contextlib.suppress(OSError):
            if f"{name}.server".encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    return None


def kill_server(state_path: Path, name: str) -> None:
    """SIGKILL a server as soon as it is there."""
    deadline = time.monotonic() + PATIENCE_S
    while (pid := server_pid(state_path, name)) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert pid is not None, f"{name} is not there"
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists():  # until it is reaped: the next one has another pid
        time.sleep(0.02)


@pytest.mark.timeout(300)
def test_servers_that_die_are_started_again_with_what_they_had(localcloud_commands, tmp_path):
    """One after the other: clients that try again see nothing of it."""
    process = localcloud_commands.start_ready(tmp_path, "--restart")
    environment = localcloud_commands.run("env", "--json", "--state", str(tmp_path)).stdout
    (tmp_path / "environment.json").write_text(environment)
    generation = ask(tmp_path, WRITE)
    for name in ("bigquery", "vertex", "gateway"):
        kill_server(tmp_path, name)
        assert ask(tmp_path, READ) == generation, name
    assert process.poll() is None
    localcloud_commands.run("down", "--state", str(tmp_path))
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert output.count("ended by signal SIGKILL; it is started again") == 3
    assert wait_until_gone(tmp_path) == []


def test_a_server_that_always_dies_ends_all(localcloud_commands, tmp_path):
    """Six times within a minute; it is named as it is without the option."""
    process = localcloud_commands.start_ready(tmp_path, "--restart")
    deadline = time.monotonic() + 3 * PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        if (pid := server_pid(tmp_path, "bigquery")) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "localcloud: bigquery: this server ended by itself by signal SIGKILL" in output
    assert wait_until_gone(tmp_path) == []


def test_port_in_use(localcloud_commands, tmp_path):
    """A port that was asked for and is taken gets a message in four parts; nothing is left running."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = localcloud_commands.run("up", "--state", str(tmp_path), "--port", str(port), check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        f"localcloud: --port {port}: port {port} on 127.0.0.1 is in use. Expected a free port."
    )
    assert "leave --port out" in refused.stderr
    assert members(tmp_path) == []


@pytest.mark.long
def test_remembered_port_that_is_taken_is_replaced(localcloud_commands, tmp_path):
    """Only ports that were asked for are insisted on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (tmp_path / "state.json").write_text(json.dumps({"ports": {"gateway": port}}))
        localcloud_commands.start_ready(tmp_path)
        assert json.loads((tmp_path / "state.json").read_text())["ports"]["gateway"] != port


@pytest.mark.parametrize("command", ["env", "status"])
def test_commands_without_a_cloud(localcloud_commands, tmp_path, command):
    """Say that nothing was started there, and how to start it."""
    refused = localcloud_commands.run(command, "--state", str(tmp_path), check=False)
    assert refused.returncode == 2
    assert "Start it" in refused.stderr


def test_directory_that_cannot_be_made(localcloud_commands, tmp_path):
    """Is named, with what the system says."""
    (tmp_path / "file").write_text("")
    refused = localcloud_commands.run("up", "--state", str(tmp_path / "file" / "state"), check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"localcloud: {tmp_path / 'file' / 'state'}: not a directory. Expected")


@pytest.mark.long
def test_full_disk(localcloud_commands, tmp_path):
    """Is told before anything is started; no half-written file is left in the way."""
    script = f"ulimit -f 0; exec {localcloud_commands.python} -m localcloud up --state {tmp_path / 'state'}"
    refused = subprocess.run(
        ["sh", "-c", script], env=localcloud_commands.environ(), text=True, capture_output=True, check=False, timeout=60
    )
    assert refused.returncode == 2
    assert "file too large" in refused.stderr
    assert "Make room" in refused.stderr
    localcloud_commands.start_ready(tmp_path / "state")


def test_spawned_child_dies_with_its_parent(tmp_path):
    """Also when the parent is killed before it can do anything."""
    script = (
        "import os, sys, time; from pathlib import Path; from localcloud.supervision import processes;"
        f"print(processes.spawn(['sleep', '600'], log_path=Path({str(tmp_path / 'log')!r})).pid, flush=True);"
        "time.sleep(600)"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(processes.__file__).parents[2])}
    parent = subprocess.Popen([sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{child}").exists()


def test_stop_ends_the_whole_group(tmp_path):
    """A child that ignores SIGTERM, and its own child, are killed after the grace."""
    script = "trap '' TERM; sleep 600 & echo $!; wait; wait"
    child = processes.spawn(["sh", "-c", script], log_path=tmp_path / "log")
    deadline = time.monotonic() + PATIENCE_S
    while not (text := processes.tail(tmp_path / "log")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes.stop(child, grace_s=0.2) == -signal.SIGKILL
    while Path(f"/proc/{text}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{text}").exists()


def test_program_that_does_not_exist_is_named(tmp_path):
    """In the log of the child, with its reason."""
    child = processes.spawn(["/no/such/program"], log_path=tmp_path / "log")
    assert child.wait(timeout=PATIENCE_S) == 1
    assert processes.tail(tmp_path / "log") == "/no/such/program: No such file or directory"


REAP = """
import os, subprocess
from localcloud.supervision.processes import adopt_orphans, reap_orphans
adopt_orphans()
own = subprocess.Popen(["sh", "-c", "read line; exit 3"], stdin=subprocess.PIPE)
orphan = int(subprocess.run(["sh", "-c", "sleep 0.1 >/dev/null & echo $!"], capture_output=True).stdout)
os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)
reap_orphans({own.pid})
assert not os.path.exists(f"/proc/{orphan}"), "still a zombie"
own.stdin.close()
os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
reap_orphans({own.pid})
assert own.wait() == 3, "the exit code is lost"
"""


def test_an_adopted_process_that_ended_is_let_go():
    """And a child that somebody waits for keeps its exit code."""
    environ = {**os.environ, "PYTHONPATH": str(Path(processes.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", REAP], env=environ, text=True, capture_output=True, timeout=60)
    assert not done.stderr

"""Child processes that never outlive their parent.

In: an argument list. Out: a `subprocess.Popen` in a session (and so a process group) of its own, which the kernel
kills when its parent dies, even by SIGKILL. Ending one ends its whole group.

The kernel ties a child to the *thread* that started it: start children from a thread that lives as long as they should.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from pathlib import Path

from localcloud.errors import LocalCloudError

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

# Runs between fork and exec in a fresh interpreter instead of `preexec_fn`, which may deadlock in a process with
# threads. The parent may have died before the death signal was armed, so its pid is compared afterwards.
_ARM_AND_EXEC = (
    "import ctypes, os, sys\n"
    f"ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, int(sys.argv[2]))\n"
    "if os.getppid() != int(sys.argv[1]): sys.exit(1)\n"
    "try: os.execvp(sys.argv[3], sys.argv[3:])\n"
    "except OSError as error: sys.exit(f'{sys.argv[3]}: {error.strerror}')\n"
)


def spawn(
    args: Sequence[str | Path],
    *,
    log_path: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start a child in a process group of its own, tied to this thread's life.

    Args:
        args: program and arguments, run without a shell.
        log_path: file that its standard output and error are appended to.
        env: whole environment; default this process's.
        cwd: working directory; default this process's.
        death_signal: what the kernel sends to it when the calling thread or process is gone.

    Returns:
        The running child; `pid` is also its process group's id.
    """
    arm = [sys.executable, "-I", "-S", "-c", _ARM_AND_EXEC, str(os.getpid()), str(int(death_signal))]
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [*arm, *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes], *, grace_s: float = 5.0) -> int:
    """End a child's whole process group: SIGTERM, then SIGKILL after `grace_s`; give its exit code."""
    return stop_all([process], grace_s=grace_s)[0]


def stop_all(processes: Iterable[subprocess.Popen[bytes]], *, grace_s: float = 5.0) -> list[int]:
    """End several children's process groups at the same time; give their exit codes."""
    children = list(processes)
    for child in children:
        signal_group(child, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    for child in children:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=max(0.0, deadline - time.monotonic()))
    for child in children:
        signal_group(child, signal.SIGKILL)  # also what a child that ended in time left in its group
    return [child.wait() for child in children]


def signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a child's process group, if any of it is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies (so that it can end them)."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def reap_orphans(own: Container[int]) -> None:
    """Let adopted processes that ended go, podman's monitors for example: until then each is a zombie.

    Args:
        own: Children whose exit codes somebody here waits for.
    """
    with contextlib.suppress(ChildProcessError):  # no child left
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in own:
                return
            os.waitpid(ended.si_pid, 0)


def end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent (or the parent's thread that started it) is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))


def descendants(pid: int, *, spare: Collection[int] = ()) -> list[int]:
    """Return the pids of all living descendants of a process, parents first; without those to spare, and theirs."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended while we looked
            head, tail = stat.read_text().rsplit(")", 1)
            children.setdefault(int(tail.split()[1]), []).append(int(head.split(" ", 1)[0]))
    pids, queue = [], [pid]
    while queue:
        queue.extend(young := [child for child in children.get(queue.pop(0), []) if child not in spare])
        pids.extend(young)
    return pids


def kill_descendants(pid: int, *, spare: Collection[int] = ()) -> None:
    """SIGKILL everything that descends from a process, without those to spare and what descends from them."""
    for child in descendants(pid, spare=spare):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def kill_all_descendants() -> None:
    """SIGKILL everything that descends from this process, until nothing is left; it must have adopted its orphans.

    An orphan becomes a child of the process that adopted it, so "no child left" is "nobody left", also of processes
    that were started between two looks.
    """
    with contextlib.suppress(ChildProcessError):  # no child left
        while True:
            kill_descendants(os.getpid())
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.02)


def tail(path: Path, lines: int = 15) -> str:
    """Return the last lines of a log file ("" when there is none)."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 64 * 1024))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def is_port_free(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether a server could listen on this port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether something accepts connections on this port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def accepts_at(path: Path) -> bool:
    """Return whether something accepts connections on this unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(str(path)) == 0


def choose_ports(names: Iterable[str], remembered: Mapping[str, int]) -> dict[str, int]:
    """Return a port for each name: the remembered one when it is free, else a free one."""
    chosen: dict[str, int] = {}
    with contextlib.ExitStack() as held:
        for name in names:
            port = remembered.get(name)
            if port is None or port in chosen.values() or not is_port_free(port):
                probe = held.enter_context(socket.socket())  # held open so that no two names get the same one
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            chosen[name] = port
    return chosen


def require_free_port(port: int, host: str, *, option: str) -> int:
    """Return a port that was asked for by name.

    Raises:
        LocalCloudError: something listens there.
    """
    if not is_port_free(port, host):
        raise LocalCloudError(
            f"{option} {port}",
            found=f"port {port} on {host} is in use",
            expected="a free port",
            way_out=f"End what listens there (`ss -ltnp 'sport = :{port}'` names it), or leave {option} out",
        )
    return port

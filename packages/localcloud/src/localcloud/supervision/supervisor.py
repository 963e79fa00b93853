"""Starts the servers of a local cloud side by side, watches them, and leaves nothing behind.

In: a state directory and the wanted gateway address. Out: a running cloud until SIGTERM, SIGINT or the death of a
server, which may be started again instead (SIGUSR1: an empty one, at the same address); then every process that
descends from this one is ended. SIGKILL of this process ends them too (the kernel sends them the signal that
`processes.spawn` armed).
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from localcloud.access import credentials
from localcloud.access.certificates import Authority
from localcloud.calls import forget_calls
from localcloud.environment.config import remember_config, remembered_config
from localcloud.environment.variables import merged_environment
from localcloud.errors import LocalCloudError
from localcloud.services import servers
from localcloud.state import Settings, State
from localcloud.supervision import processes

READY_TIMEOUT_S = 120
STOP_GRACE_S = 8.0
MOST_RESTARTS = 5
RESTARTS_WITHIN_S = 60.0
_IMPORT_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Server:
    """One server of the local cloud: how it is started, and which of its sockets must answer before it is ready."""

    name: str
    args: list[str]
    sockets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Running:
    server: Server
    process: subprocess.Popen[bytes]
    log_path: Path


class _Stopped(Exception):
    """Somebody asked us to stop."""


class _Reset(Exception):
    """Somebody asked us to forget everything and go on."""


def prepare(
    state: State,
    *,
    gateway_host: str,
    gateway_port: int | None,
    other_projects: Sequence[str],
    config_path: Path | None,
) -> Settings:
    """Make what a start needs: ports, the authority, the service account, the bucket; and write state.json.

    Raises:
        LocalCloudError: the asked port is in use, or the config cannot be read.
    """
    config = remember_config(state, config_path) if config_path else remembered_config(state)
    remembered = state.read_settings() if state.settings_path.exists() else Settings()
    ports = processes.choose_ports(["gateway"], remembered.ports)
    if gateway_port is not None:
        ports["gateway"] = processes.require_free_port(gateway_port, gateway_host, option="--port")
    others = dict.fromkeys([*remembered.other_projects, *other_projects])  # in the order they came: it numbers them
    others.pop(remembered.project, None)
    settings = replace(
        remembered,
        bucket=config.bucket or remembered.bucket,
        ports=ports,
        gateway_host=gateway_host,
        other_projects=list(others),
    )
    state.token_key()
    Authority(state)
    credentials.load_or_create(state)
    _make_folders(state, settings)
    state.write_settings(settings)
    return settings


def _make_folders(state: State, settings: Settings) -> None:
    forget_calls(state.path)
    for server in plan_servers(state):
        for name in server.sockets:
            state.socket_path(name).unlink(missing_ok=True)  # what a killed one left would seem to be there
    (state.directory("storage") / settings.bucket).mkdir(exist_ok=True)  # a bucket is a directory there
    for directory in ("gcloud", "vertex", "bigquery"):
        state.directory(directory)


def plan_servers(state: State) -> list[Server]:
    """Say which servers make up the cloud."""
    return [
        Server(
            name=each.name, args=[sys.executable, "-m", each.module, "--state", str(state.path)], sockets=each.sockets
        )
        for each in servers()
    ]


def run_cloud(
    state: State,
    *,
    gateway_host: str,
    gateway_port: int | None,
    say: Callable[[str], None],
    other_projects: Sequence[str] = (),
    config_path: Path | None = None,
    restart: bool = False,
) -> int:
    """Run a local cloud in the foreground; give the exit code.

    Args:
        state: its state directory, owned until the end.
        gateway_host: address that the gateway listens on; everything else listens on unix sockets of its owner.
        gateway_port: port of the gateway; None for the remembered or a free one.
        say: takes one line per server that is ready, then `ready`.
        other_projects: projects that exist beside the main one and those named before.
        config_path: file of `localcloud.environment.config`; None for the one of the last start.
        restart: whether a server that ends by itself is started again, while the others go on.

    Raises:
        LocalCloudError: it cannot start, or a server ended by itself; with `restart`, too often.
    """
    with _signals() as wakeup, state.hold_lock():  # who reads the pid there may send it one of them
        processes.adopt_orphans()
        state.ready_path.unlink(missing_ok=True)
        settings = prepare(
            state,
            gateway_host=gateway_host,
            gateway_port=gateway_port,
            other_projects=other_projects,
            config_path=config_path,
        )
        while True:
            try:
                _run_servers(state, settings, wakeup, say, restart=restart)
            except _Stopped:
                return 0
            except _Reset:
                say("reset     everything that clients made is removed")
                state.clear()
                _make_folders(state, settings)


def _run_servers(
    state: State, settings: Settings, wakeup: _Wakeup, say: Callable[[str], None], *, restart: bool
) -> None:
    """Start all servers and watch them; all have ended when this raises.

    Raises:
        _Stopped: by SIGTERM, SIGINT or SIGHUP.
        _Reset: by SIGUSR1.
        LocalCloudError: one is not ready in time, or ended by itself; with `restart`, too often.
    """
    running: list[_Running] = []
    deaths: list[float] = []
    try:
        running = _start(state)
        _wait_until_ready(running, state, settings, wakeup, say)
        state.ready_path.touch()
        say(f"ready     {state.path} (pid {os.getpid()})")
        while True:
            deaths = [death for death in deaths if time.monotonic() - death < RESTARTS_WITHIN_S]
            if restart and len(deaths) < MOST_RESTARTS:
                deaths += _start_again(running, state, say)
            else:
                _check_alive(running)
            processes.reap_orphans({each.process.pid for each in running})
            wakeup.wait(1.0)
    finally:
        state.ready_path.unlink(missing_ok=True)
        processes.stop_all([each.process for each in running], grace_s=STOP_GRACE_S)
        processes.kill_descendants(os.getpid())


def _start(state: State) -> list[_Running]:
    running = []
    for server in plan_servers(state):
        state.server_log_path(server.name).unlink(missing_ok=True)
        running.append(_spawn(state, server))
    return running


def _spawn(state: State, server: Server) -> _Running:
    env = merged_environment(state.path)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_IMPORT_ROOT), env.get("PYTHONPATH"))))
    env["PYTHONUNBUFFERED"] = "1"
    log_path = state.server_log_path(server.name)
    process = processes.spawn(server.args, log_path=log_path, env=env)
    return _Running(server=server, process=process, log_path=log_path)


def _start_again(running: list[_Running], state: State, say: Callable[[str], None]) -> list[float]:
    """Start the servers anew that ended by themselves, with what they left on disk; return when, one time for each."""
    deaths = []
    for number, each in enumerate(running):
        if each.process.poll() is None:
            continue
        say(f"{each.server.name:<9} ended {_how_it_ended(each.process)}; it is started again")
        processes.stop(each.process, grace_s=0.0)  # what it left in its group
        for name in each.server.sockets:
            state.socket_path(name).unlink(missing_ok=True)
        running[number] = _spawn(state, each.server)
        deaths.append(time.monotonic())
    return deaths


def _wait_until_ready(
    running: list[_Running], state: State, settings: Settings, wakeup: _Wakeup, say: Callable[[str], None]
) -> None:
    begun = time.monotonic()
    waiting = list(running)
    while waiting:
        _check_alive(running)
        for each in list(waiting):
            if _is_ready(each.server, state, settings):
                address = f" 127.0.0.1:{settings.ports['gateway']}" if each.server.name == "gateway" else ""
                say(f"{each.server.name:<9}{address} ({time.monotonic() - begun:.1f} s)")
                waiting.remove(each)
        if time.monotonic() - begun > READY_TIMEOUT_S:
            late = waiting[0]
            raise LocalCloudError(
                late.server.name,
                found=f"not ready after {READY_TIMEOUT_S} s",
                expected="its sockets to accept connections",
                way_out=f"The end of its log ({late.log_path}):\n{processes.tail(late.log_path)}",
            )
        if waiting:
            wakeup.wait(0.05)


def _is_ready(server: Server, state: State, settings: Settings) -> bool:
    if server.name == "gateway" and not processes.accepts(settings.ports["gateway"]):
        return False
    return all(processes.accepts_at(state.socket_path(name)) for name in server.sockets)


def _check_alive(running: list[_Running]) -> None:
    for each in running:
        if each.process.poll() is not None:
            raise LocalCloudError(
                each.server.name,
                found=f"this server ended by itself {_how_it_ended(each.process)}",
                expected="it to run until the local cloud is stopped",
                way_out=f"The end of its log ({each.log_path}):\n{processes.tail(each.log_path)}",
            )


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"with exit code {code}" if code >= 0 else f"by signal {signal.Signals(-code).name}"


class _Wakeup:
    """Waits that a signal ends at once."""

    def __init__(self, descriptor: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(descriptor, selectors.EVENT_READ)
        self._descriptor = descriptor

    def wait(self, timeout_s: float) -> None:
        """Wait.

        Raises:
            _Stopped: SIGTERM, SIGINT or SIGHUP came.
            _Reset: SIGUSR1 came.
        """
        if self._selector.select(timeout_s):
            received = set(os.read(self._descriptor, 64))
            if {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} & received:
                raise _Stopped
            if signal.SIGUSR1 in received:
                raise _Reset


@contextmanager
def _signals() -> Iterator[_Wakeup]:
    """Turn SIGTERM, SIGINT and SIGHUP into `_Stopped`, SIGUSR1 into `_Reset`, at the next wait, never in between."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    previous_fd = signal.set_wakeup_fd(write_end)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
    previous = {number: signal.signal(number, lambda *_: None) for number in numbers}
    try:
        yield _Wakeup(read_end)
    finally:
        signal.set_wakeup_fd(previous_fd)
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(read_end)
        os.close(write_end)

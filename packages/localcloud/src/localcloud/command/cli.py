"""The commands of the local cloud: up, env, exec, token, seed, reset, status, calls, faults, down.

In: command-line arguments. Out: lines on standard output, an exit code, and messages in four parts on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from localcloud.access.bearer import Bearers
from localcloud.access.credentials import ACCOUNT_EMAIL
from localcloud.calls import FILE_NAME, CallCounts
from localcloud.command.fault_client import FaultClient
from localcloud.environment.variables import client_environment, merged_environment, render_exports
from localcloud.errors import LocalCloudError
from localcloud.faults import ACTION_DEFAULTS, ActionKind, FaultError, check
from localcloud.services import servers
from localcloud.state import State, state_path_from
from localcloud.supervision import processes

STOP_TIMEOUT_S = 30
RESET_TIMEOUT_S = 150
MEMORY_PATH = Path("/dev") / "shm"
"""A folder of random name is made in it, its owner's alone."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; give its exit code (2: refused, 1: not running)."""
    options = _parser().parse_args(arguments)
    options.state = State((options.state or state_path_from(os.environ)).absolute())
    try:
        code: int = options.command(options)
    except (LocalCloudError, FaultError) as error:
        return _refuse(error)
    except OSError as error:  # a full disk, a directory that may not be written
        return _refuse(
            LocalCloudError(
                str(error.filename or options.state.path),
                found=(error.strerror or str(error)).lower(),
                expected=f"to read and write files under {options.state.path}",
                way_out="Make room or rights there, or name another directory with --state",
            )
        )
    return code


def _refuse(error: Exception) -> int:
    print(f"localcloud: {error}", file=sys.stderr, flush=True)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="localcloud", description="A Google Cloud on loopback, for development and tests."
    )
    commands = parser.add_subparsers(required=True, metavar="{up,env,exec,token,seed,reset,status,calls,faults,down}")

    def add(name: str, command: object, about: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=about, description=about)
        sub.add_argument("--state", type=Path, help="state directory (default: LOCALCLOUD_STATE or build/localcloud)")
        sub.set_defaults(command=command)
        return sub

    up = add("up", _up, "Start every server in the foreground; Ctrl-C ends them all.")
    up.add_argument("--host", default="127.0.0.1", help="address the gateway listens on (default: %(default)s)")
    up.add_argument("--port", type=int, help="port of the gateway (default: the one used before, else a free one)")
    up.add_argument("--project", action="append", default=[], help="a further project that exists; may be given again")
    up.add_argument("--config", type=Path, help="file with bucket, variables and images (default: that of the last up)")
    up.add_argument("--temporary", action="store_true", help="a fresh state directory in memory, gone at the end")
    up.add_argument("--restart", action="store_true", help="start a server again that ends by itself")
    env = add("env", _env, "Print the environment that points Google's clients here, for the shell's eval.")
    env.add_argument("--json", action="store_true", help="as a JSON object; an empty value means: unset")
    env.add_argument("--gateway-host", help="name under which the client reaches the gateway (in containers)")
    execute = add("exec", _exec, "Run a command in the environment that points Google's clients here.")
    execute.add_argument("words", nargs="+", metavar="WORD", help="the command; put -- before it")
    token = add("token", _token, "Print an access token, for curl: it lasts an hour.")
    token.add_argument("--account", default=ACCOUNT_EMAIL, help="whose (default: %(default)s)")
    seed = add("seed", _seed, "Load a folder into a running local cloud: bigquery/DATASET/TABLE.csv, storage/BUCKET/….")
    seed.add_argument("folder", type=Path, help="what to load; a table that is there from the same file is left alone")
    add("reset", _reset, "Remove all that clients made from a running local cloud; its address and keys stay.")
    add("status", _status, "Print the servers, their addresses and logs; exit code 0 only when all is ready.")
    calls = add("calls", _calls, "Print which calls the running local cloud answered since it was started or reset.")
    calls.add_argument("--minutes", action="store_true", help="a row for each minute (UTC) too")
    calls.add_argument("--json", action="store_true", help="a line of JSON for each row")
    _add_faults(add("faults", _list_faults, "List, add and remove the faults of a running local cloud."))
    add("down", _down, "Stop the local cloud of this state directory and wait until it is gone.")
    return parser


def _add_faults(faults: argparse.ArgumentParser) -> None:
    commands = faults.add_subparsers(metavar="{list,add,remove}")
    listed = commands.add_parser("list", help="print those in force, a line of JSON each (also without a word)")
    listed.set_defaults(command=_list_faults)
    added = commands.add_parser("add", help="put one in force and print it")
    added.set_defaults(command=_add_fault)
    added.add_argument("target", help="shell pattern of an event, or of an event, a space and what it concerns")
    added.add_argument("kind", choices=get_args(ActionKind), help="what happens then")
    added.add_argument("action", nargs="*", metavar="KEY=VALUE", help=f"one of {', '.join(ACTION_DEFAULTS)}")
    added.add_argument("--count", type=int, default=1, help="how often (default: %(default)s; 0: until it is removed)")
    added.add_argument("--skip", type=int, default=0, help="events that pass first (default: %(default)s)")
    added.add_argument("--filter", default="", help="of Job.Start and Replica.Run: which jobs")
    removed = commands.add_parser("remove", help="take back those with these numbers, or all")
    removed.set_defaults(command=_remove_faults)
    removed.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")
    for command in (listed, added, removed):
        command.add_argument("--state", type=Path, default=argparse.SUPPRESS, help="as of faults")


def _up(options: argparse.Namespace) -> int:
    from localcloud.supervision import supervisor  # other commands need none of what it imports

    with _state_of(options) as state:
        return supervisor.run_cloud(
            state,
            gateway_host=options.host,
            gateway_port=options.port,
            other_projects=options.project,
            config_path=options.config,
            say=lambda line: print(line, flush=True),
            restart=options.restart,
        )


@contextlib.contextmanager
def _state_of(options: argparse.Namespace) -> Iterator[State]:
    """Give the state directory: the one that is named, or one that lasts as long as this."""
    if not options.temporary:
        yield options.state
        return
    with tempfile.TemporaryDirectory(prefix="localcloud-", dir=MEMORY_PATH if MEMORY_PATH.is_dir() else None) as path:
        print(f"export LOCALCLOUD_STATE={shlex.quote(path)}", flush=True)
        yield State(Path(path))


def _env(options: argparse.Namespace) -> int:
    environment = client_environment(options.state.path, gateway_host=options.gateway_host)
    print(json.dumps(environment, indent=2) if options.json else render_exports(environment))
    return 0


def _exec(options: argparse.Namespace) -> int:
    options.state.require_running()
    environment = merged_environment(options.state.path)
    program = shutil.which(options.words[0], path=environment.get("PATH"))
    if program is None:
        raise LocalCloudError(
            f"exec {options.words[0]}",
            found="no such program",
            expected="one on the PATH, or a path of one",
            way_out="Install it, or name its path",
        )
    os.execve(program, options.words, environment)  # noqa: S606 - the person's own command


def _token(options: argparse.Namespace) -> int:
    options.state.read_settings()  # refuses where no local cloud was started
    print(Bearers(options.state).issue(options.account))
    return 0


def _seed(options: argparse.Namespace) -> int:
    from localcloud.command.seed import read_folder, seed  # other commands need none of what it imports

    options.state.require_running()
    found = read_folder(options.folder)
    os.environ.update(client_environment(options.state.path))
    for line in seed(found, options.state.read_settings()):
        print(line, flush=True)
    return 0


def _reset(options: argparse.Namespace) -> int:
    state: State = options.state
    pid = state.running_pid()
    if pid is None:
        state.require_running()
        return 1
    before = _ready_since(state)
    os.kill(pid, signal.SIGUSR1)
    deadline = time.monotonic() + RESET_TIMEOUT_S
    while _ready_since(state) in (None, before):
        if state.running_pid() != pid or time.monotonic() > deadline:
            raise LocalCloudError(
                str(state.path),
                found=f"pid {pid} is not ready again",
                expected=f"it within {RESET_TIMEOUT_S} s",
                way_out=f"Look at {state.directory('server-logs')}, and start it again with `localcloud up`",
            )
        time.sleep(0.05)
    print(f"{state.path}: empty")
    return 0


def _ready_since(state: State) -> int | None:
    """Return when the running `up` became ready, in nanoseconds; None while it is not."""
    try:
        return state.ready_path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _status(options: argparse.Namespace) -> int:
    settings = options.state.read_settings()
    pid = options.state.running_pid()
    ready = pid is not None and options.state.ready_path.exists()
    print(f"{options.state.path}: {f'running (pid {pid})' if pid else 'not running'}{', ready' if ready else ''}")
    port = settings.ports["gateway"]
    rows = [("gateway", f"127.0.0.1:{port}", processes.accepts(port), "gateway")]
    for server in servers():
        for name in server.sockets:
            path = options.state.socket_path(name)
            rows.append((name, path.name, processes.accepts_at(path), server.name))
    for name, address, answers, server_name in rows:
        log_path = options.state.server_log_path(server_name)
        print(f"  {name:<14} {address:<16} {'listening' if answers else '-':<10} {log_path}")
    return 0 if ready else 1


def _calls(options: argparse.Namespace) -> int:
    options.state.require_running()
    counts = CallCounts(options.state.path / FILE_NAME)
    rows = counts.read(by_minute=options.minutes)
    counts.close()
    if options.json:
        for row in rows:
            print(json.dumps({name: value for name, value in asdict(row).items() if name != "minute" or value}))
        return 0
    table = [("minute", "service", "method", "calls", "errors")]
    for row in rows:
        errors = ", ".join(f"{count} {status}" for status, count in sorted(row.errors.items()))
        table.append((row.minute, row.service, row.method, str(row.count), errors))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table if rows else ():
        cells = [
            cell.rjust(width) if at == 3 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells[0 if options.minutes else 1 :]).rstrip())
    return 0


def _list_faults(options: argparse.Namespace) -> int:
    for fault in _fault_client(options).list_all():
        print(json.dumps(fault))
    return 0


def _add_fault(options: argparse.Namespace) -> int:
    action: dict[str, Any] = {"kind": options.kind}
    for word in options.action:
        key, _, text = word.partition("=")
        try:
            action[key] = type(ACTION_DEFAULTS.get(key, ""))(text)
        except ValueError:
            raise FaultError(f"faults: {word!r}. Expected a number behind {key}=.") from None
    fault = {"target": options.target, "filter": options.filter, "skip": options.skip, "count": options.count}
    print(json.dumps(_fault_client(options).add(check({**fault, "action": action}))))
    return 0


def _remove_faults(options: argparse.Namespace) -> int:
    client = _fault_client(options)
    for number in options.numbers or [None]:
        client.remove(number)
    return 0


def _fault_client(options: argparse.Namespace) -> FaultClient:
    options.state.require_running()
    return FaultClient(options.state)


def _down(options: argparse.Namespace) -> int:
    pid = options.state.running_pid()
    if pid is None:
        print(f"{options.state.path}: not running")
        return 0
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while options.state.running_pid() is not None:
        if time.monotonic() > deadline:
            raise LocalCloudError(
                str(options.state.path),
                found=f"pid {pid} is still running after {STOP_TIMEOUT_S} s",
                expected="it to end on SIGTERM",
                way_out=f"End it with `kill -9 {pid}`: its servers end with it",
            )
        time.sleep(0.05)
    print(f"{options.state.path}: stopped")
    return 0

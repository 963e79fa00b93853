"""The commands of the local cloud: up, env, token, status, down.

In: command-line arguments. Out: lines on standard output, an exit code, and messages in four parts on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from localcloud import processes
from localcloud.bearer import Bearers
from localcloud.credentials import ACCOUNT_EMAIL
from localcloud.environment import client_environment, render_exports
from localcloud.errors import LocalCloudError
from localcloud.state import State, state_path_from

STOP_TIMEOUT_S = 30


def main(arguments: list[str] | None = None) -> int:
    """Run one command; give its exit code (2: refused, 1: not running)."""
    options = _parser().parse_args(arguments)
    options.state = State((options.state or state_path_from(os.environ)).absolute())
    try:
        code: int = options.command(options)
    except LocalCloudError as error:
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


def _refuse(error: LocalCloudError) -> int:
    print(f"localcloud: {error}", file=sys.stderr, flush=True)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="localcloud", description="A Google Cloud on loopback, for development and tests."
    )
    commands = parser.add_subparsers(required=True, metavar="{up,env,token,status,down}")

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
    env = add("env", _env, "Print the environment that points Google's clients here, for the shell's eval.")
    env.add_argument("--json", action="store_true", help="as a JSON object; an empty value means: unset")
    env.add_argument("--gateway-host", help="name under which the client reaches the gateway (in containers)")
    token = add("token", _token, "Print an access token, for curl: it lasts an hour.")
    token.add_argument("--account", default=ACCOUNT_EMAIL, help="whose (default: %(default)s)")
    add("status", _status, "Print the servers, their addresses and logs; exit code 0 only when all is ready.")
    add("down", _down, "Stop the local cloud of this state directory and wait until it is gone.")
    return parser


def _up(options: argparse.Namespace) -> int:
    from localcloud import supervisor  # other commands need none of what it imports

    return supervisor.run(
        options.state,
        gateway_host=options.host,
        gateway_port=options.port,
        other_projects=options.project,
        config_path=options.config,
        say=lambda line: print(line, flush=True),
    )


def _env(options: argparse.Namespace) -> int:
    environment = client_environment(options.state.path, gateway_host=options.gateway_host)
    print(json.dumps(environment, indent=2) if options.json else render_exports(environment))
    return 0


def _token(options: argparse.Namespace) -> int:
    options.state.read_settings()  # refuses where no local cloud was started
    print(Bearers(options.state).issue(options.account))
    return 0


def _status(options: argparse.Namespace) -> int:
    settings = options.state.read_settings()
    pid = options.state.running_pid()
    ready = pid is not None and options.state.ready_path.exists()
    print(f"{options.state.path}: {f'running (pid {pid})' if pid else 'not running'}{', ready' if ready else ''}")
    port = settings.ports["gateway"]
    rows = [("gateway", f"127.0.0.1:{port}", processes.accepts(port))]
    for name in _SERVER_OF_SOCKET:
        path = options.state.socket_path(name)
        rows.append((name, path.name, processes.accepts_at(path)))
    for name, address, answers in rows:
        log_path = options.state.server_log_path(_SERVER_OF_SOCKET.get(name, name))
        print(f"  {name:<14} {address:<16} {'listening' if answers else '-':<10} {log_path}")
    return 0 if ready else 1


_SERVER_OF_SOCKET = {
    "storage": "storage",
    "bigquery_rest": "bigquery",
    "bigquery_grpc": "bigquery",
    "vertex_grpc": "vertex",
    "vertex_rest": "vertex",
    "logging_grpc": "gateway",
}


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

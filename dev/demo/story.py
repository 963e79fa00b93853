"""The story of one retraining, from an empty machine to an answer of the endpoint.

Comes in: options of `make demo`; standard input is a pipe that `python -m demo` holds, and its end ends this too. Goes
out: text for a person; exit code 0 only if the run succeeded.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import threading
import time
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TextIO

import requests

from demo.airflow_api import AirflowApiError
from demo.bundle import change_spec, copy_bundle
from demo.checkout import REPOSITORY_PATH
from demo.dag_run import MODEL, Outcome, predict, run_dag
from demo.memory import MemoryWatch
from demo.ramp import run_ramp, with_canary
from demo.summary import answer_lines, data_lines, failed_lines, model_lines, next_lines
from demo.system import LaptopSystem
from demo.year import Year, year_lines
from demo.year_picture import render_year
from demo.year_scenario import merge, read_scenario
from localcloud.errors import LocalCloudError

AS_OF = "2013-11-20T03:00:00Z"
RUN_TIMEOUT_S = 1200
NEEDED_DISK_BYTES = 2 * 1024**3
ENDING_TIMEOUT_S = 60.0


def main() -> int:
    """Run the demonstration; return the process's exit code."""
    options = _parse()
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)  # also where a shell started this in the background, with it ignored
    threading.Thread(target=_end_with_starter, daemon=True).start()
    build_path = options.home.absolute()
    try:
        build_path.mkdir(parents=True, exist_ok=True)
        with (build_path / "demo.lock").open("a+") as lock:
            _hold(lock)
            _require_disk(build_path)
            return _tell(options, build_path)
    except (LocalCloudError, TimeoutError, AirflowApiError, requests.RequestException) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: ended", file=sys.stderr)
        return 130


def _tell(options: argparse.Namespace, build_path: Path) -> int:
    started = time.monotonic()
    dags_path = _dags(options, build_path)
    system = LaptopSystem(
        state_path=Path(os.environ.get("LOCALCLOUD_STATE") or build_path / "localcloud").absolute(),
        airflow_home_path=build_path / "airflow",
        port=options.port,
        say=_say,
        dags_path=dags_path,
        plugins_path=dags_path.parent / "plugins",
    )
    memory = MemoryWatch()
    try:
        memory.start()
        system.start()
        finished = _replay(options, system, build_path) if options.months else _run(options, system)
        _say("")
        for line in [] if options.months else _lines(finished, system):  # a replay has told its own
            _say(line)
        _say(f"total      {time.monotonic() - started:.1f} s, at most {memory.stop() / 1e9:.1f} GB of memory")
        if finished.state != "success":
            return 1
        if options.end:
            _say("ends now (KEEP=0)")
            return 0
        for line in [*next_lines(system.airflow.url), f"{system.login}; everything stays up until Ctrl-C"]:
            _say(line)
        _stay(system)
        return 0
    finally:
        # A second Ctrl-C while ending must not leave half of it running.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        system.stop()


def _run(options: argparse.Namespace, system: LaptopSystem) -> Outcome:
    """Run the night, or the two of a ramp."""
    api, project = system.airflow.api(), os.environ["RETRAINING_PROJECT"]
    if options.ramp:
        return run_ramp(api, options.as_of, project=project, say=_say, timeout_s=RUN_TIMEOUT_S)
    return run_dag(
        api,
        options.as_of,
        project=project,
        say=_say,
        timeout_s=RUN_TIMEOUT_S,
        verbose=options.verbose,
        repeat=False,
    )


def _replay(options: argparse.Namespace, system: LaptopSystem, build_path: Path) -> Outcome:
    """Play months in fast motion; leave their picture."""
    scenario, project = read_scenario(), os.environ["RETRAINING_PROJECT"]
    year = Year(api=system.airflow.api(), scenario=scenario, months=options.months, project=project, say=_say)
    year.play()
    if year.first is None or not year.steps:
        raise LocalCloudError(
            "make demo-year",
            found=f"the first run made no champion: {_reason(year.first)}",
            expected="one that customers can ask",
            way_out=f"The logs are {system.airflow.home_path / 'logs'}",
        )
    picture_path = build_path / "year.html"
    title = f"flight_delays, {scenario.start:%Y-%m-%d} to {year.steps[-1].as_of:%Y-%m-%d}"
    picture_path.write_text(render_year(year, title))
    _say("")
    for line in [*year_lines(year), f"picture    {picture_path}"]:
        _say(line)
    return year.first


def _reason(run: Outcome | None) -> str:
    """Return why a run deployed nothing, in its own words."""
    if run is None or "deployment" not in run.documents:
        return "it failed"
    return str(run.documents["deployment"]["words"])


def _dags(options: argparse.Namespace, build_path: Path) -> Path:
    """Return the folder of DAG files: a copy, where the model's file is another one."""
    if not (options.ramp or options.months):
        return REPOSITORY_PATH / "dags"
    dags_path = copy_bundle(build_path / "bundle")
    change_spec(dags_path, MODEL, with_canary if options.ramp else lambda spec: merge(spec, read_scenario().spec))
    return dags_path


def _lines(finished: Outcome, system: LaptopSystem) -> list[str]:
    """Return what a person reads about a finished run."""
    storage_path = system.state_path / "storage"
    report = f"report     {storage_path}/{finished.run_uri.removeprefix('gs://')}/report.html"
    if finished.state != "success":
        logs = f"logs       {system.airflow.home_path / 'logs'}"
        again = "again      make demo runs every task again; V=1 shows their logs, AS_OF=… takes another day"
        return [*failed_lines(finished.failures), *([report] if finished.run_uri else []), logs, again]
    lines = [*data_lines(finished.documents), *model_lines(finished.documents)]
    deployment = finished.documents["deployment"]
    if deployment.get("endpoint_name"):
        instance = finished.documents["report"]["golden"][0]["instance"]
        lines += answer_lines(instance, predict(deployment["endpoint_name"], [instance]))
    return [*lines, f"run        {finished.seconds:.1f} s", report]


def _stay(system: LaptopSystem) -> None:
    while True:
        time.sleep(1)
        system.check_alive()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description="Retrain the flights model for one night, here.")
    parser.add_argument("--port", type=int, default=8080, help="port of the Airflow UI on loopback")
    parser.add_argument("--as-of", type=_instant, default=AS_OF, help="logical date of the run, ISO 8601 with zone")
    parser.add_argument("--home", type=Path, default=REPOSITORY_PATH / "build", help="folder of everything it keeps")
    parser.add_argument("--end", action="store_true", help="end everything when the run is over")
    parser.add_argument("--ramp", action="store_true", help="two nights, with a ramp between their models")
    parser.add_argument("--months", type=int, default=0, help="replay so many months; 0: none")
    parser.add_argument("--verbose", action="store_true", help="print the task logs, the jobs' lines among them")
    return parser.parse_args()


def _instant(text: str) -> str:
    try:
        if datetime.fromisoformat(text).tzinfo is not None:
            return text
    except ValueError:
        pass  # the same message as for a missing zone
    raise argparse.ArgumentTypeError(f"found {text!r}, expected ISO 8601 with a zone, e.g. {AS_OF}")


def _hold(lock: TextIO) -> None:
    """Be the only demonstration of this folder; one whose starter is gone already is waited for while it ends."""
    deadline = time.monotonic() + ENDING_TIMEOUT_S
    while not _locked(lock):
        lock.seek(0)
        holder = lock.read().strip()
        if not _is_gone(holder) or time.monotonic() > deadline:
            raise LocalCloudError(
                "make demo",
                found=f"a demonstration is already running in this checkout (pid {holder or '?'})",
                expected="one at a time",
                way_out="Use its Airflow, or end it with Ctrl-C where it runs, then try again.",
            )
        time.sleep(0.2)
    lock.truncate(0)
    lock.write(f"{os.getppid()}\n")
    lock.flush()


def _locked(lock: TextIO) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _is_gone(pid: str) -> bool:
    return pid.isdigit() and not Path(f"/proc/{pid}").exists()


def _require_disk(path: Path) -> None:
    free = shutil.disk_usage(path).free
    if free < NEEDED_DISK_BYTES:
        raise LocalCloudError(
            str(path),
            found=f"{free / 1e9:.1f} GB free on its disk",
            expected=f"at least {NEEDED_DISK_BYTES / 1e9:.0f} GB",
            way_out="Free some space (`make clean` removes what earlier runs left), then try again.",
        )


def _end_with_starter() -> None:
    """Wait for the end of standard input, which is the end of `python -m demo`, however it came."""
    while os.read(0, 64):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # the signal module's protocol
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())

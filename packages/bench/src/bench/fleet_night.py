"""The night of `make bench-fleet`, played: one model alone, then all others at once, and what came of it.

In: options; standard input is a pipe that `bench.fleet` holds, and its end ends this too. Out: the result, printed and
written. The folder that Airflow and the local cloud lived in stays only where the night was not as it should be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench import fleet_cloud
from bench.checkout import PACKAGES_PATH, REPOSITORY_PATH
from bench.cloud import machine
from bench.fleet import NAME, parse
from bench.fleet_models import ALONE, AS_OF, POOLED, expected_failures, model_names, write_bundle, write_data
from bench.fleet_pool import opened
from bench.fleet_report import Night, describe, problems, table, write_result
from bench.fleet_slots import Database
from bench.fleet_watch import WAKE_INTERVAL_S, WATCH_S
from localcloud.errors import LocalCloudError
from localcloud.supervision.processes import choose_ports
from retraining_laptop.airflow_api import AirflowApi
from retraining_laptop.dag_run import wait_for_dag
from retraining_laptop.memory import MemoryWatch
from retraining_laptop.progress import FINISHED_RUN
from retraining_laptop.story import INTERRUPTED, play, say
from retraining_laptop.system import System

ENVIRONMENTS_PATH = REPOSITORY_PATH / ".venv"
RESULT_PATH = REPOSITORY_PATH / "build" / "bench" / "fleet.json"
LOOK_INTERVAL_S = 5.0
_CLOUD_CONFIG_PATH = REPOSITORY_PATH / "dev" / "demo" / "localcloud.json"


@dataclass(frozen=True, kw_only=True)
class Played:
    """What was seen of one model or many: wall seconds, memory in bytes at most, calls."""

    seconds: float
    memory_bytes: int
    calls: fleet_cloud.Counts


def main() -> int:
    """Play the night; return the process's exit code."""
    options = parse()
    # The checkout's plugins, which this process reads, must not reach Airflow's: they have the bundle's own.
    os.environ.pop("PYTHONPATH", None)
    home = Path(tempfile.mkdtemp(prefix="bench-fleet-"))
    code = play(NAME, home, lambda: _play(home, options))
    if code in (0, INTERRUPTED):
        shutil.rmtree(home)
    else:
        say(f"{NAME}: what is left of it: {home}")
    return code


def limit_s(runs: int, slots: int) -> float:
    """Return the seconds after which runs that go on are given up: four minutes of a slot for each, and ten more."""
    return 600 + 240 * max(1.0, runs / min(slots, os.cpu_count() or 1))


def _play(home: Path, options: argparse.Namespace) -> int:
    system = _system(home, options)
    on = {**machine(), "versions": _versions(), "load_average_before": round(os.getloadavg()[0], 1)}
    try:
        system.start()
        fleet_cloud.let_machines_start_in(system.state_path, options.start)
        night = _measure(system, options)
    finally:
        # A second Ctrl-C while ending must not leave half of it running.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        system.stop()
    result = {"machine": on, **describe(night)}
    write_result(RESULT_PATH, result)
    say(table(result))
    wrong = problems(result)
    for line in wrong:
        say(f"{NAME}: {line}")
    say(f"{NAME}: wrote {RESULT_PATH}")
    return 1 if wrong else 0


def _system(home: Path, options: argparse.Namespace) -> System:
    dags_path = write_bundle(
        home / "bundle", options.models, options.jobs, machines=options.slots, most_jobs=options.quota
    )
    state_path = home / "localcloud"
    return System(
        state_path=state_path,
        airflow_home_path=home / "airflow",
        port=choose_ports(["airflow"], {})["airflow"],
        dags_path=dags_path,
        plugins_path=dags_path.parent / "plugins",
        environment_path=ENVIRONMENTS_PATH / "airflow",
        cloud_python=ENVIRONMENTS_PATH / "localcloud" / "bin" / "python",
        cloud_config_path=_CLOUD_CONFIG_PATH,
        import_path=PACKAGES_PATH,
        seed=("-m", "retraining_laptop.seed", "--state", str(state_path), "--data", str(write_data(home / "data"))),
        variables={
            "AIRFLOW__CORE__PARALLELISM": str(options.slots),
            # The product's defaults, not those of the demonstration, whose tasks watch a job to its end.
            "RETRAINING_WAKE_INTERVAL_S": str(WAKE_INTERVAL_S),
            "RETRAINING_WATCH_S": str(WATCH_S),
        },
        start_words="",
        say=say,
    )


def _measure(system: System, options: argparse.Namespace) -> Night:
    models, slots = options.models, options.slots
    api = system.airflow.api()
    others = [*model_names(models), *expected_failures()]
    for name in (ALONE, *others):
        wait_for_dag(api, f"retrain__{name}", timeout_s=300)
    with opened(api, slots if options.jobs == POOLED else 0) as pool:
        say(f"{ALONE} runs alone")
        alone = _run(system, api, [ALONE], slots)
        say(f"{len(others)} models at once on {slots} slots, after {alone.seconds:.0f} s")
        played = _run(system, api, others, slots)
    database = Database(system.airflow_home_path / "airflow.db")
    return Night(
        models=models,
        slots=slots,
        kind=options.jobs,
        quota=options.quota,
        start_s=options.start,
        usd=fleet_cloud.list_price(model_names(models)),
        alone_usd=fleet_cloud.list_price([ALONE]),
        seconds=played.seconds,
        alone_seconds=alone.seconds,
        pool=pool,
        memory_bytes=played.memory_bytes,
        calls=played.calls,
        alone_calls=alone.calls,
        jobs=fleet_cloud.list_jobs(),
        sessions=database.sessions(),
        runs=database.runs(),
        parse_seconds=database.parse_seconds(),
    )


def _run(system: System, api: AirflowApi, models: list[str], slots: int) -> Played:
    """Start the runs of these models at the same logical time, and wait for their end."""
    before, memory = fleet_cloud.read_counts(system.state_path), MemoryWatch()
    for name in models:
        api.trigger(f"retrain__{name}", logical_date=AS_OF.isoformat())
    memory.start()
    began = time.monotonic()
    for name in models:  # a paused DAG's run waits, so all of them are there when the first one begins
        api.unpause(f"retrain__{name}")
    try:
        _wait(system, api, models, began + limit_s(len(models), slots))
    finally:
        peak = memory.stop()
    seconds = time.monotonic() - began
    calls = fleet_cloud.between(before, fleet_cloud.read_counts(system.state_path))
    return Played(seconds=seconds, memory_bytes=peak, calls=calls)


def _wait(system: System, api: AirflowApi, models: list[str], deadline: float) -> None:
    waiting = list(models)
    while True:
        system.check_alive()
        going = api.unfinished()  # one call for a hundred runs, so that asking is not what is measured
        ended = [name for name in waiting if f"retrain__{name}" not in going and _has_ended(api, name)]
        for name in ended:
            waiting.remove(name)
            say(f"  {name} has ended, {len(waiting)} go on")
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise LocalCloudError(
                NAME,
                found=f"{len(waiting)} of {len(models)} runs go on: {', '.join(waiting)}",
                expected="all of them to end in time",
                way_out=f"Their logs are {system.airflow_home_path / 'logs'}; fewer models: MODELS=3",
            )
        time.sleep(LOOK_INTERVAL_S)


def _has_ended(api: AirflowApi, model: str) -> bool:
    return all(run["state"] in FINISHED_RUN for run in api.runs(f"retrain__{model}"))


def _versions() -> list[str]:
    folders = sorted((ENVIRONMENTS_PATH / "airflow").glob("lib/python*/site-packages/apache_airflow_core-*.dist-info"))
    trainer = sorted((ENVIRONMENTS_PATH / "trainer").glob("lib/python*/site-packages/tensorflow*-*.dist-info"))
    return [folder.name.removesuffix(".dist-info") for folder in (*folders, *trainer)]


if __name__ == "__main__":
    sys.exit(main())

"""The story of one retraining, from an empty machine to an answer of the endpoint.

Comes in: options of `make demo`; standard input is a pipe that `python -m demo` holds, and its end ends this too. Goes
out: text for a person; exit code 0 only if the run succeeded.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime
from pathlib import Path

from demo.bundle import change_spec, copy_bundle
from demo.checkout import REPOSITORY_PATH
from demo.dag_run import DAG_ID, MODEL
from demo.ramp import run_ramp, with_canary
from demo.system import LaptopSystem
from demo.year import Year, year_lines
from demo.year_picture import render_year
from demo.year_scenario import merge, read_scenario
from localcloud.errors import LocalCloudError
from retraining_laptop.dag_run import Outcome, predict, run_dag
from retraining_laptop.story import play, say, tell
from retraining_laptop.summary import answer_lines, data_lines, failed_lines, model_lines

AS_OF = "2013-11-20T03:00:00Z"
RUN_TIMEOUT_S = 1200


def main() -> int:
    """Run the demonstration; return the process's exit code."""
    options = _parse()
    build_path = options.home.absolute()
    return play("demo", build_path, lambda: _tell(options, build_path))


def _tell(options: argparse.Namespace, build_path: Path) -> int:
    dags_path = _dags(options, build_path)
    system = LaptopSystem(
        state_path=Path(os.environ.get("LOCALCLOUD_STATE") or build_path / "localcloud").absolute(),
        airflow_home_path=build_path / "airflow",
        port=options.port,
        say=say,
        dags_path=dags_path,
        plugins_path=dags_path.parent / "plugins",
    )
    return tell(
        system,
        happen=lambda: _replay(options, system, build_path) if options.months else _run(options, system),
        conclude=lambda finished: [] if options.months else _lines(finished, system),  # a replay has told its own
        look_at=lambda: next_lines(system.airflow.url),
        ends_because="KEEP=0" if options.end else "",
    )


def _run(options: argparse.Namespace, system: LaptopSystem) -> Outcome:
    """Run the night, or the two of a ramp."""
    api, project = system.airflow.api(), os.environ["RETRAINING_PROJECT"]
    if options.ramp:
        return run_ramp(api, options.as_of, project=project, say=say, timeout_s=RUN_TIMEOUT_S)
    return run_dag(
        api,
        DAG_ID,
        options.as_of,
        project=project,
        say=say,
        timeout_s=RUN_TIMEOUT_S,
        verbose=options.verbose,
        repeat=False,
    )


def _replay(options: argparse.Namespace, system: LaptopSystem, build_path: Path) -> Outcome:
    """Play months in fast motion; leave their picture."""
    scenario, project = read_scenario(), os.environ["RETRAINING_PROJECT"]
    year = Year(api=system.airflow.api(), scenario=scenario, months=options.months, project=project, say=say)
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
    say("")
    for line in [*year_lines(year), f"picture    {picture_path}"]:
        say(line)
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
        answer = predict(deployment["endpoint_name"], [instance])
        lines += answer_lines(instance, answer, "late with probability {}")
    return [*lines, f"run        {finished.seconds:.1f} s", report]


def next_lines(airflow_url: str) -> list[str]:
    """Return where a person looks while everything stays up, and what there is to do."""
    return [
        f"pages      {airflow_url}/retraining/models: each model, its runs, and how they ended",
        "next       in another terminal: eval \"$(make -s demo-env)\", then make retraining DO='why flight_delays';",
        "           docs/tutorial.md goes on with a table of your own",
    ]


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


if __name__ == "__main__":
    sys.exit(main())

"""The command `demo`: one of a repository's models, retrained on this machine with data of the repository."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import click

from retraining import __version__
from retraining.core.errors import SettingsError, SpecError, suggest
from retraining.core.settings import include_path
from retraining.core.spec.teams import find_specs
from retraining.core.spec.yaml_file import read_spec_file
from retraining_laptop.bootstrap.environments import make_environments, python_of

FOLDER = "demo"
"""Of a team's repository: the data, and which model they are for."""
KEYS = ("model", "as_of")


@click.command("demo")
@click.argument("model", required=False)
@click.option("--as-of", help="Logical date of the run, ISO 8601 with a zone; left out: that of demo/demo.yaml.")
@click.option("--data", type=click.Path(path_type=Path), default=Path(FOLDER, "data"), help="Folder of the data.")
@click.option("--include", type=click.Path(path_type=Path), help="Folder with models and sql; left out: include.")
@click.option("--home", type=click.Path(path_type=Path), default=Path(".demo"), help="Folder of everything it keeps.")
@click.option("--port", type=int, default=8080, help="Port of the Airflow UI on loopback.")
@click.option("--once", is_flag=True, help="End everything when the run is over.")
def run_demo(
    model: str | None,
    as_of: str | None,
    data: Path,
    include: Path | None,
    home: Path,
    port: int,
    once: bool,
) -> None:
    """Retrain MODEL for one night on this machine, without a cloud account.

    A local cloud and an Airflow are started around this repository; the run exports, trains, judges, registers and
    deploys as it would on Google Cloud, and the endpoint is asked. demo/data has the tables that the model reads
    (bigquery/<dataset>/<table>.csv), demo/demo.yaml says which model and which day. Everything stays up until Ctrl-C.
    """
    include = include_path(
        environ={"RETRAINING_INCLUDE": str(include or os.environ.get("RETRAINING_INCLUDE", "include"))}
    )
    defaults = read_defaults(Path(FOLDER, "demo.yaml"))
    model = _model(model or defaults.get("model"), include)
    as_of = _instant(as_of or defaults.get("as_of"))
    if not data.is_dir():
        raise SettingsError(
            str(data),
            "no such folder",
            "one with bigquery/<dataset>/<table>.csv",
            "Make it, or name another with --data",
        )
    environments = home.absolute() / "environments"
    make_environments(environments, __version__, lambda line: print(line, flush=True))
    python = str(python_of(environments, "localcloud"))
    words = {
        "model": model,
        "as-of": as_of,
        "data": data.absolute(),
        "include": include,
        "home": home.absolute(),
        "port": port,
        "airflow": sys.prefix,
        "trainer": python_of(environments, "trainer"),
        "version": __version__,
    }
    arguments = [word for name, value in words.items() for word in (f"--{name}", str(value))]
    command = [python, "-m", "retraining_laptop", *arguments, *(["--once"] if once else [])]
    sys.stdout.flush()
    os.execve(python, command, own_environment(os.environ))  # noqa: S606 - an interpreter that this made, a list


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what says where a real Airflow and a real project are, and whom they tell."""
    return {name: value for name, value in environ.items() if not name.startswith(("RETRAINING_", "AIRFLOW_"))}


def read_defaults(path: Path) -> Mapping[str, str]:
    """Return what a repository says of its demonstration; nothing where it says nothing.

    Raises:
        SpecError: The file has something else than model and as_of, both texts.
    """
    if not path.exists():
        return {}
    values = read_spec_file(path).values
    for key, value in values.items():
        if key not in KEYS or not isinstance(value, str):
            raise SpecError(
                f"{path}, {key}", repr(value), f"texts with the names {' and '.join(KEYS)}", suggest(key, KEYS)
            )
    return {key: str(value) for key, value in values.items()}


def _model(name: str | None, include: Path) -> str:
    known = [path.stem for path in find_specs(include)]
    if name is None and len(known) == 1:
        return known[0]
    if name not in known:
        found = f"no model {name!r}" if name else "none named"
        raise SpecError("MODEL", found, f"one of: {', '.join(known)}", suggest(name or "", known))
    return name


def _instant(text: str | None) -> str:
    expected, way_out = "ISO 8601 with a zone, e.g. 2026-01-22T03:00:00Z", "Name the day after the data's last one"
    if text is None:
        raise SettingsError("--as-of", "none, and demo/demo.yaml has none", expected, way_out)
    try:
        if datetime.fromisoformat(text).tzinfo is not None:
            return text
    except ValueError:
        pass  # the same message as for a missing zone
    raise SettingsError("--as-of", repr(text), expected, way_out)

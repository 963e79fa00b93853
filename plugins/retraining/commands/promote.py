"""The command `promote-version`: a run ordered of another stage's Airflow, which takes a version over."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from retraining.commands.shell import INCLUDE, Shell, print_answer
from retraining.core.errors import DataError, PlanError
from retraining.core.naming import vertex
from retraining.core.naming.run_keys import is_run_key
from retraining.core.naming.stage_runs import PARAM, StageRun
from retraining.core.planning.taken_versions import require_two_stages
from retraining.core.settings import SETTINGS
from retraining.core.spec.stages import PLACES, Stage, require_stages
from retraining.hooks.airflow_api import AirflowApi

FROM, TO = "--from", "--to"


@click.command("promote-version")
@click.argument("model")
@click.option(FROM, "source", required=True, help="Stage that trained the version.")
@click.option(TO, "target", required=True, help="Stage that takes it over; AIRFLOW__API__BASE_URL is its Airflow.")
@click.option("--run", "run_key", help="Key of the run there; left out: of the one whose version is champion.")
@INCLUDE
@click.pass_obj
def promote_version(
    shell: Shell, model: str, source: str, target: str, run_key: str | None, include: Path | None
) -> None:
    """Have a stage take a version of another one over.

    It is a run of retrain__MODEL of stage --to which trains nothing: it copies the version, judges it on that stage's
    newest days beside its champion, and goes on as any other run. What cannot be taken over, its task plan refuses.
    """
    stages = require_stages(include or shell.find_include(), FROM)
    stage = stages.stage(source, FROM)
    stages.stage(target, TO)
    require_two_stages(source, target, f"{FROM} and {TO}")
    shell.require_model(model)
    key = _run_key(run_key) if run_key else _champion(shell, model, source, stage)
    dag_id = f"retrain__{model}"
    asked = StageRun(stage=source, run_key=key, target=target)
    run_id, paused = AirflowApi(os.environ).trigger(dag_id, {PARAM: str(asked)}, asked.dag_run_id)
    waits = [f"{dag_id} is paused: it begins when somebody unpauses it"] if paused else []
    print_answer([f"{dag_id} of stage {target}: run {run_id} ordered, for run {key} of stage {source}", *waits])


def _run_key(text: str) -> str:
    if not is_run_key(text):
        raise PlanError("--run", repr(text), "the key of a run, such as 20131120t030000z-0123456789ab", "Correct it")
    return text


def _champion(shell: Shell, model: str, source: str, stage: Stage) -> str:
    """Return the key of the run whose version is champion of a stage.

    Raises:
        DataError: There is none, or no run made it.
    """
    version = shell.connect_to(environ_of(source, stage, os.environ)).registry.find_by_alias(model, vertex.CHAMPION)
    if version is None or not version.run_key:
        found = "no champion" if version is None else f"champion version {version.version_id}, which no run made"
        raise DataError(f"{model} in stage {source}", found, "a version that a run made", "Name a run with --run")
    return version.run_key


def environ_of(name: str, stage: Stage, environ: Mapping[str, str]) -> dict[str, str]:
    """Return this shell's variables as a stage has them: what its entry says comes from there, the rest stays."""
    said = [SETTINGS[place].variable for place in PLACES if place in stage.places]
    kept = {variable: value for variable, value in environ.items() if variable not in said}
    return {**kept, SETTINGS["stage"].variable: name}

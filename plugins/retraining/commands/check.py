"""The commands `check-models` and `check-queries`: whether a run takes the models' files, and BigQuery their SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import click

from retraining.commands.shell import INCLUDE, Shell, check_each, end, print_warning
from retraining.core.catalog.amounts import accelerator_names
from retraining.core.catalog.hardware import load_hardware
from retraining.core.catalog.model_check import check_model
from retraining.core.errors import SpecError
from retraining.core.program import command_line
from retraining.core.spec.budgets import FILE as BUDGETS
from retraining.core.spec.budgets import load_budgets
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.quotas import FILE as QUOTAS
from retraining.core.spec.quotas import Quotas, load_quotas
from retraining.core.spec.stages import FILE as STAGES
from retraining.core.spec.stages import find_stages, folder_of_stages, require_stages
from retraining.core.spec.teams import FILE as TEAMS
from retraining.core.spec.teams import explain_teams, find_specs, team_folders
from retraining.hooks.check_queries import check
from retraining.hooks.session import own_session


def region_hint() -> str:
    """Return what else a look at the machines needs."""
    return f"{command_line('check-models', RETRAINING_REGION='us-central1')} looks for its machines there too"


@click.command("check-models")
@click.option("--json-schema", type=click.Path(path_type=Path), help="Write the JSON Schema of a model's file here.")
@INCLUDE
@click.option("--region", help="Also check that the accelerators exist there.")
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="Warn of containers ended by then.")
@click.option("--cloud", is_flag=True, help="BigQuery is asked next: do not name what only it knows.")
@click.pass_obj
def check_models(
    shell: Shell,
    json_schema: Path | None,
    include: Path | None,
    region: str | None,
    day: datetime | None,
    *,
    cloud: bool,
) -> None:
    """Validate every model's files, in every stage.

    Prints a line per model, and one for each stage of environments.yaml, or its errors; one is enough for the status 1.
    """
    include = include or shell.find_include()
    paths = find_specs(include)
    if json_schema:
        _write_schema(json_schema)

    quotas, today, shown = _good_quotas(include), day.date() if day else None, set[str]()

    def check_file(path: Path, stage: str = "", stage_region: str | None = None) -> str:
        there = stage_region or region
        line, warnings = check_model(path, include, there, today, quotas=quotas, cloud=cloud, stage=stage)
        for warning in warnings:
            if warning not in shown:
                print_warning(warning)
        shown.update(warnings)
        return line

    def explain_quotas(path: Path) -> str:
        return (known_quotas(path.parent) or Quotas(regions={})).explain(region)

    is_good = check_each(paths, check_file)
    is_good = check_each(teams_named(include), lambda path: explain_teams(path.parent)) and is_good
    for folder in dict.fromkeys([include, *map(folder_of_stages, paths)]):
        own = [path for path in paths if folder_of_stages(path) == folder]
        is_good = check_each(files_named(folder, STAGES), check_stages) and is_good
        for stage, stage_region in _good_stages(folder).items():
            is_good = check_each(own, partial(check_file, stage=stage, stage_region=stage_region)) and is_good
    is_good = check_each(files_named(include, BUDGETS), lambda path: check_budgets(path, paths)) and is_good
    is_good = check_each(files_named(include, QUOTAS), explain_quotas) and is_good
    if region is None:
        print_warning(f"region not checked: {region_hint()}")
    if not paths:
        print_warning(f"{include / 'models'}: no model. Copy one of the repository's and change it.")
    end(is_good=is_good and bool(paths))


@click.command("check-queries")
@click.option("--project", required=True, help="Project that the dry runs are asked in.")
@click.option("--region", required=True, help="Location of the tables.")
@INCLUDE
@click.pass_obj
def check_queries(shell: Shell, project: str, region: str, include: Path | None) -> None:
    """Ask BigQuery about every model's queries.

    Dry runs, which cost nothing, and a look at the files of data.files. The status is 1 where one does not fit.
    """
    include, session = include or shell.find_include(), own_session(project, region)
    end(is_good=check_each(find_specs(include), lambda path: check(load_spec(path), include, session)))


def files_named(include: Path, name: str) -> list[Path]:
    """Return the file of the month's budgets, of the quotas or of the stages, where there is one."""
    return [path for path in (include / name,) if path.is_file()]


def teams_named(include: Path) -> list[Path]:
    """Return where the teams are named, or would have to be; none where there are no teams."""
    return [include / TEAMS] if (include / TEAMS).is_file() or team_folders(include) else []


def check_budgets(path: Path, models: Sequence[Path]) -> str:
    """Return a line about the month's budgets.

    Raises:
        SpecError: The file is wrong, or names a model or a team that there is not.
    """
    budgets = load_budgets(path.parent)
    if budgets is None:
        raise SpecError(path.name, "no such file", "the month's budgets")
    owners = {}
    for model in models:
        try:
            owners[model.stem] = load_spec(model).owner
        except SpecError:  # that model's own line says it
            owners[model.stem] = ""
    if all(owners.values()):
        budgets.require_known(owners)
    return budgets.explain(owners)


def check_stages(path: Path) -> str:
    """Return a line about the stages.

    Raises:
        SpecError: The file is wrong, or changes a model that there is not.
    """
    found = require_stages(path.parent, path.name)
    for stage in found.names:
        found.require_models(stage, path.parent)
    return found.explain()


def _good_stages(include: Path) -> dict[str, str | None]:
    """Return the stages with their regions; of a file that is wrong, which its own line says, none."""
    try:
        found = find_stages(include)
        if found is None:
            return {}
        for stage in found.names:
            found.require_models(stage, include)
    except SpecError:
        return {}
    return {name: stage.region for name, stage in found.said.stages.items()}


def known_quotas(include: Path) -> Quotas | None:
    """Return the quotas of a folder; None: there is no such file.

    Raises:
        SpecError: The file is wrong, or names a region or an accelerator that there is not.
    """
    quotas, hardware = load_quotas(include), load_hardware(include)
    if quotas is not None:
        quotas.require_known(hardware.regions, accelerator_names(hardware))
    return quotas


def _good_quotas(include: Path) -> Quotas | None:
    """Return quotas to hold models against; what is wrong with the file is said once, by its own line."""
    try:
        return known_quotas(include)
    except SpecError:
        return None


def _write_schema(path: Path) -> None:
    schema = json.dumps(ModelSpec.model_json_schema(), indent=2, sort_keys=True)
    try:
        path.write_text(schema + "\n", encoding="utf-8")
    except OSError as error:
        raise SpecError("--json-schema", str(error), "a file that can be written", "Name another one") from error

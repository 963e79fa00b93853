"""The command `new-model`: a first YAML and SQL file of a model, from a look at its table."""

from __future__ import annotations

import uuid
from pathlib import Path

import click

from retraining.commands.shell import INCLUDE, Shell, print_answer
from retraining.core.data.table_profile import NewModel
from retraining.core.errors import SettingsError, SpecError
from retraining.core.settings import SETTINGS
from retraining.hooks.clock import Clock
from retraining.hooks.new_model import MAX_BYTES, make_model
from retraining.hooks.session import own_session


@click.command("new-model")
@click.option("--name", default="", help="The model's name, and its files'.")
@click.option("--table", default="", help="dataset.table or project.dataset.table.")
@click.option("--files", default="", help="In place of a table: gs://… of CSV, JSON lines or Parquet, one * at most.")
@click.option("--dataset", default="", help="Dataset that files are loaded into for the look.")
@click.option("--label", default="", help="Column that is predicted.")
@click.option("--key", default="", help="Column that differs in each row, or several with commas; left out: its hash.")
@click.option("--time", default="", help="Column with the time of a row's event; left out: examples without a time.")
@click.option("--project", default="", help="Project that the statements are asked in.")
@click.option("--region", default="", help="Location of the table.")
@INCLUDE
@click.pass_obj
def new_model(shell: Shell, /, project: str, region: str, include: Path | None, **given: str) -> None:
    """Write a model's first YAML and SQL.

    They come from a look at its table, or at files. Nothing is written over.
    """
    _require_setting("project", project)
    _require_setting("region", region)
    table, files = given["table"], given["files"]
    if files:
        _require_setting("dataset", given["dataset"])
        if table:
            raise SpecError("FILES", "TABLE beside it", "one of them", "Leave out the other")
        table = f"{given['dataset']}.new_model_{uuid.uuid4().hex}"
    model = NewModel(name=given["name"], table=table, label=given["label"], key=given["key"], time=given["time"])
    session = own_session(project, region, MAX_BYTES)
    print_answer(make_model(model, include or shell.find_include(), session, Clock().now().date(), files))


def _require_setting(name: str, value: str) -> None:
    setting = SETTINGS[name]
    if not value:
        raise SettingsError(setting.variable, "not set", setting.description, f"For example {setting.example}")

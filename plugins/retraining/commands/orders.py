"""Commands that something follows: a run ordered of Airflow, a trial message to all who are told of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click

from retraining.commands.shell import Shell, print_answer, split_pair
from retraining.core.documents.json_text import read_json
from retraining.core.notification.messages import Recipient, explain_settings, nobody, trials
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import ApiJson
from retraining.hooks.airflow_api import AirflowApi
from retraining.hooks.notifiers import NotSentError
from retraining.hooks.ports import CloudPort

TRIAL_DAG = "notify_test"


@click.command("run")
@click.argument("model")
@click.option("--param", "params", multiple=True, help="A Param of the form, name=value; may be repeated.")
@click.pass_obj
def order_run(shell: Shell, model: str, params: tuple[str, ...]) -> None:
    """Order a run of Airflow."""
    dag_id = f"retrain__{shell.require_model(model)}"
    run_id, waits = _trigger(AirflowApi(os.environ), dag_id, dict(map(_param, params)))
    print_answer([f"{dag_id}: run {run_id} ordered", *waits])


@click.command("notify-test")
@click.argument("model")
@click.option("--airflow", is_flag=True, help="By Airflow, with its settings and connections.")
@click.pass_obj
def send_trial_message(shell: Shell, model: str, *, airflow: bool) -> None:
    """Send a trial message to who is told of a model."""
    if airflow:
        print_answer(order_trial(AirflowApi(os.environ), shell.require_model(model)))
    else:
        lines, reached = send_trial(shell.connect(), shell.spec(model), os.environ)
        print_answer(lines, is_good=reached)


def send_trial(cloud: CloudPort, spec: ModelSpec, environ: Mapping[str, str]) -> tuple[list[str], bool]:
    """Send it; return whose settings were used, a line for each who is told, and whether all were reached.

    Args:
        cloud: Sends.
        spec: Of the model's file.
        environ: Of this shell.
    """
    lines, reached = [explain_settings(cloud.settings, "this shell")], True
    sent = list(trials(spec, cloud.settings, cloud.clock.now()))
    for trial in sent:
        shown = _shown(trial.recipient, environ)
        try:
            cloud.notifiers.send(trial.recipient, trial.message, trial.message_id)
            lines.append(f"{shown}: sent")
        except NotSentError as error:
            reached = False
            lines.append(f"{shown}: not sent, {error}")
    if not sent:
        return [*lines, nobody(spec)], False
    return lines, reached


def _shown(recipient: Recipient, environ: Mapping[str, str]) -> str:
    """Return who is told, and by which connection of whom."""
    if recipient.notifier is not None:
        return f"{recipient.name} of a package of this shell"
    connection = recipient.connection_id
    variable = f"AIRFLOW_CONN_{connection.upper()}"
    whose = f"{variable} of this shell" if variable in environ else f"not by {variable}, which this shell lacks"
    return f"{recipient.owner or connection} by {connection} ({whose})"


def order_trial(api: AirflowApi, model: str) -> list[str]:
    """Have Airflow send it, with its own settings and connections; return where it says what came of it."""
    run_id, waits = _trigger(api, TRIAL_DAG, {"model": model})
    return [
        f"{TRIAL_DAG}: run {run_id} ordered; it sends with the settings and connections of that Airflow",
        "the log of its task send names each who was reached, and it fails where one was not",
        *waits,
    ]


def _trigger(api: AirflowApi, dag_id: str, params: ApiJson) -> tuple[str, list[str]]:
    """Return the id of the run that was ordered, and a line where it waits."""
    run_id, paused = api.trigger(dag_id, params)
    return run_id, [f"{dag_id} is paused: it begins when somebody unpauses it"] if paused else []


def _param(text: str) -> tuple[str, object]:
    """Return a Param and its value: JSON, else text."""
    name, value = split_pair("--param", text, "name=value", "as_of=2013-11-20T03:00:00Z")
    try:
        return name, read_json(value)
    except ValueError:
        return name, value

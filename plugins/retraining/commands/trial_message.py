"""A trial message to all who are told of a model, with the settings and connections of this shell's environment."""

from __future__ import annotations

from collections.abc import Mapping

from retraining.core.notification.trial import explain_settings, nobody, trials
from retraining.core.spec.model import ModelSpec
from retraining.hooks.airflow_api import AirflowApi
from retraining.hooks.notifiers import NotSentError
from retraining.hooks.ports import CloudPort

DAG_ID = "notify_test"


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
        connection = trial.recipient.connection_id
        variable = f"AIRFLOW_CONN_{connection.upper()}"
        whose = f"{variable} of this shell" if variable in environ else f"not by {variable}, which this shell lacks"
        shown = f"{trial.recipient.owner or connection} by {connection} ({whose})"
        try:
            if trial.recipient.owner is None:
                cloud.notifiers.post(connection, trial.message.post)
            else:
                message = trial.message
                cloud.notifiers.send_mail(
                    connection, trial.recipient.owner, message.subject, message.html, trial.message_id
                )
            lines.append(f"{shown}: sent")
        except NotSentError as error:
            reached = False
            lines.append(f"{shown}: not sent, {error}")
    if not sent:
        return [*lines, nobody(spec)], False
    return lines, reached


def order_trial(api: AirflowApi, model: str) -> list[str]:
    """Have Airflow send it, with its own settings and connections; return where it says what came of it."""
    run_id, paused = api.trigger(DAG_ID, {"model": model})
    waits = [f"{DAG_ID} is paused: it begins when somebody unpauses it"] if paused else []
    return [
        f"{DAG_ID}: run {run_id} ordered; it sends with the settings and connections of that Airflow",
        "the log of its task send names each who was reached, and it fails where one was not",
        *waits,
    ]

"""A trial message, sent by a task: with the settings and connections of this Airflow."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from retraining.core.errors import SettingsError
from retraining.core.notification.messages import explain_settings, nobody, trials
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.teams import spec_path
from retraining.hooks.notifiers import NotSentError
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator


class SendTrialMessageOperator(CloudOperator):
    """Send a trial message to all who are told of a model.

    Args:
        model: Its name, or a template of it.

    Returns:
        How each who was reached is called in the record: without an address.
    """

    template_fields = ("model",)

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model

    def act(self, cloud: CloudPort, context: Context) -> list[str]:
        """Send; say who was reached.

        Raises:
            SettingsError: Nobody is told, or one was not reached.
        """
        del context
        spec = load_spec(spec_path(include_path(), self.model))
        self.log.info(explain_settings(cloud.settings, "this Airflow"))
        reached, failed = [], []
        for trial in trials(spec, cloud.settings, cloud.clock.now()):
            name = trial.recipient.name
            try:
                cloud.notifiers.send(trial.recipient, trial.message, trial.message_id)
                reached.append(name)
                self.log.info("%s by %s: sent", name, trial.recipient.through)
            except NotSentError as error:
                failed.append(f"{name}: {error}")
                self.log.warning("%s: not sent, %s", name, error)
        if failed or not reached:
            found = "; ".join(failed) or nobody(spec)
            raise SettingsError(f"trial message of {self.model}", found, "each to be reached", "Correct what it names")
        return reached

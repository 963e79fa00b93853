"""Telling people, from inside a task: once per cause, and never so that the task fails for it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Any

from airflow.sdk import BaseNotifier, Context

from retraining.core.documents import Notification
from retraining.core.errors import RetrainingError
from retraining.core.naming import dags, storage
from retraining.core.notification import notices
from retraining.core.notification.messages import Message, Recipient, recipients, render_message, short
from retraining.core.notification.notices import DagRun, Notice
from retraining.core.notification.once import Claimant, claim
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.notify import Event, Notify
from retraining.core.spec.teams import spec_path
from retraining.hooks.cloud import Cloud
from retraining.hooks.notifiers import NotSentError
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import Connect
from retraining.operators.airflow.links import airflow_address

LOGGER = logging.getLogger(__name__)


def tell(connect: Connect, context: Context, make: Callable[[], Notice | None], run_uri: str = "") -> None:
    """Tell people, unless they were told of this cause; whatever goes wrong stands in the log and in the record.

    Args:
        connect: Gives the cloud.
        context: Airflow's: the task that tells.
        make: Makes what is told; None: nothing. Whatever it raises, the task goes on.
        run_uri: Folder of the run's record, if it has one: it keeps what came of this.
    """
    try:
        notice = make()
        if notice is None:
            return
        cloud = connect()
        uri = storage.run_notification_uri(run_uri, notice.event) if run_uri else ""
        if uri and _told_by_this_run(cloud, notice, uri):
            return
        sent = _Telling(cloud, notice).tell(_claimant(context))
        if sent is not None and uri:
            cloud.artifacts.overwrite(uri, sent.to_bytes(), "application/json")
    except Exception as error:  # whatever it is: the task's own work is done
        LOGGER.warning("nobody was told: %s", type(error).__name__, exc_info=True)


def settle(connect: Connect, model: str | None, slot: str, *events: Event) -> None:
    """Write down that causes are over: the next ones of these kinds are told again."""
    try:
        cloud = connect()
        for event in events:
            _settle(cloud, storage.notification_uri(cloud.settings.bucket, model, event, slot))
    except Exception as error:  # whatever it is: the task's own work is done
        LOGGER.warning("%s of %s: not marked as over: %s", events, slot, type(error).__name__, exc_info=True)


def run_of(context: Context) -> DagRun:
    """Return where the task's DAG run is in Airflow's UI."""
    ti: Any = context["ti"]
    return DagRun(base_url=airflow_address(), dag_id=ti.dag_id, run_id=ti.run_id)


class TellNotice(BaseNotifier):
    """Tells of a notice where Airflow's own code says when.

    Args:
        notice: What.
        run_uri: Folder of the run's record.
        cloud: As of a task.
    """

    def __init__(self, *, notice: Notice, run_uri: str, cloud: Connect) -> None:
        super().__init__()
        self.notice = notice
        self.run_uri = run_uri
        self.cloud = cloud

    def notify(self, context: Context) -> None:
        """Tell."""
        tell(self.cloud, context, lambda: self.notice, self.run_uri)


class TellFailure(BaseNotifier):
    """An `on_failure_callback`: tells that a task of this DAG failed, for DAGs whose runs nothing concludes.

    Args:
        cloud: As of a task.
    """

    def __init__(self, *, cloud: Connect = Cloud) -> None:
        super().__init__()
        self.cloud = cloud

    def notify(self, context: Context) -> None:
        """Tell, by the task that failed and the class of its error."""

        def make() -> Notice:
            ti: Any = context["ti"]
            error = context.get("exception")
            cause = getattr(error, "error", None) or getattr(error, "__cause__", None) or error
            kind = type(cause).__name__ if isinstance(cause, BaseException) else None
            notice = notices.of_failure(_model_of(context), run_of(context), [ti.task_id], [], kind, "")
            return dataclasses.replace(notice, slot=_slot(context))

        tell(self.cloud, context, make)


class TellRecovery(BaseNotifier):
    """An `on_success_callback`: what was told of the task's failures is over.

    Args:
        cloud: As of a task.
    """

    def __init__(self, *, cloud: Connect = Cloud) -> None:
        super().__init__()
        self.cloud = cloud

    def notify(self, context: Context) -> None:
        """Mark it as over."""
        settle(self.cloud, _model_of(context), _slot(context), "failure")


TOLD = {"on_failure_callback": [TellFailure()], "on_success_callback": [TellRecovery()]}
"""Arguments of the tasks of a DAG whose runs nothing concludes."""


class _Telling:
    """One notice, on its way to all who are to know."""

    def __init__(self, cloud: CloudPort, notice: Notice) -> None:
        self._cloud = cloud
        self._notice = notice
        self._uri = storage.notification_uri(cloud.settings.bucket, notice.model, notice.event, notice.slot)

    def tell(self, claimant: Claimant) -> Notification | None:
        """Claim the cause, send, write down who was told; None: nobody is to be told."""
        notice, artifacts = self._notice, self._cloud.artifacts
        notify = notify_of(notice.model)
        whom = recipients(notify, self._cloud.settings) if notice.event in notify.events else []
        if not whom:
            return None
        data, generation = artifacts.read_generation(self._uri)
        found = Notification.parse(data, self._uri) if generation else None
        now = self._cloud.clock.now().replace(microsecond=0)
        state = claim(found, notice, [each.name for each in whom], claimant, now)
        if state is None:
            LOGGER.info("%s: told before, not again", notice.event)
            return found
        claimed = artifacts.write_if(self._uri, state.to_bytes(), generation)
        if claimed is None:
            LOGGER.info("%s: another task tells", notice.event)
            return None
        return self._send_all(state, claimed, [each for each in whom if each.name not in state.told])

    def _send_all(self, state: Notification, generation: int, whom: list[Recipient]) -> Notification:
        message = render_message(self._notice, self._cloud.settings.runbook_url)
        for number, recipient in enumerate(whom, start=1):
            failed = dict(state.failed)
            told = state.told
            try:
                self._send(recipient, message, state)
                told = (*told, recipient.name)
                LOGGER.info("%s: %s is told", self._notice.event, recipient.name)
            except NotSentError as error:
                failed[recipient.name] = str(error)
                LOGGER.warning("%s: %s is not told: %s", self._notice.event, recipient.name, error)
            ended = number == len(whom)
            update = {"told": told, "failed": failed, "state": "told" if ended else "telling"}
            state = state.model_copy(update=update)
            written = self._cloud.artifacts.write_if(self._uri, state.to_bytes(), generation)
            if written is None:
                LOGGER.warning("%s: another task took over", self._notice.event)
                return state
            generation = written
        return state

    def _send(self, recipient: Recipient, message: Message, state: Notification) -> None:
        told_once_for = short(f"{self._uri}|{state.cause}|{state.since.isoformat()}|{recipient.name}")
        message_id = f"<{told_once_for}@{self._cloud.settings.bucket}.retraining>"
        self._cloud.notifiers.send(recipient, message, message_id)


def notify_of(model: str | None) -> Notify:
    """Return whom the model's file names now. For all models, or with a broken file, those of the environment."""
    if model is None:
        return Notify()
    try:
        return files.load_spec(spec_path(include_path(), model)).notify
    except RetrainingError as error:  # a broken file is one of the things to tell of
        LOGGER.warning("the file of %s names nobody: %s", model, type(error).__name__)
        return Notify()


def _told_by_this_run(cloud: CloudPort, notice: Notice, uri: str) -> bool:
    """Say whether this very run told of it: cleared after the cause was over, it has nothing new to say."""
    data, generation = cloud.artifacts.read_generation(uri)
    if not generation or notice.event == "approval":  # who is asked again is told again
        return False
    found = Notification.parse(data, uri)
    return found.cause == notice.cause and found.state == "told" and not found.failed


def _settle(cloud: CloudPort, uri: str) -> None:
    data, generation = cloud.artifacts.read_generation(uri)
    if not generation:
        return
    found = Notification.parse(data, uri)
    if found.state != "over":
        over = found.model_copy(update={"state": "over", "changed": cloud.clock.now().replace(microsecond=0)})
        cloud.artifacts.write_if(uri, over.to_bytes(), generation)


def _slot(context: Context) -> str:
    ti: Any = context["ti"]
    return f"{ti.dag_id}.{ti.task_id}"


def _model_of(context: Context) -> str | None:
    """Return the model of a DAG, or the one that the form of a DAG of all models names."""
    ti: Any = context["ti"]
    given = (context.get("params") or {}).get("model")
    return dags.find_model_of_dag(ti.dag_id) or (given if isinstance(given, str) and dags.is_model(given) else None)


def _claimant(context: Context) -> Claimant:
    ti: Any = context["ti"]
    return Claimant(name=f"{ti.dag_id}/{ti.run_id}/{ti.task_id}/{ti.map_index}", attempt=max(1, ti.try_number))

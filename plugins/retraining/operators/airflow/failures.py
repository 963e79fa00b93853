"""What a failed try leaves: its message in XCom, and in the run's folder, or beside it where there is no plan yet.

Written once per try. Whatever goes wrong here, the error itself comes out.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Context

from retraining.core.documents import Failure
from retraining.core.errors import ContractError
from retraining.core.naming import dags, storage
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.trust import require_run_folder
from retraining.core.report import failures
from retraining.hooks.clock import Clock
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.links import task_address

LOGGER = logging.getLogger(__name__)
KIND_KEY = "error_kind"
"""XCom of a task that failed: the class of its error, for `conclude` to tell of."""
FAILURE_KEY = "failure"
"""XCom of the same: the document with its message."""
RETRAIN = "retrain__"
PLAN = "plan"
JSON = "application/json"


def leave_failure(operator: Any, context: object, error: BaseException) -> None:
    """Write down why a try failed, where the decorated method was given Airflow's context.

    Args:
        operator: Whose method it is.
        context: Airflow's.
        error: With its message for people.
    """
    if not isinstance(context, Mapping) or "ti" not in context:
        return
    try:
        ti: Any = context["ti"]
        ti.xcom_push(key=KIND_KEY, value=type(error).__name__)
        if not ti.dag_id.startswith(RETRAIN) or getattr(operator, "concludes", False):
            return
        failure = failures.describe_failure(error, try_of(ti, ti.task_id, ti.try_number))
        ti.xcom_push(key=FAILURE_KEY, value=failure.to_json())
    except Exception as trouble:  # the error itself must come out
        LOGGER.warning("no XCom %s: %s", FAILURE_KEY, trouble, exc_info=True)
        return
    try:
        _store(operator, ti, failure)
    except Exception as trouble:  # the cloud may be what failed
        LOGGER.warning("the message is in XCom alone: %s", type(trouble).__name__, exc_info=True)


def try_of(ti: Any, task: str, attempt: int) -> failures.Try:
    """Return a try of a task of the run that `ti` belongs to."""
    clock = Clock()  # the hooks', and not the cloud's: that may be what failed
    return failures.Try(
        model=dags.model_of_dag(ti.dag_id),
        dag_run_id=ti.run_id,
        task=task,
        attempt=attempt,
        may_retry=ti.try_number <= (ti.max_tries or 0),
        time=clock.now().replace(microsecond=0),
        log=task_address(ti.dag_id, ti.run_id, task, attempt),
    )


def pulled_failure(ti: Any, task: str) -> Failure | None:
    """Return what the newest try of a task left in XCom; None: nothing that can be read."""
    given = ti.xcom_pull(task_ids=task, key=FAILURE_KEY)
    try:
        return Failure.parse(json.dumps(given), f"XCom of {task}") if isinstance(given, Mapping) else None
    except (ContractError, ValueError) as error:
        LOGGER.warning("XCom %s of %s cannot be read: %s", FAILURE_KEY, task, error)
        return None


def note_states(cloud: CloudPort, run_uri: str, context: Context, states: Mapping[str, str | None]) -> None:
    """Write down what the run's tasks could not say themselves: of one whose worker died, or a run ended by hand."""
    ti: Any = context["ti"]
    found = failures.first_unsuccessful(states)
    if found is None:
        return
    task, failed = found
    if failed and pulled_failure(ti, task) is not None:
        return
    earlier = [uri for uri in list_failures(cloud, run_uri) if ObjectAddress.parse(uri).stem.startswith(f"{task}-")]
    if earlier and earlier[-1].endswith(storage.END_OF_TASK):
        return  # this task was cleared alone, and said so before
    given = try_of(ti, task, 1 + len(earlier))
    failure = failures.lost_task(given) if failed else failures.ended_by_hand(given)
    cloud.artifacts.write_once(storage.task_end_uri(run_uri, task, given.attempt), failure.to_bytes())


def list_failures(cloud: CloudPort, run_uri: str) -> list[str]:
    """Return the addresses of what the tries of a run's tasks have left."""
    return cloud.artifacts.list_uris(storage.failures_uri(run_uri), suffix=".json")


def _store(operator: Any, ti: Any, failure: Failure) -> None:
    """Write a message into the run's folder; what came to none, beside the folders."""
    run_uri = getattr(operator, "run_uri", "")
    cloud: CloudPort = operator.cloud()
    bucket = cloud.settings.bucket
    if failure.task == PLAN:
        owner = (cloud.artifacts.read_object(storage.owner_uri(bucket)) or b"").decode(errors="replace").strip()
        if owner == cloud.settings.environment:
            cloud.artifacts.overwrite(storage.no_plan_uri(bucket, failure.model), failure.to_bytes(), JSON)
    elif run_uri:
        require_run_folder(run_uri, bucket, ti.dag_id)
        cloud.artifacts.write_once(storage.failure_uri(run_uri, failure.task, failure.attempt), failure.to_bytes())


def forget_no_plan(cloud: CloudPort, model: str) -> None:
    """Take away why an earlier run came to no plan: this one has."""
    if found := cloud.objects.find_object(storage.no_plan_uri(cloud.settings.bucket, model)):
        list(cloud.objects.delete([found]))

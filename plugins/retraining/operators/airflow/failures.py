"""What a failed try leaves: its message in XCom, and in the run's folder, or in one of its own where there is no plan.

Written once per try. Whatever goes wrong here, the error itself comes out.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow.sdk import Context

from retraining.core.documents import Failure
from retraining.core.errors import ContractError
from retraining.core.naming import dags, storage
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.trust import require_run_folder
from retraining.core.report import failures
from retraining.core.report.run import read_failures
from retraining.hooks.clock import Clock
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.links import ReportLink, airflow_address, push_link, shown_address, task_address

LOGGER = logging.getLogger(__name__)
KIND_KEY = "error_kind"
"""XCom of a task that failed: the class of its error, for `conclude` to tell of."""
FAILURE_KEY = "failure"
"""XCom of the same: the document with its message."""
PLAN = "plan"
JSON = "application/json"
HTML = "text/html; charset=utf-8"


def leave_failure(operator: Any, context: object, error: BaseException, *, for_good: bool = False) -> None:
    """Write down why a try failed, where the decorated method was given Airflow's context.

    Args:
        operator: Whose method it is.
        context: Airflow's.
        error: With its message for people.
        for_good: Whether no other try follows, whatever the error.
    """
    if not isinstance(context, Mapping) or "ti" not in context:
        return
    try:
        ti: Any = context["ti"]
        ti.xcom_push(key=KIND_KEY, value=type(error).__name__)
        if not ti.dag_id.startswith(dags.RETRAIN) or getattr(operator, "concludes", False):
            return
        its_try = try_of(ti, ti.task_id, ti.try_number)
        its_try = replace(its_try, may_retry=its_try.may_retry and not for_good)
        failure = failures.describe_failure(error, its_try)
        ti.xcom_push(key=FAILURE_KEY, value=failure.to_json())
    except Exception as trouble:  # the error itself must come out
        LOGGER.warning("no XCom %s: %s", FAILURE_KEY, trouble, exc_info=True)
        return
    try:
        _store(operator, context, failure)
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


def _store(operator: Any, context: Any, failure: Failure) -> None:
    """Write a message into the run's folder; what came to none, into that of runs without a plan."""
    ti: Any = context["ti"]
    cloud: CloudPort = operator.cloud()
    run_uri = getattr(operator, "run_uri", "")
    if failure.task == PLAN:
        if page_uri := leave_unplanned(cloud, context, failure):
            push_link(operator, context, ReportLink, shown_address(page_uri))
    elif run_uri:
        require_run_folder(run_uri, cloud.settings.bucket, ti.dag_id)
        uri = storage.failure_uri(run_uri, failure.task, failure.attempt)
        cloud.artifacts.write_once(uri, failure.model_copy(update={"folder_uri": run_uri}).to_bytes())


def unplanned_folder(cloud: CloudPort, context: Context) -> str:
    """Return the folder of the run where it comes to no plan."""
    ti, dag_run = context["ti"], context["dag_run"]
    model = dags.model_of_dag(ti.dag_id)
    return storage.unplanned_run_uri(cloud.settings.bucket, model, dag_run.run_after, ti.run_id)


def find_unplanned(cloud: CloudPort, context: Context) -> str:
    """Return the folder of a run that came to no plan; empty: there is none, as of a DAG without such runs."""
    if not context["ti"].dag_id.startswith(dags.RETRAIN):
        return ""
    folder = unplanned_folder(cloud, context)
    return folder if cloud.artifacts.exists(storage.report_page_uri(folder)) else ""


def leave_unplanned(cloud: CloudPort, context: Context, failure: Failure) -> str | None:
    """Write down why a run came to no plan, and its page; return the page's address.

    None: nothing is written, for the bucket is another environment's, which may be what plan failed with.
    """
    from retraining.core.report.unplanned import render_unplanned  # its template engine is needed here alone

    artifacts, bucket = cloud.artifacts, cloud.settings.bucket
    owner = (artifacts.read_object(storage.owner_uri(bucket)) or b"").decode(errors="replace").strip()
    if owner != cloud.settings.environment:
        return None
    folder = unplanned_folder(cloud, context)
    left = failure.model_copy(update={"folder_uri": folder})
    artifacts.write_once(storage.failure_uri(folder, failure.task, failure.attempt), left.to_bytes())
    if failure.error != failures.ENDED_BY_PLAN:
        artifacts.overwrite(storage.no_plan_uri(bucket, failure.model), left.to_bytes(), JSON)
    written = read_failures(artifacts.read_some(list_failures(cloud, folder)))
    page = render_unplanned(written, bucket, airflow_address(), cloud.settings.runbook_url)
    page_uri = storage.report_page_uri(folder)
    artifacts.overwrite(page_uri, page.encode(), HTML)
    return page_uri


def note_unplanned(
    cloud: CloudPort, context: Context, ended: str | None, states: Mapping[str, str | None]
) -> str | None:
    """Write down why a run came to no plan, unless its plan did; return the page's address.

    Args:
        cloud: The hooks.
        context: Of a task that runs after the run's tasks.
        ended: Why the run's plan ended it; None: it did not.
        states: Of the run's tasks.
    """
    ti: Any = context["ti"]
    found = (PLAN, False) if ended else failures.first_unsuccessful(states)
    if found is None:
        return None
    page_uri = storage.report_page_uri(unplanned_folder(cloud, context))
    left = pulled_failure(ti, PLAN) if found[1] else None
    if left is not None and cloud.artifacts.exists(page_uri):
        return page_uri
    given = try_of(ti, PLAN, left.attempt if left else ti.try_number)
    spoken_for = failures.lost_task if found[1] else failures.ended_by_hand
    return leave_unplanned(
        cloud, context, left or (failures.ended_by_plan(given, ended) if ended else spoken_for(given))
    )


def forget_unplanned(cloud: CloudPort, context: Context) -> None:
    """Take away why an earlier run of the model came to no plan, and all of earlier tries of this run: it has one."""
    folder = unplanned_folder(cloud, context)
    newest = storage.no_plan_uri(cloud.settings.bucket, dags.model_of_dag(context["ti"].dag_id))
    found = [*cloud.objects.walk(folder), *filter(None, [cloud.objects.find_object(newest)])]
    if found:
        list(cloud.objects.delete(found))

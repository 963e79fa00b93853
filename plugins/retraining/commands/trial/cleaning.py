"""Whatever a trial made is found by its names and taken away: after each trial, and after one that was broken off.

Each step is harmless twice, so it may be broken off itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from retraining.commands.shell import attempt
from retraining.commands.trial.pools import pool_of
from retraining.commands.trial.probes import BOARD, FOLDER, LABEL, MODEL, TABLES, Trial
from retraining.core.jobs.machine_pools import STOPPING
from retraining.core.scoring.requests import errors_table_of

GONE_WITHIN = timedelta(minutes=30)


def clean(trial: Trial) -> Iterator[str]:
    """Take away what any trial of this environment made; yield a line for each kind of it.

    Machines come first. Where one step fails the others are done all the same, and the error is raised at the end.
    """
    trial.deadline = datetime.now(UTC) + GONE_WITHIN
    errors: list[Exception] = []
    for step in STEPS:
        done = attempt(partial(step, trial))
        if isinstance(done, Exception):  # the next step may still take something away
            errors.append(done)
        yield f"not done: {type(done).__name__}: {done}" if isinstance(done, Exception) else done
    if errors:
        raise errors[0]
    lock = trial.cloud.objects.find_object(lock_uri(trial))
    if lock is not None:
        list(trial.cloud.objects.delete([lock]))


def lock_uri(trial: Trial) -> str:
    """Return the object that says that a trial is under way, or left something."""
    return f"gs://{trial.cloud.settings.bucket}/{FOLDER}/trial.json"


def _end_jobs(trial: Trial) -> str:
    jobs = trial.cloud.jobs.find_active(LABEL)
    for job in jobs:
        trial.cloud.jobs.cancel(job.name)
    # One that still works would store its model behind the back of the steps that follow.
    trial.wait("the jobs have ended", lambda: not trial.cloud.jobs.find_active(LABEL), GONE_WITHIN)
    return f"{len(jobs)} jobs cancelled"


def _delete_pool(trial: Trial) -> str:
    pools = trial.cloud.machine_pools
    if pools.find(pool_of(trial)) is None:
        return "no pool of machines"

    def gone() -> bool:
        found = pools.find(pool_of(trial))
        if found is not None and found.state != STOPPING:
            pools.delete(pool_of(trial))  # again: one that is still being made may refuse it
        return found is None

    trial.wait("the pool of machines is gone", gone, GONE_WITHIN)
    return "the pool of machines is gone"


def delete_endpoint(trial: Trial) -> str:
    """Take the models of the trial's endpoint away, and the endpoint; return what was done."""
    endpoints = trial.cloud.endpoints
    found = endpoints.get(MODEL)
    if found is None:
        return "no endpoint"
    if found.traffic:
        found = endpoints.set_traffic(found, {})

    def empty() -> bool:
        now = endpoints.get(MODEL)
        if now is None:
            return True
        if endpoints.running_operations(now):  # a deployment that nobody waits for, or what was asked for here
            return False
        if now.deployed:
            endpoints.undeploy(now, next(iter(now.deployed)))
        return not now.deployed

    trial.wait("the endpoint is empty", empty, GONE_WITHIN)
    trial.calls.endpoints.delete_endpoint(found.name)
    return "the endpoint is gone"


def _delete_shared_machines(trial: Trial) -> str:
    calls = trial.calls.endpoints
    trial.wait("the shared machine is made", lambda: not calls.work_on_shared_machines(pool_of(trial)), GONE_WITHIN)
    if not trial.cloud.endpoints.has_shared_machines(pool_of(trial)):
        return "no shared machine"
    calls.delete_shared_machines(pool_of(trial))
    return "the shared machine is gone"


def delete_model(trial: Trial) -> str:
    """Take the trial's model away with its versions; return what was done."""
    versions = len(trial.cloud.registry.list_versions(MODEL))
    trial.calls.models.delete_model(MODEL)
    return f"{versions} versions gone"


def delete_experiment(trial: Trial) -> str:
    """Take the trial's experiment and TensorBoards away; return what was done."""
    boards = trial.calls.boards.delete_boards(BOARD)
    runs = trial.calls.experiments.delete_experiment(MODEL)
    return f"{runs} runs of an experiment and {boards} TensorBoards gone"


def _delete_tables(trial: Trial) -> str:
    warehouse = trial.cloud.warehouse
    # Batch predictions name their tables themselves.
    written = set(trial.calls.jobs.output_tables(LABEL))
    written |= {errors_table_of(table) for table in written}
    tables = [
        table.name
        for table in warehouse.list_tables(trial.cloud.settings.dataset)
        if table.name.rpartition(".")[2].startswith(TABLES) or table.name in written
    ]
    for table in tables:
        warehouse.delete_table(table)
    return f"{len(tables)} tables gone"


def _delete_objects(trial: Trial) -> str:
    settings, objects, count = trial.cloud.settings, trial.cloud.objects, 0
    lock = lock_uri(trial)
    for folder_uri in (f"gs://{settings.bucket}/{FOLDER}", f"gs://{settings.results_bucket}/jobs/{MODEL}"):
        found = [item for item in objects.walk(folder_uri) if item.uri != lock]
        count += sum(each.gone for each in objects.delete(found))
    return f"{count} objects gone"


STEPS = (
    _end_jobs,
    _delete_pool,
    delete_endpoint,
    _delete_shared_machines,
    delete_model,
    delete_experiment,
    _delete_tables,
    _delete_objects,
)
"""Machines first."""

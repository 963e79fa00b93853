"""The change of a champion, as far as it is a matter of thinking: what to go back to, what nobody needs on an endpoint.

In: a rollout's document, and what the endpoint and the registry say. Out: traffic, ids of deployed models, words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from retraining.core.documents import Before, Plan, Registration, Rollout, SmokeRequest, Staging
from retraining.core.documents.deployment import Kept, RolloutState
from retraining.core.documents.document import format_time
from retraining.core.errors import JobError
from retraining.core.naming.vertex import deployed_model_id
from retraining.core.promotion.ramp import failed_gate, persons
from retraining.core.promotion.versions import Version

CLAIM = timedelta(minutes=2)
"""Whoever asked for a deployment had its answer or its error after a minute; then another may ask."""

CLOCKS_DIFFER = timedelta(minutes=5)
"""At most between two workers; a time that is further ahead counts as none: nobody waits until then."""

SILENT = timedelta(hours=2)
SILENT_POKES = 3
"""Sleeps between two looks, where these are longer than that. A task that deploys writes at each poke."""

MOST_STARTS = 3
"""Deployments of one rollout that the service called done, without the model on the endpoint."""

CLOCKS_APART = timedelta(seconds=10)
"""The log's time is the service's, and only roughly that of the answer."""

TEST_TAKES = timedelta(minutes=12)
"""At most: what a test that nobody ended is taken to have lasted."""

SMOKE_REQUESTS_KEPT = 500

OUTAGE_LASTS = timedelta(hours=2)
"""How long a rollout waits for a service that does not answer; then what was before is brought back."""

ANSWERS_WITHIN = timedelta(minutes=20)
"""So long where the service answers and only the version does not: it may be the version's own fault."""

NOT_BEGUN = "its run ended before anything was changed"
"""Of a rollout that was written down at its run's end, so that a process of the run that lives still begins none."""


MACHINES_COME_WITHIN = timedelta(hours=2)
"""Machines come within minutes, or never: how long a deployment, or the end of a run, waits for them."""


def is_open(rollout: Rollout | None) -> bool:
    """Return whether something is still to be completed or brought back."""
    return rollout is not None and rollout.state != "ended"


def is_silent(rollout: Rollout, now: datetime, wake_interval_s: int) -> bool:
    """Return whether the task that carries it out has given no sign for so long that it does not come back.

    A sign that is of a later time than now is none.
    """
    return is_ahead(rollout.changed, now) or now - rollout.changed > max(
        SILENT, SILENT_POKES * timedelta(seconds=wake_interval_s)
    )


def is_ahead(time: datetime, now: datetime) -> bool:
    """Return whether a time was written by a clock that is wrong: it is further ahead than clocks differ."""
    return time - now > CLOCKS_DIFFER


def right_times(rollout: Rollout, now: datetime) -> dict[str, object]:
    """Return the values of an open rollout whose times are ahead, as of now: they would hold it until then."""
    values: dict[str, object] = {}
    if is_ahead(rollout.asked, now):
        values["asked"] = now
    if rollout.outage is not None and is_ahead(rollout.outage, now):
        values["outage"] = now
    if any(is_ahead(step.start, now) for step in rollout.steps):
        values["steps"] = tuple(step.model_copy(update={"start": min(step.start, now)}) for step in rollout.steps)
    return values


def is_left(rollout: Rollout | None, now: datetime, wake_interval_s: int) -> bool:
    """Return whether something is to be brought to an end that nobody goes on with."""
    return rollout is not None and is_open(rollout) and is_silent(rollout, now, wake_interval_s)


def is_another_runs(rollout: Rollout | None, run_key: str) -> bool:
    """Return whether another run's deployment, or a rollback, is open: it comes to its end before this one begins."""
    return rollout is not None and is_open(rollout) and (rollout.run_key != run_key or rollout.rollback is not None)


def is_superseded(mine: Rollout, now: Rollout | None) -> bool:
    """Return whether a change of the champion that somebody is at work on was stopped, or another one has begun.

    Args:
        mine: As the worker knew it.
        now: As it is stored.
    """
    if now is None or (now.run_key, now.rollback) != (mine.run_key, mine.rollback):
        return True
    return now.state == "returning" or was_brought_back(now) or now.stopped_by is not None


def was_brought_back(rollout: Rollout) -> bool:
    """Return whether a rollout ended with what was before it, and not with its version as champion."""
    return rollout.state == "ended" and bool(rollout.reason)


def reason_of_rollback(rollout: Rollout | None, registration: Registration, champion: Version | None) -> str | None:
    """Return why a run's version may not be deployed again, as a sentence: a rollback took its traffic.

    Args:
        rollout: The last one of the model.
        registration: The run's.
        champion: The version with that alias now.
    """
    if rollout is None or is_open(rollout):
        return None
    if rollout.run_key == registration.run_key and rollout.stopped_by:
        return f"Nothing deployed: {rollout.reason}."
    mine, now = registration.version_name, champion.version_name if champion else None
    if rollout.rollback and rollout.before.champion_name == mine != now:
        return f"Nothing deployed: rollback {rollout.rollback} went back from this version."
    return None


def is_refused(rollout: Rollout, run_key: str) -> bool:
    """Return whether its staging or a gate of the ramp ended a run's rollout, and all is as it was before it."""
    failed = failed_gate(rollout.steps) is not None or (rollout.staging is not None and rollout.staging.passed is False)
    return failed and (rollout.state, rollout.run_key) == ("ended", run_key)


def is_complete(rollout: Rollout | None, run_key: str, traffic: Mapping[str, int]) -> bool:
    """Return whether all of a run's deployment was done but its document, and its version serves.

    Args:
        rollout: The last one of the model.
        run_key: Of the run, whose version has the alias champion.
        traffic: Of the endpoint, by deployed-model id.
    """
    if rollout is None or rollout.run_key != run_key:
        return False
    return not rollout.endpoint or bool(traffic.get(deployed_model_id(run_key)))


def begun(
    plan: Plan,
    registration: Registration,
    earlier: Rollout | None,
    before: Before,
    dag_run: str,
    now: datetime,
    rollback: str | None = None,
    *,
    endpoint: bool = True,
) -> Rollout:
    """Return the rollout of a run's version as it is written down before anything is changed.

    Args:
        plan: The run.
        registration: Its version.
        earlier: The last rollout of the model; its smoke requests stay known.
        before: What is so now.
        dag_run: Label of the DAG run.
        now: Whole second.
        rollback: Name of the rollback that this is.
        endpoint: Whether the model has one; else its aliases alone move.
    """
    return Rollout(
        model=plan.model,
        run_key=plan.run_key,
        dag_run=dag_run,
        version_id=registration.version_id,
        version_name=registration.version_name,
        deployed_model_id=deployed_model_id(plan.run_key),
        state="going" if endpoint else "proven",  # the judge has scored it, and nobody asks it anything else
        reason="",
        before=before,
        writer="",
        changed=now,
        asked=now,
        starts=0,
        operation=None,
        smoke_test=None,
        smoke_requests=earlier.smoke_requests if earlier else (),
        keep_previous_hours=plan.spec.deployment.keep_previous_hours if endpoint else 0,
        kept=earlier.kept if earlier else None,
        rollback=rollback,
        endpoint=endpoint,
    )


def staged(rollout: Rollout, endpoint_name: str) -> Rollout:
    """Return a rollout that has begun with its version's try on an endpoint of its own before it.

    Args:
        rollout: Nothing is changed yet.
        endpoint_name: Of the endpoint for tries.
    """
    return rollout.model_copy(update={"state": "staging", "staging": Staging(endpoint_name=endpoint_name)})


def state_before(
    run_key: str,
    champion: Version | None,
    previous: Version | None,
    default: Version | None,
    traffic: Mapping[str, int],
    own: Collection[str],
    *,
    again: bool,
) -> Before:
    """Return what a rollout goes back to.

    Args:
        run_key: Of the run whose version is deployed.
        champion: The version with that alias now.
        previous: The version with that alias now.
        default: The version with that alias now.
        traffic: Of the endpoint, by deployed-model id.
        own: Ids of the deployed models that the version may replace.
        again: Whether the run's own version is champion already: then the one before it was champion.
    """
    mine = deployed_model_id(run_key)
    shares = {key: share for key, share in traffic.items() if key != mine}
    if again:
        champion, previous = previous, None
    return Before(
        champion_id=champion.version_id if champion else None,
        champion_name=champion.version_name if champion else None,
        previous_id=previous.version_id if previous else None,
        default_id=default.version_id if default else None,
        traffic=shares,
        others=persons(shares, own),
    )


def failed_start(endpoint_name: str, operation_error: str) -> JobError:
    """Return the failure of a deployment that ended with an error."""
    return JobError(endpoint_name, f"the deployment failed: {operation_error}", "it to serve", "Clear the deploy task")


def fruitless_starts(rollout: Rollout, endpoint_name: str) -> JobError | None:
    """Return why the deployment is not asked for once more; None: it may be."""
    if rollout.starts < MOST_STARTS:
        return None
    found = f"{rollout.starts} deployments are done, and the endpoint does not have {rollout.deployed_model_id}"
    return JobError(endpoint_name, found, "the deployed model", "Look at the endpoint, clear the deploy task")


def endless_start(rollout: Rollout, endpoint_name: str, now: datetime) -> JobError | None:
    """Return why a deployment is waited for no longer; None: its machines may still come."""
    if now - rollout.asked <= MACHINES_COME_WITHIN:
        return None
    found = f"{rollout.operation or 'the deployment'}, asked for at {format_time(rollout.asked)}, is not done"
    hours = MACHINES_COME_WITHIN / timedelta(hours=1)
    return JobError(
        endpoint_name, found, f"machines within {hours:g} hours", "Look at the endpoint, clear the deploy task"
    )


def endless_outage(rollout: Rollout, now: datetime, error: str, within: timedelta = OUTAGE_LASTS) -> JobError | None:
    """Return why a service is waited for no longer; None: it may answer again.

    Args:
        rollout: Open; its `outage` is noted.
        now: The time.
        error: What the service, or the network, said last.
        within: How long it is waited for.
    """
    if rollout.outage is None or now - rollout.outage <= within:
        return None
    minutes = within / timedelta(minutes=1)
    found = f"no answer since {format_time(rollout.outage)} that the rollout could go on with ({error})"
    return JobError(
        f"rollout of {rollout.version_name}",
        found,
        f"one within {minutes:g} minutes",
        "Clear the deploy task once it answers",
    )


def is_claimed(rollout: Rollout, now: datetime) -> bool:
    """Return whether somebody asked for the deployment a moment ago and has no answer yet."""
    return not rollout.operation and not is_ahead(rollout.asked, now) and now - rollout.asked < CLAIM


def direction(rollout: Rollout, champion: Version | None) -> tuple[RolloutState, str]:
    """Return where a rollout goes when its run goes on with it no more: its next state, and the reason.

    A version that has the alias champion passed its test: its rollout is completed. Any other is taken back.

    Args:
        rollout: An open one.
        champion: The version with that alias now.
    """
    if rollout.state == "proven" and champion is not None and champion.version_id == rollout.version_id:
        return "done", rollout.reason
    if rollout.state in ("staging", "going", "ramping", "proven"):
        return "returning", "its run ended before it was done"
    return rollout.state, rollout.reason


def kept(rollout: Rollout, now: datetime) -> Kept | None:
    """Return what stays deployed without traffic once a rollout is done; None: nobody served, or it is not wanted."""
    before, hours = rollout.before.champion_name, rollout.keep_previous_hours
    return Kept(version_name=before, until=now + timedelta(hours=hours)) if before and hours else None


def replaced(rollout: Rollout, deployed: Mapping[str, str], own: Collection[str]) -> dict[str, str]:
    """Return what the new champion has replaced and nobody keeps: version names by deployed-model id.

    Args:
        rollout: Of the new champion.
        deployed: Version names of all deployed models of the endpoint, by id.
        own: Ids of those that a rollout may replace; what a person deployed is not among them.
    """
    stays = rollout.kept.version_name if rollout.kept else None
    return {
        key: name for key, name in deployed.items() if key in own and key != rollout.deployed_model_id and name != stays
    }


def unclaimed(
    deployed: Mapping[str, str],
    traffic: Mapping[str, int],
    ours: Collection[str],
    rollout: Rollout | None,
    now: datetime,
) -> list[str]:
    """Return the deployed models that cost and serve nobody.

    They are without traffic, made by a run, not kept for a way back, and no rollout is open.

    Args:
        deployed: Version names of all deployed models of the endpoint, by id.
        traffic: By id.
        ours: Ids that runs of this system give to their deployed models; what a person deployed is not among them.
        rollout: Of the model.
        now: Whether what is kept still is.
    """
    if is_open(rollout):
        return []
    held = rollout.kept if rollout else None
    stays = held.version_name if held and held.until > now else None
    return sorted(key for key, name in deployed.items() if key in ours and not traffic.get(key) and name != stays)


def with_smoke_request(
    rollout: Rollout, answering: Iterable[str], start: datetime, end: datetime, instances: int
) -> tuple[SmokeRequest, ...]:
    """Return the smoke requests that the monitor leaves out, with one more, or with this one's end where it was open.

    Args:
        rollout: Whose version is asked.
        answering: Ids of the deployed models that may answer.
        start: When it began.
        end: When it ended, or will have ended at the latest.
        instances: Of the request.
    """
    asked = [
        SmokeRequest(
            deployed_model_id=deployed_id,
            instances=instances,
            start=(start - CLOCKS_APART).replace(microsecond=0),
            end=(end + CLOCKS_APART).replace(microsecond=0),
        )
        for deployed_id in answering
    ]
    known = {(item.deployed_model_id, item.start) for item in asked}
    others = [item for item in rollout.smoke_requests if (item.deployed_model_id, item.start) not in known]
    return (*others, *asked)[-SMOKE_REQUESTS_KEPT:]

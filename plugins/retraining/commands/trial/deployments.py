"""What several probes need of an endpoint: its machine, its versions, and a deployment that is waited for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from retraining.commands.trial.probes import MODEL, Trial
from retraining.commands.trial.registry import run_key
from retraining.core.naming.vertex import deployed_model_id
from retraining.hooks.endpoints import Endpoint

MACHINE = "n1-standard-2"
REPLICAS = {"machine_type": MACHINE, "min_replicas": 1, "max_replicas": 1}
DEPLOYED_WITHIN = timedelta(minutes=40)
SHARED_WITHIN = timedelta(minutes=5)
"""Until another share of the traffic is in force."""
LOGGED_WITHIN = timedelta(minutes=15)
ANSWER_S = 30.0


def deploy(trial: Trial, number: int, machine: Mapping[str, object]) -> None:
    """Deploy a version of a number, and wait until it is there and the work is done.

    Raises:
        RuntimeError: The work failed.
        JobError: It did not come to an end.
    """
    endpoints, deployed = trial.cloud.endpoints, deployed_id(trial, number)
    started = endpoints.start_deploy(find_endpoint(trial), version_name(trial, number), run_key(trial, number), machine)

    def look() -> bool:
        if started is not None and (now := endpoints.operation(started.name)) is not None and now.error:
            raise RuntimeError(now.error)
        return deployed in find_endpoint(trial).deployed and (
            started is None or (now := endpoints.operation(started.name)) is None or now.done
        )

    trial.wait("deployed", look, DEPLOYED_WITHIN)


def find_endpoint(trial: Trial) -> Endpoint:
    """Return the trial's endpoint.

    Raises:
        LookupError: It is not there.
    """
    found = trial.cloud.endpoints.get(MODEL)
    if found is None:
        raise LookupError("the trial's endpoint is not there")
    return found


def version_name(trial: Trial, number: int) -> str:
    """Return the full name of the trial's version of a number.

    Raises:
        LookupError: It is not there.
    """
    version = trial.cloud.registry.find_by_run(MODEL, run_key(trial, number))
    if version is None:
        raise LookupError(f"version {number} of the trial is not there")
    return version.version_name


def deployed_id(trial: Trial, number: int) -> str:
    """Return the id under which a version of a number is deployed."""
    return deployed_model_id(run_key(trial, number))

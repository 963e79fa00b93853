"""The change of a champion, as far as it is a matter of thinking: what to go back to, what nobody needs on an endpoint.

In: a rollout's document, and what the endpoint and the registry say. Out: traffic, ids of deployed models, words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from retraining.core.documents import Rollout, SmokeRequest

CLAIM = timedelta(minutes=2)
"""Whoever asked for a deployment had its answer or its error after a minute; then another may ask."""

SILENT = timedelta(hours=2)
SILENT_WAKES = 3
"""Sleeps between two looks, where these are longer than that. A task that deploys writes at each wake."""

MOST_STARTS = 3
"""Deployments of one rollout that the service called done, without the model on the endpoint."""

CLOCKS_APART = timedelta(seconds=10)
"""The log's time is the service's, and only roughly that of the answer."""

TEST_TAKES = timedelta(minutes=4)
"""At most: what a test that nobody ended is taken to have lasted."""

SMOKE_REQUESTS_KEPT = 500


def is_open(rollout: Rollout | None) -> bool:
    """Whether something is still to be completed or brought back."""
    return rollout is not None and rollout.state != "ended"


def is_silent(rollout: Rollout, now: datetime, wake_interval_s: int) -> bool:
    """Whether the task that carries it out has given no sign for so long that it does not come back."""
    return now - rollout.changed > max(SILENT, SILENT_WAKES * timedelta(seconds=wake_interval_s))


def traffic_before(rollout: Rollout, deployed: Mapping[str, str]) -> dict[str, int]:
    """The traffic to go back to: as it was; where that is gone, the champion's; else none, and the endpoint is empty.

    Args:
        rollout: With what was before.
        deployed: Version name by deployed-model id, as the endpoint has them now.
    """
    mine = rollout.deployed_model_id
    noted = {key: share for key, share in rollout.before.traffic.items() if share and key in deployed and key != mine}
    if sum(noted.values()) == 100:
        return noted
    champions = sorted(
        key for key, name in deployed.items() if name == rollout.before.champion_name and name and key != mine
    )
    return {champions[-1]: 100} if champions else {}


def unclaimed(
    deployed: Iterable[str], traffic: Mapping[str, int], ours: Collection[str], rollout: Rollout | None
) -> list[str]:
    """Deployed models that cost and serve nobody: without traffic, made by a run, and no rollout is open.

    Args:
        deployed: Ids of all deployed models of the endpoint.
        traffic: By id.
        ours: Ids that runs of this system give to their deployed models; what a person deployed is not among them.
        rollout: Of the model.
    """
    if is_open(rollout):
        return []
    return sorted(key for key in deployed if key in ours and not traffic.get(key))


def with_smoke_request(rollout: Rollout, start: datetime, end: datetime, instances: int) -> tuple[SmokeRequest, ...]:
    """The smoke requests that the monitor leaves out, with one more, or with this one's end where it was open.

    Args:
        rollout: Whose version is asked.
        start: When it began.
        end: When it ended, or will have ended at the latest.
        instances: Of the request.
    """
    one = SmokeRequest(
        deployed_model_id=rollout.deployed_model_id,
        instances=instances,
        start=(start - CLOCKS_APART).replace(microsecond=0),
        end=(end + CLOCKS_APART).replace(microsecond=0),
    )
    kept = [
        item
        for item in rollout.smoke_requests
        if (item.deployed_model_id, item.start) != (one.deployed_model_id, one.start)
    ]
    return (*kept, one)[-SMOKE_REQUESTS_KEPT:]

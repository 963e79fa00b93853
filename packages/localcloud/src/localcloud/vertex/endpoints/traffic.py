"""Traffic splits: which share of an endpoint's requests goes to which deployed model. Pure functions.

The rules, from the documentation of DeployModel, UndeployModel and Endpoint.traffic_split: percentages add up to 100,
or the split is empty; "0" stands for the model being deployed; a model with traffic cannot be undeployed unless the
same request takes it away; the last model's traffic goes with it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from google.cloud.aiplatform_v1.types import Endpoint

from localcloud.vertex.wire.errors import FailedPrecondition, InvalidArgument

Split = Mapping[str, int]
NEW = "0"


def deployed_ids(endpoint: Endpoint) -> list[str]:
    """Return ids of what is deployed to an endpoint, oldest first."""
    return [deployed.id for deployed in endpoint.deployed_models]


def check(split: Split, deployed_ids: Collection[str]) -> None:
    """Raise unless the split is empty or shares 100 percent among deployed models.

    Raises:
        InvalidArgument: Another sum, a share outside 0..100, or an unknown deployed model.
    """
    strangers = sorted(set(split) - set(deployed_ids))
    if strangers:
        raise InvalidArgument(
            f"traffic_split names {strangers}. Expected ids of deployed models: {sorted(deployed_ids)}.",
            field="traffic_split",
        )
    if any(not 0 <= share <= 100 for share in split.values()) or (split and sum(split.values()) != 100):
        raise InvalidArgument(
            f"traffic_split {dict(split)} adds up to {sum(split.values())}. Expected shares of 0 to 100"
            f" that add up to 100.",
            field="traffic_split",
        )


def after_deploy(current: Split, requested: Split, new_id: str, deployed_ids: Collection[str]) -> dict[str, int]:
    """Return the split once a model is deployed: the requested one with "0" replaced by its id, or the current one.

    Raises:
        InvalidArgument: The requested one is malformed.
    """
    if not requested:
        return dict(current)
    if NEW in requested and new_id in requested:
        raise InvalidArgument(
            f'traffic_split names the new model twice, as "0" and as {new_id!r}. Use "0".', field="traffic_split"
        )
    split = {new_id if key == NEW else key: share for key, share in requested.items()}
    check(split, {*deployed_ids, new_id})
    return {key: share for key, share in split.items() if share > 0}


def after_undeploy(current: Split, requested: Split, gone_id: str, remaining_ids: Collection[str]) -> dict[str, int]:
    """Return the split once a model is undeployed.

    Raises:
        InvalidArgument: The requested split is malformed.
        FailedPrecondition: The model would still have traffic.
    """
    if not remaining_ids:
        return {}
    split = {key: share for key, share in (requested or current).items() if share > 0}
    if gone_id in split:
        raise FailedPrecondition(
            f"The deployed model {gone_id} has {split[gone_id]} percent of the traffic. Give its traffic to"
            f" others first,"
            " with traffic_split in this request or by UpdateEndpoint."
        )
    check(split, remaining_ids)
    return split


def choose(split: Split, chance: random.Random) -> str | None:
    """Return a deployed model, each as often as its share says; None for an empty split."""
    ids = sorted(key for key, share in split.items() if share > 0)
    return chance.choices(ids, [split[key] for key in ids])[0] if ids else None

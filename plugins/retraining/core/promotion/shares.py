"""Whose share of the traffic is whose, while a rollout goes on, and which traffic there is without its version.

In: what was before, and what the endpoint has now. Out: traffic in percent by deployed-model id. What no run made and
is not the champion's is a person's: it keeps its share, on the way and back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from retraining.core.documents import Before, Rollout
from retraining.core.naming.vertex import deployed_model_id
from retraining.core.promotion.versions import Version


def own_models(deployed: Mapping[str, str], versions: Iterable[Version], champion_name: str | None) -> set[str]:
    """Return the deployed models that runs made, or that are the champion: what a rollout may replace.

    Args:
        deployed: Version names of the endpoint's deployed models, by id.
        versions: All of the model.
        champion_name: The champion's; None: there is none.
    """
    made = {deployed_model_id(version.run_key) for version in versions if version.run_key}
    return {key for key, name in deployed.items() if key in made or name == champion_name}


def persons(traffic: Mapping[str, int], own: Collection[str]) -> tuple[str, ...]:
    """Return the ids with a share that a rollout leaves as they are; none where all shares are such.

    Args:
        traffic: By id.
        own: What a rollout may replace.
    """
    others = tuple(sorted(key for key, share in traffic.items() if share and key not in own))
    return others if sum(traffic[key] for key in others) < 100 else ()


def split(before: Mapping[str, int], deployed_id: str, percent: int, others: Collection[str] = ()) -> dict[str, int]:
    """Return the traffic with a version's share; what it replaces shares the rest in proportion, to the whole percent.

    Args:
        before: Traffic without it, which adds up to 100; empty: nobody serves, and it has all.
        deployed_id: Of the version.
        percent: 1 to 100; what `others` leave of it at most.
        others: Ids that keep their share.
    """
    if not before:
        return {deployed_id: 100}
    kept = {key: share for key, share in before.items() if share and key in others}
    room = 100 - sum(kept.values())
    percent = min(percent, room)
    replaced = {key: share for key, share in before.items() if key not in kept}
    return {deployed_id: percent} | _spread(replaced, room - percent) | kept


def with_version(before: Before, deployed_id: str, percent: int) -> dict[str, int]:
    """Return the traffic with a share of a rollout's version, by what was before it."""
    return split(before.traffic, deployed_id, percent, before.others)


def main_model(before: Before) -> str:
    """Return the deployed model that a version is compared with: the largest share of what it replaces."""
    replaced = {key: share for key, share in before.traffic.items() if key not in before.others}
    return max(replaced, key=replaced.__getitem__)


def without_version(rollout: Rollout, traffic: Mapping[str, int], deployed: Mapping[str, str]) -> dict[str, int] | None:
    """Return the traffic without a rollout's version, by what the endpoint has now.

    As it was before, where the shares are as the rollout left them. Where a person changed them, theirs stay, and the
    version's share goes to what it was to replace.

    Args:
        rollout: With what was before.
        traffic: Of the endpoint now, by id.
        deployed: Version name by deployed-model id, as the endpoint has them now.

    Returns:
        None: somebody took away what served before, and nobody else is there to answer.
    """
    mine, before = rollout.deployed_model_id, rollout.before
    share, rest = traffic.get(mine, 0), {key: value for key, value in traffic.items() if value and key != mine}
    if not share:
        return rest
    noted = {key: value for key, value in before.traffic.items() if value}
    left = {key: value for key, value in with_version(before, mine, share).items() if key != mine}
    if rest == left and noted.keys() <= deployed.keys():
        return noted
    replaced = {key for key in noted if key not in before.others}
    heirs = {key: value for key, value in rest.items() if key in replaced}
    heirs = heirs or {key: value for key, value in noted.items() if key in replaced and key in deployed}
    heirs = heirs or _champions(rollout, deployed) or rest
    if not heirs:
        return {} if not noted else None
    stays = {key: value for key, value in rest.items() if key not in heirs}
    return stays | _spread(heirs, 100 - sum(stays.values()))


def _champions(rollout: Rollout, deployed: Mapping[str, str]) -> dict[str, int]:
    """Return the deployed model of the champion before, where it is deployed under an id that had no share."""
    name, mine = rollout.before.champion_name, rollout.deployed_model_id
    found = sorted(key for key, version_name in deployed.items() if name and version_name == name and key != mine)
    return dict.fromkeys(found[-1:], 1)


def _spread(shares: Mapping[str, int], total: int) -> dict[str, int]:
    """Share some percent in proportion; the largest has what is left over, who has nothing is left out."""
    whole = sum(shares.values())
    spread = {key: share * total // whole for key, share in shares.items()}
    if spread:
        spread[max(shares, key=shares.__getitem__)] += total - sum(spread.values())
    return {key: share for key, share in spread.items() if share}

"""How traffic goes over to a new version: which share it has at each step.

In: what served before, in percent by deployed-model id. Out: the same with the new version.
"""

from __future__ import annotations

from collections.abc import Mapping

FIRST_PERCENT = 1
"""The share of a version that no request has met yet, while another one serves; at 0 % it could not be asked."""


def first_percent(before: Mapping[str, int]) -> int:
    """Return the share that a version is tried with: little while another one serves, else all.

    Args:
        before: Traffic without it, by deployed-model id; empty: nobody serves.
    """
    return FIRST_PERCENT if before else 100


def split(before: Mapping[str, int], deployed_id: str, percent: int) -> dict[str, int]:
    """Return the traffic with a version's share; the others keep theirs in proportion, to the whole percent.

    Args:
        before: Traffic without it, which adds up to 100; empty: nobody serves, and it has all.
        deployed_id: Of the version.
        percent: 1 to 100.
    """
    if not before:
        return {deployed_id: 100}
    rest = 100 - percent
    shares = {key: share * rest // 100 for key, share in before.items()}
    shares[max(before, key=before.__getitem__)] += rest - sum(shares.values())
    return {deployed_id: percent} | {key: share for key, share in shares.items() if share}

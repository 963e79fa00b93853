"""What another release makes of a stored run: whether it would plan the same one again.

In: a plan as it is stored. Out: whether this release gives the same inputs the same key, and what makes the difference.
A task that goes on reads the stored plan, so that a night under way ends as it began; only a run that is planned again
is another one, with jobs of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from retraining.core.documents import Plan
from retraining.core.documents.document import read_object
from retraining.core.naming.run_keys import RunKey
from retraining.core.planning.plan import DECIDES_NOTHING, OwnParts, deciding_values
from retraining.core.untyped import JsonObject

MOST_NAMED = 5
"""Differences that are named one by one."""


def key_changes(data: bytes, where: str) -> list[str]:
    """Return what makes a stored run another one by this release; empty: it is the same run.

    Args:
        data: `plan.json`.
        where: Its address, for messages.

    Raises:
        ContractError: This release cannot read it.
    """
    plan = Plan.parse(data, where)
    own = OwnParts(assertions=plan.assertions, gates=plan.gates, taken_from=plan.taken_from)
    decides = deciding_values(plan.spec, plan.query, plan.golden_query, plan, own)
    given = {"mode": plan.mode, "deploy": plan.deploy, "attempt": plan.attempt}
    if str(RunKey.of(plan.as_of, {**decides, **given})) == plan.run_key:
        return []
    spec: JsonObject = read_object(data, where)["spec"]
    stored = {name: value for name, value in spec.items() if name not in DECIDES_NOTHING}
    found = list(_differences(stored, decides["spec"], ""))
    if not found:
        return ["what decides beside the spec"]
    return [*found[:MOST_NAMED], *([f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else [])]


def _differences(stored: object, now: object, path: str) -> Iterator[str]:
    """Yield the keys whose value is another one."""
    if isinstance(stored, dict) and isinstance(now, dict):
        for name in sorted(stored.keys() | now.keys()):
            at = f"{path}.{name}" if path else name
            if name not in stored:
                yield f"{at} is new, {json.dumps(now[name])[:80]}"
            elif name not in now:
                yield f"{at} is gone"
            else:
                yield from _differences(stored[name], now[name], at)
    elif stored != now and json.dumps(stored) != json.dumps(now):
        yield f"{path} was {json.dumps(stored)[:80]}, is {json.dumps(now)[:80]}"

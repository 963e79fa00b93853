"""Keys of runs: made from what decides a run's result, and read back for its time. And keys of frozen sets."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

from retraining.core.documents.document import RUN_KEY_PATTERN, canonical_json
from retraining.core.documents.plan import Plan
from retraining.core.errors import ContractError

_AS_OF_FORMAT = "%Y%m%dt%H%M%Sz"


def run_key(as_of: datetime, decides: object) -> str:
    """Key of a run: its time, and a hash of everything that decides the result. Also a valid label value.

    Args:
        as_of: The run's time.
        decides: JSON value of the spec after overrides, SQL hash, image, mode, deploy and attempt.
    """
    return f"{stamp(as_of)}-{hashlib.sha256(canonical_json(decides)).hexdigest()[:12]}"


def run_key_as_of(key: str) -> datetime:
    """The time (UTC) a run key begins with.

    Raises:
        ContractError: It is no run key.
    """
    if not re.match(RUN_KEY_PATTERN, key):
        raise ContractError("run key", repr(key), "one like 20131120t030000z-0123456789ab")
    return datetime.strptime(key.split("-")[0], _AS_OF_FORMAT).replace(tzinfo=UTC)


def golden_key(plan: Plan) -> str:
    """Return what tells a model's frozen sets apart: a hash of the query's text.

    Raises:
        ContractError: The plan has none.
    """
    if plan.golden_query is None:
        raise ContractError("plan.json", "no golden_query", "one")
    return plan.golden_query.sha256[:16]


def stamp(as_of: datetime) -> str:
    """Return a time as names begin with it: sorted by name is sorted by time."""
    return as_of.astimezone(UTC).strftime(_AS_OF_FORMAT)

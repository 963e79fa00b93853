"""Keys of runs: made from what decides a run's result, and read back for its time. And keys of frozen sets."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from retraining.core.documents.document import RUN_KEY_PATTERN, canonical_json, digest
from retraining.core.documents.plan import Plan
from retraining.core.errors import ContractError
from retraining.core.spec.features import class_names

_AS_OF_FORMAT = "%Y%m%dt%H%M%Sz"


@dataclass(frozen=True, kw_only=True)
class RunKey:
    """Key of a run, `20131120t030000z-0123456789ab`: its time (UTC), and a hash of what decides the result.

    As text it is a valid label value and folder name, and sorted by name is sorted by time.
    """

    as_of: datetime
    sha256: str

    @classmethod
    def of(cls, as_of: datetime, decides: object) -> RunKey:
        """Make the key of a run.

        Args:
            as_of: The run's time.
            decides: JSON value of the spec after overrides, SQL hash, image, mode, deploy and attempt.
        """
        return cls(as_of=as_of.astimezone(UTC), sha256=hashlib.sha256(canonical_json(decides)).hexdigest()[:12])

    @classmethod
    def parse(cls, text: str) -> RunKey:
        """Read a key.

        Raises:
            ContractError: It is no run key.
        """
        if not is_run_key(text):
            raise ContractError("run key", repr(text), "one like 20131120t030000z-0123456789ab")
        time, sha256 = text.split("-")
        return cls(as_of=datetime.strptime(time, _AS_OF_FORMAT).replace(tzinfo=UTC), sha256=sha256)

    @property
    def stamp(self) -> str:
        """The time as the key begins with it."""
        return stamp(self.as_of)

    def __str__(self) -> str:
        """Return the key as text."""
        return f"{self.stamp}-{self.sha256}"


def is_run_key(text: str) -> bool:
    """Return whether a text has the form of a run key."""
    return re.fullmatch(RUN_KEY_PATTERN, text) is not None


def frozen_set_key(plan: Plan) -> str:
    """Return what tells a model's frozen sets apart: a hash of the query's text, and of the classes' names.

    Raises:
        ContractError: The plan has none.
    """
    if plan.golden_query is None:
        raise ContractError("plan.json", "no golden_query", "one")
    labels = (plan.spec.label, *plan.spec.auxiliary_labels)
    names = {label.name: list(named) for label in labels if (named := class_names(label))}
    sha256 = plan.golden_query.sha256  # numbers stand for the names in the table, so other names are another one
    return (digest(canonical_json([sha256, names])) if names else sha256)[:16]


def stamp(as_of: datetime) -> str:
    """Return a time as names begin with it: sorted by name is sorted by time."""
    return as_of.astimezone(UTC).strftime(_AS_OF_FORMAT)

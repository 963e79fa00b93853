"""Who may write a destination: one scoring at a time, and no longer than it holds the claim.

The claim is an object that is changed by compare and set. A write happens elsewhere, and may come late: from a task
that was stopped between its look at the claim and its write. So who is about to write takes a number first: one more
than the highest that stands in the table of claims, and only while the claim is still its own. The statement that
writes looks at that table: a higher number, or the same of another holder, and nothing is written.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import cast

from retraining.core.documents.json_text import read_json
from retraining.core.errors import ConflictError, ContractError
from retraining.core.untyped import JsonObject

RELEASED = "released"
"""Holder that a number has once its run has ended."""


@dataclass(frozen=True, kw_only=True)
class DestinationClaim:
    """A scoring's right to write a table, or a day of it, until it ends.

    Attributes:
        dag_id: Of the run.
        dag_run_id: Of the run.
        table: The destination, or a day of it.
        number: What the write is known by; 0: nothing is written yet.
        attempt: Who took the number: which clearing of the task.
    """

    dag_id: str
    dag_run_id: str
    table: str
    number: int = 0
    attempt: str = ""

    @property
    def holder(self) -> str:
        """Who has the number."""
        return self.attempt if self.attempt == RELEASED else f"{self.dag_run_id} of {self.dag_id}, {self.attempt}"

    def to_bytes(self) -> bytes:
        """Return the claim as it is stored."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, data: bytes, uri: str) -> DestinationClaim:
        """Read what `to_bytes` gave, in this release or an earlier one.

        Raises:
            ContractError: It is none.
        """
        try:
            return cls(**cast(JsonObject, read_json(data)))
        except (ValueError, TypeError) as error:
            way_out = "Delete it, once no run writes that destination"
            raise ContractError(uri, "no claim of a scoring", "dag_id, dag_run_id and table", way_out) from error

    def is_run(self, other: DestinationClaim) -> bool:
        """Tell whether another claim is of the same run."""
        return (self.dag_id, self.dag_run_id) == (other.dag_id, other.dag_run_id)

    def numbered(self, number: int, attempt: str) -> DestinationClaim:
        """Return the claim with a number."""
        return replace(self, number=number, attempt=attempt)

    def require_mine(self, holder: DestinationClaim, uri: str) -> None:
        """Refuse to go on while another run has it.

        Raises:
            ConflictError: One does; names it.
        """
        if not self.is_run(holder):
            raise ConflictError(
                self.table,
                f"run {holder.dag_run_id} of {holder.dag_id} writes it",
                "one scoring at a time",
                f"Wait until that run has ended, then clear this task; if there is no such run, delete {uri}",
            )

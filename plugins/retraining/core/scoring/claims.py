"""Who may write a destination: one scoring at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass

from retraining.core.errors import ConflictError


@dataclass(frozen=True, kw_only=True)
class DestinationClaim:
    """A scoring's right to write a table, or a day of it, until it ends."""

    dag_id: str
    dag_run_id: str
    table: str

    def to_bytes(self) -> bytes:
        """Return the claim as it is stored."""
        return json.dumps({"dag_id": self.dag_id, "dag_run_id": self.dag_run_id, "table": self.table}).encode()

    @classmethod
    def parse(cls, data: bytes) -> DestinationClaim:
        """Read what `to_bytes` gave."""
        return cls(**json.loads(data))

    def require_mine(self, holder: DestinationClaim, uri: str) -> None:
        """Refuse to go on while another run has it.

        Raises:
            ConflictError: One does; names it.
        """
        if holder != self:
            raise ConflictError(
                self.table,
                f"run {holder.dag_run_id} of {holder.dag_id} writes it",
                "one scoring at a time",
                f"Wait until that run has ended, then clear this task; if there is no such run, delete {uri}",
            )

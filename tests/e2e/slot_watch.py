"""How long a task holds a worker slot, by what the scheduler says of it."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

from demo.customers import beside
from retraining_laptop.airflow_api import AirflowApi


@dataclass(kw_only=True)
class SlotWatch:
    """Look at a task's state, as the API tells it, and add up how long it holds a worker slot.

    Attributes:
        longest_s: The longest time in state running without a break.
        sum_s: All of them together.
        took_s: From the first of them to the end of the last.
    """

    api: AirflowApi
    dag_id: str
    run_id: str
    task_id: str
    longest_s: float = 0.0
    sum_s: float = 0.0
    took_s: float = 0.0
    _first: float | None = None
    _since: float | None = None

    def watching(self) -> AbstractContextManager[None]:
        """Begin to look."""
        return beside(self._look, 0.2)

    def _look(self) -> None:
        states = {ti["task_id"]: ti["state"] for ti in self.api.task_instances(self.dag_id, self.run_id)}
        now = time.monotonic()
        if states.get(self.task_id) == "running":
            self._since = self._since or now
            self._first = self._first or now
            self.took_s = now - self._first
        elif self._since is not None:
            held = now - self._since
            self.longest_s, self.sum_s, self._since = max(self.longest_s, held), self.sum_s + held, None

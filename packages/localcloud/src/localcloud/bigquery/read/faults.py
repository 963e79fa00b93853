"""Faults of the Storage Read API: calls that fail, sessions with many streams, streams that break.

In: the store of faults. Out: what the service asks before it answers.
"""

from __future__ import annotations

import time

import grpc

from localcloud.bigquery.read.sessions import RefusalError
from localcloud.faults import FaultStore, InjectedError


class ReadFaults:
    """Faults of the Storage Read API. Refuses, waits, or says after how many rows a stream breaks."""

    def __init__(self, faults: FaultStore) -> None:
        self._faults = faults

    def meet(self, method: str, table: str) -> None:
        """Let a fault for a call that has one answer happen.

        Args:
            method: `CreateReadSession`, for example.
            table: project.dataset.table

        Raises:
            RefusalError: The fault is an error.
        """
        try:
            with self._faults.intercept(f"BigQueryRead.{method}", table, kinds=("error", "delay")):
                pass
        except InjectedError as error:
            raise RefusalError(grpc.StatusCode[error.code], error.message) from None

    def meet_size(self, table: str, requested: int) -> int | None:
        """Return into how many streams a table is to be cut whatever its size; None when its size decides.

        Args:
            table: project.dataset.table
            requested: How many the client asks for.
        """
        action = self._faults.take("BigQueryRead.CreateReadSession", table, kinds=("split",))
        return None if action is None else int(action["streams"]) or requested

    def meet_stream(self, table: str) -> tuple[int, RefusalError] | None:
        """Return after how many rows a stream is to break, and with what; None when it goes well."""
        action = self._faults.take("BigQueryRead.ReadRows", table, kinds=("error", "delay", "break"))
        if action is None:
            return None
        if action["kind"] == "delay":
            time.sleep(float(action["seconds"]))
            return None
        refusal = RefusalError(grpc.StatusCode[action["code"]], action["message"])
        return (int(action["after"]) if action["kind"] == "break" else 0), refusal

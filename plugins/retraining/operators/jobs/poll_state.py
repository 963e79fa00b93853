"""What a waiting task remembers between two pokes of the same try.

Airflow deletes a task's XComs at the start of every poke, and its own state store came with 3.3 only: a small object on
storage it is. It is a help, not a truth: without it lines are printed again and operations are looked up again.
"""

from __future__ import annotations

import json
import logging

from retraining.core.documents.document import read_object
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.core.untyped import JsonObject
from retraining.hooks.ports import ArtifactsPort

LOGGER = logging.getLogger(__name__)


class PollMemory:
    """A JSON mapping of one task instance's try.

    Args:
        artifacts: Cloud Storage.
        bucket: Of the settings.
        key: Identity of the task instance's work, for example a job key.
        try_number: Another try has another log file and begins anew.
    """

    def __init__(self, artifacts: ArtifactsPort, bucket: str, key: str, try_number: int) -> None:
        self._artifacts = artifacts
        self._uri = storage.poke_uri(bucket, key)
        self._try_number = try_number

    def load_values(self) -> JsonObject:
        """Return what the last poke saved; nothing in the first one."""
        data = self._artifacts.read_object(self._uri)
        if data is None:
            return {}
        try:
            saved = read_object(data, self._uri)
        except ContractError as error:
            LOGGER.warning("%s What the last poke left counts for nothing", error)
            return {}
        values = saved.get("values")
        return values if saved.get("try_number") == self._try_number and isinstance(values, dict) else {}

    def save_values(self, **values: object) -> None:
        """Keep values for the next poke."""
        document = {"try_number": self._try_number, "values": values}
        self._artifacts.overwrite(self._uri, json.dumps(document).encode(), "application/json")

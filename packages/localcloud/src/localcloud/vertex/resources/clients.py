"""Google's own clients of the other services, made when first needed: the gateway may start after this server."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

# A client of Google's: they publish no types.
Client = Any


class Clients:
    """The clients of this server.

    Args:
        environment: Gives the variables that lead Google's clients to the local cloud.
    """

    def __init__(self, project: str, environment: Callable[[], Mapping[str, str]]) -> None:
        self._project = project
        self._environment = environment
        self._lock = threading.Lock()
        self._clients: dict[str, Client] = {}

    def storage(self) -> Client:
        """Return a google.cloud.storage.Client."""
        from google.cloud import storage  # takes a second; the server answers before it is needed

        return self._get("storage", lambda: storage.Client(project=self._project))

    def bigquery(self) -> Client:
        """Return a google.cloud.bigquery.Client."""
        from google.cloud import bigquery

        return self._get("bigquery", lambda: bigquery.Client(project=self._project))

    def bigquery_read(self) -> Client:
        """Return a google.cloud.bigquery_storage_v1.BigQueryReadClient."""
        from google.cloud import bigquery_storage_v1

        return self._get("bigquery_read", bigquery_storage_v1.BigQueryReadClient)

    def _get(self, name: str, make: Callable[[], Client]) -> Client:
        with self._lock:
            if name not in self._clients:
                for variable, value in self._environment().items():
                    if value:
                        os.environ[variable] = value
                    else:
                        os.environ.pop(variable, None)
                self._clients[name] = make()
            return self._clients[name]

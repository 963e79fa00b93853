"""Pages, made from the bucket's objects in threads of their own, and not for longer than a reader waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from retraining.core.errors import ContractError
from retraining.hooks.cloud import Cloud
from retraining.hooks.ports import ArtifactsPort
from retraining.hooks.session import explain

TIMEOUT_S = 15.0
MOST_BYTES = 16_000_000
"""Of one object; a run's page with its pictures has at most 6 MB."""
THREADS = 4
"""Calls that hang fill these, and not the pool that Airflow's own pages need."""

_P = TypeVar("_P")


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """What a page is made from: this environment's bucket, as its thread reads it."""

    name: str
    artifacts: ArtifactsPort

    def read(self, uri: str) -> bytes | None:
        """Return an object's bytes; None when there is none.

        Raises:
            RetrainingError: Google refuses it, or it is larger than `MOST_BYTES`.
        """
        data = _explained(lambda: self.artifacts.read_ranges({uri: (0, MOST_BYTES + 1)})).get(uri)
        if data is None:
            return _explained(lambda: self.artifacts.read_object(uri))  # says so where there is no bucket
        if len(data) > MOST_BYTES:
            raise ContractError(uri, f"more than {MOST_BYTES:,} bytes", "what a page can show", "Read it in the bucket")
        return data

    def existing(self, uris: list[str]) -> list[str]:
        """Return those of the addresses that have an object.

        Raises:
            RetrainingError: Google refuses it.
        """
        return _explained(lambda: self.artifacts.existing(uris))

    def list_documents(self, folder_uri: str) -> list[str]:
        """Return the addresses of the documents in a folder.

        Raises:
            RetrainingError: Google refuses it.
        """
        return _explained(lambda: self.artifacts.list_uris(folder_uri, suffix=".json"))


def _explained(ask: Callable[[], _P]) -> _P:
    try:
        return ask()
    except Exception as error:  # Google's have no common class; what is not explained is raised again
        explained = explain(error)
        if explained is None:
            raise
        raise explained from error


class Stored:
    """Makes pages from stored objects, each in a thread: the event loop is Airflow's, and tasks' heartbeats wait in it.

    Args:
        connect: Gives the bucket's name and what reads from it.
        timeout_s: After so long there is no answer.
    """

    def __init__(self, connect: Callable[[], tuple[str, ArtifactsPort]], timeout_s: float = TIMEOUT_S) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="models-page")

    async def make(self, page: Callable[[Bucket], _P]) -> _P:
        """Return what a function makes of stored objects; reading and drawing both happen in a thread.

        Raises:
            TimeoutError: It was not made in time.
            RetrainingError: The settings or what is stored are wrong.
        """

        def work() -> _P:
            name, artifacts = self._connect()
            return page(Bucket(name=name, artifacts=artifacts))

        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        return await asyncio.wait_for(future, self._timeout_s)


class AirflowsBucket:
    """The bucket of the settings, by the Airflow connection; the client is made once and kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cloud: Cloud | None = None

    def __call__(self) -> tuple[str, ArtifactsPort]:
        """Return its name, and what reads from it.

        Raises:
            SettingsError: A setting or the connection is wrong.
        """
        with self._lock:
            if self._cloud is None:
                cloud = Cloud()
                _ = cloud.artifacts  # asks the connection: what fails is tried again with the next request
                self._cloud = cloud
            return self._cloud.settings.bucket, self._cloud.artifacts

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
    """What a page is made from: this environment's bucket, as its thread reads it, and the region of its jobs."""

    name: str
    region: str
    artifacts: ArtifactsPort

    def read(self, uri: str) -> bytes | None:
        """Return an object's bytes; None when there is none.

        Raises:
            RetrainingError: Google refuses it, or it is larger than `MOST_BYTES`.
        """
        return self.read_with(uri)[0]

    def read_with(self, uri: str, *others: str) -> list[bytes | None]:
        """Return an object's bytes and, of the same call, those of others beside it; None where there is none.

        Of the others one that is larger than `MOST_BYTES` is as none: it keeps no page from being shown.

        Raises:
            RetrainingError: Google refuses it, or the object is larger than `MOST_BYTES`.
        """
        asked = dict.fromkeys((uri, *others), (0, MOST_BYTES + 1))
        found = _explained(lambda: self.artifacts.read_ranges(asked))
        data = found.get(uri)
        if data is None:
            data = _explained(lambda: self.artifacts.read_object(uri))  # says so where there is no bucket
        if data is not None and len(data) > MOST_BYTES:
            raise ContractError(uri, f"more than {MOST_BYTES:,} bytes", "what a page can show", "Read it in the bucket")
        beside = (found.get(each) for each in others)
        return [data, *(None if each is None or len(each) > MOST_BYTES else each for each in beside)]

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
        connect: Gives the bucket.
        timeout_s: After so long there is no answer.
    """

    def __init__(self, connect: Callable[[], Bucket], timeout_s: float = TIMEOUT_S) -> None:
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
            return page(self._connect())

        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        return await asyncio.wait_for(future, self._timeout_s)


class AirflowsBucket:
    """The bucket of the settings, by the Airflow connection; the client is made once and kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cloud: Cloud | None = None

    def __call__(self) -> Bucket:
        """Return it.

        Raises:
            SettingsError: A setting or the connection is wrong.
        """
        with self._lock:
            if self._cloud is None:
                cloud = Cloud()
                _ = cloud.artifacts  # asks the connection: what fails is tried again with the next request
                self._cloud = cloud
            settings = self._cloud.settings
            return Bucket(name=settings.bucket, region=settings.region, artifacts=self._cloud.artifacts)

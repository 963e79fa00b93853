"""The page's documents, read from the bucket in threads of their own, and not for longer than a reader waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from retraining.core.documents import Document, ModelOverview, Overview
from retraining.core.naming import storage
from retraining.hooks.cloud import Cloud
from retraining.hooks.ports import ArtifactsPort
from retraining.hooks.session import explain

TIMEOUT_S = 15.0
THREADS = 4
"""Calls that hang fill these, and not the pool that Airflow's own pages need."""

_D = TypeVar("_D", bound=Document)


class Stored:
    """Reads one object per page.

    Args:
        connect: Gives the bucket's name and what reads from it.
        timeout_s: After so long there is no answer.
    """

    def __init__(self, connect: Callable[[], tuple[str, ArtifactsPort]], timeout_s: float = TIMEOUT_S) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="models-page")

    async def overview(self) -> Overview | None:
        """Return all models; None: nothing was written yet.

        Raises:
            TimeoutError: Nobody answered in time.
            RetrainingError: The settings or what is stored are wrong.
        """
        return await self._read(Overview, storage.overview_uri)

    async def model(self, model: str) -> ModelOverview | None:
        """Return one model; as `overview` otherwise."""
        return await self._read(ModelOverview, lambda bucket: storage.model_overview_uri(bucket, model))

    async def _read(self, kind: type[_D], uri_in: Callable[[str], str]) -> _D | None:
        def read() -> _D | None:
            try:
                bucket, artifacts = self._connect()
                uri = uri_in(bucket)
                data = artifacts.read_object(uri)
            except Exception as error:  # Google's have no common class; what is not explained is raised again
                explained = explain(error)
                if explained is None:
                    raise
                raise explained from error
            return None if data is None else kind.parse(data, uri)

        future = asyncio.get_running_loop().run_in_executor(self._pool, read)
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

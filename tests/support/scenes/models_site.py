"""The Models page as Airflow's API server serves it, with documents in memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient

from retraining.core.documents import ModelOverview, Overview
from retraining.core.naming import storage
from retraining.web import application
from retraining.web.application import make_application
from retraining.web.stored import Bucket, Stored
from tests.support.fakes.bucket import FakeBucket

REGION = "europe-west4"


class CountingBucket(FakeBucket):
    """A bucket that counts what is asked of it, whatever that is, and in how many calls."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.calls = 0

    def read_object(self, uri: str) -> bytes | None:
        """As the hook."""
        self.asked.append(uri)
        self.calls += 1
        return super().read_object(uri)

    def read_ranges(self, ranges: Mapping[str, tuple[int, int]]) -> dict[str, bytes]:
        """As the hook."""
        self.asked += ranges
        self.calls += 1
        return super().read_ranges(ranges)

    def existing(self, uris: list[str]) -> list[str]:
        """As the hook."""
        self.asked += uris
        self.calls += 1
        return super().existing(uris)


class Site:
    """The application, what it reads, and a reader.

    Attributes:
        bucket: Its documents.
        client: A reader's browser, which follows no redirect.
        gone: Models whose DAGs Airflow remembers, and has no longer.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.bucket = CountingBucket()
        self._patch = patch
        self.gone: set[str] = set()
        stored = Bucket(name="bucket", region=REGION, artifacts=self.bucket)
        self.app = make_application(Stored(lambda: stored, timeout_s=5))
        self.client = TestClient(self.app, follow_redirects=False, raise_server_exceptions=False)

    def log_in(self, *dag_ids: str) -> None:
        """Let the reader be someone who may read these DAGs."""

        def authorized(*, user: Any, method: str) -> set[str]:
            assert (user.name, method) == ("reader", "GET")
            return set(dag_ids)

        self._patch.setattr(application, "_current", lambda models: frozenset(models) - self.gone)
        self.app.dependency_overrides[get_user] = lambda: SimpleNamespace(name="reader")
        self._patch.setattr(application, "get_auth_manager", lambda: SimpleNamespace(get_authorized_dag_ids=authorized))

    def store(self, overview: Overview, *models: ModelOverview) -> None:
        """Store what the page reads."""
        self.bucket.objects[storage.overview_uri("bucket")] = overview.to_bytes()
        for model in models:
            self.bucket.objects[storage.model_overview_uri("bucket", model.summary.model)] = model.to_bytes()

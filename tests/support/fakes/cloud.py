"""Google Cloud in memory, for the operators' decisions: what `retraining.hooks.ports` says, and nothing of Google's."""

from __future__ import annotations

from retraining.core.placement import NOBODY
from retraining.hooks.ports import CloudPort
from tests.support.fakes.bucket import FakeBucket
from tests.support.fakes.clock import FakeClock
from tests.support.fakes.jobs import FakeJobs, FakeLogs
from tests.support.fakes.machine_pools import FakeMachinePools
from tests.support.fakes.notifiers import FakeNotifiers
from tests.support.fakes.serving import FakeEndpoints, FakeModelFiles, FakeRegistry
from tests.support.fakes.serving_metrics import FakeServingMetrics
from tests.support.fakes.settings import ENVIRONMENT, SETTINGS
from tests.support.fakes.trackers import FakeTrackers
from tests.support.fakes.warehouse import FakeWarehouse


class FakeCloud:
    """All services; `connect` is what operators are given."""

    def __init__(self) -> None:
        self.settings = SETTINGS
        self.caller = NOBODY
        self.environment = ENVIRONMENT
        self.clock = FakeClock()
        self.artifacts = self.objects = FakeBucket()
        self.warehouse = FakeWarehouse(self.artifacts)
        self.jobs = FakeJobs()
        self.machine_pools = FakeMachinePools(self.jobs)
        self.logs = FakeLogs()
        self.endpoints = FakeEndpoints()
        self.serving_metrics = FakeServingMetrics(self.endpoints)
        self.registry = FakeRegistry(endpoints=self.endpoints)
        self.model_files = FakeModelFiles(self.artifacts)
        self.notifiers = FakeNotifiers()
        self.trackers = FakeTrackers()

    def connect(self) -> CloudPort:
        """Return this very cloud at each poke."""
        return self

"""All hooks of one task or poke, made from the environment's settings; each client is made when it is first used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property

from retraining.core import settings as settings_module
from retraining.core.naming.environments import Environment
from retraining.core.placement import NOBODY
from retraining.core.settings import Settings
from retraining.core.spec.stages import staged
from retraining.hooks.artifacts import Artifacts
from retraining.hooks.clock import Clock
from retraining.hooks.endpoints import Endpoints
from retraining.hooks.logs import JobLogs
from retraining.hooks.machine_pools import MachinePools
from retraining.hooks.model_files import ModelFiles
from retraining.hooks.notifiers import Notifiers
from retraining.hooks.objects import Objects
from retraining.hooks.registry import Registry
from retraining.hooks.serving_metrics import ServingMetrics
from retraining.hooks.session import Session, connect, connect_by_environment
from retraining.hooks.trackers import Trackers
from retraining.hooks.vertex_jobs import VertexJobs
from retraining.hooks.warehouse import Warehouse


class Cloud:
    """The services an operator may ask.

    Args:
        environ: Where `RETRAINING_*` are read from; this process's environment by default.

    Attributes:
        caller: The task that asks, set before it asks anything.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.settings: Settings = settings_module.load(staged(os.environ if environ is None else environ))
        self.clock = Clock()
        self.caller = NOBODY

    @cached_property
    def session(self) -> Session:
        """Credentials of the Airflow connection."""
        return connect(self.settings, self.caller)

    @property
    def environment(self) -> Environment:
        """Which Airflow environment this is."""
        return self.session.environment

    @cached_property
    def artifacts(self) -> Artifacts:
        """Cloud Storage."""
        return Artifacts(self.session)

    @cached_property
    def objects(self) -> Objects:
        """Cloud Storage, as listings and deletions."""
        return Objects(self.session)

    @cached_property
    def warehouse(self) -> Warehouse:
        """BigQuery."""
        return Warehouse(self.session)

    @cached_property
    def jobs(self) -> VertexJobs:
        """Vertex AI jobs."""
        return VertexJobs(self.session)

    @cached_property
    def machine_pools(self) -> MachinePools:
        """Vertex AI persistent resources."""
        return MachinePools(self.session)

    @cached_property
    def logs(self) -> JobLogs:
        """Cloud Logging."""
        return JobLogs(self.session)

    @cached_property
    def registry(self) -> Registry:
        """Vertex AI models."""
        return Registry(self.session)

    @cached_property
    def model_files(self) -> ModelFiles:
        """Stored models, on Cloud Storage."""
        return ModelFiles(self.session)

    @cached_property
    def endpoints(self) -> Endpoints:
        """Vertex AI endpoints."""
        return Endpoints(self.session)

    @cached_property
    def serving_metrics(self) -> ServingMetrics:
        """Cloud Monitoring, of endpoints."""
        return ServingMetrics(self.session)

    @property
    def notifiers(self) -> Notifiers:
        """Airflow's notifiers."""
        return Notifiers()

    @cached_property
    def trackers(self) -> Trackers:
        """Experiment trackers."""
        return Trackers(self.settings, lambda: self.session)


class OwnCloud(Cloud):
    """The same, asked with this machine's own credentials: for what a person types, where no Airflow runs."""

    @cached_property
    def session(self) -> Session:
        """Application Default Credentials."""
        return connect_by_environment(self.settings)

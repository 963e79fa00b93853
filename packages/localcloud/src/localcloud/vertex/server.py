"""Starts the local Vertex AI: `python -m localcloud.vertex.server --state DIR`.

Comes in: a state directory. Goes out: gRPC and REST on unix sockets in it, until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import grpc

from localcloud.access.bearer import Bearers
from localcloud.access.credentials import CUSTOM_CODE_AGENT, SERVICE_AGENT
from localcloud.access.iam import Iam
from localcloud.environment.variables import google_environment
from localcloud.errors import LocalCloudError
from localcloud.faults import FaultStore
from localcloud.logs.metrics.measurements import Measurements
from localcloud.projects import Projects
from localcloud.state import PROJECT, State
from localcloud.vertex.endpoints.deployments import Deployments
from localcloud.vertex.endpoints.explanations import Explanations
from localcloud.vertex.endpoints.meter import Meter
from localcloud.vertex.endpoints.predictions import Predictions
from localcloud.vertex.endpoints.request_log import RequestLog
from localcloud.vertex.endpoints.resource_pools import DeploymentResourcePools
from localcloud.vertex.endpoints.service import Endpoints
from localcloud.vertex.endpoints.serving import Serving
from localcloud.vertex.experiments.artifacts import Artifacts, Executions
from localcloud.vertex.experiments.metadata import Contexts, MetadataStores
from localcloud.vertex.experiments.points import SeriesPoints
from localcloud.vertex.experiments.tensorboards import (
    TensorboardExperiments,
    TensorboardRuns,
    Tensorboards,
    TensorboardSeries,
)
from localcloud.vertex.front.dispatch import Dispatcher
from localcloud.vertex.front.grpc import bind_grpc
from localcloud.vertex.front.rest import RestServer
from localcloud.vertex.jobs.batch.run import BatchMachinery
from localcloud.vertex.jobs.batch.service import BatchPredictionJobs
from localcloud.vertex.jobs.custom.checks import check_job_spec
from localcloud.vertex.jobs.custom.service import CustomJobs
from localcloud.vertex.jobs.family import JobFamily
from localcloud.vertex.jobs.pipelines.run import Services
from localcloud.vertex.jobs.pipelines.service import TrainingPipelines
from localcloud.vertex.jobs.tuning.search.bayesian import Designer
from localcloud.vertex.jobs.tuning.service import TuningJobs
from localcloud.vertex.jobs.tuning.vizier.studies import Studies
from localcloud.vertex.jobs.tuning.vizier.suggestions import Suggestions
from localcloud.vertex.jobs.tuning.vizier.trials import Trials
from localcloud.vertex.models.evaluations import Evaluations
from localcloud.vertex.models.service import Models
from localcloud.vertex.models.versions import find_version
from localcloud.vertex.persistent_resources.service import PersistentResources
from localcloud.vertex.processes.guardian import Guardian
from localcloud.vertex.processes.images import Images
from localcloud.vertex.processes.logs import LogShipper
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.clients import Clients
from localcloud.vertex.resources.clock import PredictionClock
from localcloud.vertex.resources.faults import Faults
from localcloud.vertex.resources.operations import Operations, OperationService
from localcloud.vertex.resources.store import Store
from localcloud.vertex.resources.tables import Tables
from localcloud.vertex.wire.methods import load_methods

# What leads Google's clients elsewhere when no local cloud was started on the state directory (this server alone).
_PASSED_ON = ("STORAGE_EMULATOR_HOST", "BIGQUERY_EMULATOR_HOST")


class VertexServer:
    """The running local Vertex AI.

    Args:
        state: State directory of the local cloud.
        grace_s: How long a cancelled replica has between SIGTERM and SIGKILL.

    Raises:
        OSError: A socket cannot be made, or another server works on the same state.
    """

    def __init__(self, *, state: State, projects: Projects, grace_s: float) -> None:
        folder = state.directory("vertex")
        self._lock = _own(folder)
        self._store = Store(folder / "vertex.sqlite")
        self._fault_store = FaultStore(state.faults_path)
        self._guardian = Guardian()
        self._shipper = LogShipper(state.logs_path)
        clients = Clients(projects.main, lambda: _environment(state, SERVICE_AGENT))
        machinery = self._machinery(state, clients, projects, grace_s)
        find_model = functools.partial(find_version, self._store)
        self._operations = Operations(self._store, machinery.faults)
        self._serving = Serving(machinery, folder / "serving", find_model)
        self._clock = PredictionClock(folder / "clock.json")
        self._request_log = RequestLog(self._store, clients, self._clock.now)
        self._measurements = Measurements(state.measurements_path)
        self._models = Models(self._store, self._operations, machinery.buckets)
        self._designer = Designer(folder / "tuning", self._guardian)
        jobs = CustomJobs(machinery, self._operations)
        self._job_families = self._make_job_families(machinery, jobs, folder / "batch")
        self._persistent_resources = PersistentResources(self._store, self._operations, jobs.active_jobs, jobs.end)
        methods, iam, bearers = load_methods(), Iam(state, projects), Bearers(state)
        dispatcher = Dispatcher(self._families(projects), machinery.faults, projects, iam)
        self._grpc: grpc.Server = bind_grpc(dispatcher, methods, state.socket_path("vertex_grpc"), bearers)
        self._rest = RestServer(
            dispatcher,
            methods,
            machinery.faults,
            bearers,
            iam,
            clock=self._clock,
            socket_path=state.socket_path("vertex_rest"),
        )

    def _machinery(self, state: State, clients: Clients, projects: Projects, grace_s: float) -> Machinery:
        folder = state.directory("vertex")
        return Machinery(
            store=self._store,
            faults=Faults(self._fault_store),
            buckets=Buckets(clients),
            tables=Tables(clients),
            images=Images(folder / "images.json", state.config_path),
            guardian=self._guardian,
            shipper=self._shipper,
            environment=lambda account: _environment(state, account or CUSTOM_CODE_AGENT),
            project_number=projects.number(None),
            folder=folder / "jobs",
            grace_s=grace_s,
        )

    def _make_job_families(self, machinery: Machinery, jobs: CustomJobs, batch_folder: Path) -> tuple[JobFamily, ...]:
        """Return all families of jobs: one that needs another's jobs stands behind it."""
        operations = self._operations
        check_spec = functools.partial(check_job_spec, buckets=machinery.buckets)
        batch = BatchMachinery(
            machinery=machinery,
            serve=self._serving.serve,
            find_version=functools.partial(find_version, self._store),
            folder=batch_folder,
        )
        pipelines = Services(
            store=self._store, operations=operations, jobs=jobs, upload_model=self._models.upload_model
        )
        return (
            jobs,
            TuningJobs(machinery, operations, jobs, self._designer, check_spec),
            BatchPredictionJobs(batch, operations),
            TrainingPipelines(pipelines, check_spec),
        )

    def _families(self, projects: Projects) -> dict[str, tuple[object, ...]]:
        """Return who answers for which service. What one family needs of another is handed to it here."""
        store, operations = self._store, self._operations
        meter = Meter(self._measurements, self._clock.now)
        find_model = functools.partial(find_version, store)
        designer = self._designer
        automate = functools.partial(Faults(self._fault_store).fail, "PscAutomation.Connect")
        return {
            "JobService": self._job_families,
            "PipelineService": self._job_families,
            "VizierService": (Studies(store, designer), Trials(store), Suggestions(store, operations, designer)),
            "ModelService": (self._models, Evaluations(store)),
            "EndpointService": (
                Endpoints(store, operations, projects.number),
                Deployments(store, operations, self._serving, find_model, automate),
            ),
            "DeploymentResourcePoolService": (DeploymentResourcePools(store, operations),),
            "PersistentResourceService": (self._persistent_resources,),
            "MetadataService": (
                MetadataStores(store, operations),
                Contexts(store, operations),
                Artifacts(store, operations),
                Executions(store),
            ),
            "TensorboardService": (
                Tensorboards(store, operations),
                TensorboardExperiments(store, operations),
                TensorboardRuns(store, operations),
                TensorboardSeries(store, operations),
                SeriesPoints(store),
            ),
            "PredictionService": (
                Predictions(store, self._serving, self._request_log, meter),
                Explanations(store, self._serving, self._request_log, meter),
            ),
            "Operations": (OperationService(store, operations),),
        }

    def start(self) -> None:
        """Settle what a stop left open, then answer."""
        for family in self._job_families:
            family.resume()
        self._operations.resume()
        self._persistent_resources.resume()
        self._serving.resume()
        self._grpc.start()
        self._rest.start()

    def close(self) -> None:
        """Stop listening, end every process, write what waits."""
        refused = self._grpc.stop(grace=0.5)
        self._rest.shutdown()
        refused.wait()
        self._request_log.close()
        for family in reversed(self._job_families):
            family.close()
        self._operations.close()
        self._serving.close()
        self._guardian.close()
        for family in self._job_families:
            if not family.outlives_server:  # what was running is marked now, not at the next start
                family.resume()
        self._shipper.close()
        self._measurements.close()
        self._store.close()
        self._fault_store.close()
        self._lock.close()


def _own(folder: Path) -> TextIO:
    """Lock the folder: two servers on it would end each other's jobs. The kernel frees the lock even after SIGKILL."""
    lock = (folder / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise OSError(
            f"{folder}: another local Vertex AI works here. Expected one per state directory. Give --state."
        ) from None
    return lock


def _environment(state: State, account: str) -> Mapping[str, str]:
    try:
        return google_environment(state, account=account)
    except LocalCloudError:
        return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def _projects_of(state: State) -> Projects:
    try:
        return Projects.of(state)
    except LocalCloudError:
        return Projects([PROJECT])


def main() -> int:
    """Serve until a signal comes; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m localcloud.vertex.server", description="The local Vertex AI.")
    parser.add_argument("--state", type=Path, required=True, help="state directory of the local cloud")
    parser.add_argument("--project", default=None, help="the project that exists (default: the local cloud's)")
    parser.add_argument(
        "--grace-seconds",
        type=float,
        default=3.0,
        help="between SIGTERM and SIGKILL of a cancelled job (default: %(default)s)",
    )
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    state = State(arguments.state.absolute())
    try:
        server = VertexServer(
            state=state,
            projects=Projects([arguments.project]) if arguments.project else _projects_of(state),
            grace_s=arguments.grace_seconds,
        )
    except OSError as error:
        print(f"vertex: {error}", file=sys.stderr)
        return 1
    server.start()
    while not stop.wait(1.0):
        pass
    server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

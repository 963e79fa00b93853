"""The services that the gateway answers itself, made and put behind the IAM table and the faults.

In: a state directory. Out: handlers of REST requests by the services' names, and a gRPC server. A new service is a line
of `fronts`, of `handlers` in gRPC, or both.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from localcloud.access import credentials
from localcloud.access.bearer import Bearers
from localcloud.access.grpc_middleware import GrpcMiddleware
from localcloud.access.iam import Iam, Resources, object_resource
from localcloud.faults import FaultStore
from localcloud.gateway.artifactregistry.service import ArtifactRegistry
from localcloud.gateway.identity import Identity
from localcloud.gateway.resource_manager import ResourceManager
from localcloud.gateway.secretmanager.service import SecretManager
from localcloud.gateway.secretmanager.store import SecretStore
from localcloud.gateway.serviceusage.quotas import Quotas
from localcloud.gateway.serviceusage.service import ServiceUsage
from localcloud.http import fronts
from localcloud.http.fronts import Front, Permit, guarded
from localcloud.http.routes import Handler
from localcloud.logs.metrics.measurements import Measurements
from localcloud.logs.metrics.service import MetricService
from localcloud.logs.service import LogService
from localcloud.logs.store import LogStore, is_found
from localcloud.projects import Projects
from localcloud.services import GATEWAY_SOCKET
from localcloud.state import State
from localcloud.storage.calls import Call
from localcloud.storage.front import StorageFront
from localcloud.storage.objects import Objects
from localcloud.storage.service import StorageService

_GRPC_WORKERS = 8


@dataclass(frozen=True, kw_only=True)
class GatewayServices:
    """What answers REST, by the services' names, and the gRPC server, which answers already."""

    handlers: dict[str, Handler]
    grpc_server: grpc.Server


def start_services(state: State, bearers: Bearers) -> GatewayServices:
    """Make the services of a state directory."""
    projects = Projects.of(state)
    iam, faults = Iam(state, projects), FaultStore(state.faults_path)
    logs = LogService(LogStore(state.logs_path), projects)
    is_found("", "")  # the first search of a process takes a second or more
    secrets = SecretManager(SecretStore(state.path / "secrets.sqlite"), projects)
    own, accounts = credentials.load_or_create(state), credentials.Accounts(state)
    fronts: dict[str, Front[Any]] = {
        "identity": Identity(own, accounts, bearers, projects=projects, iam=iam),
        "logging": logs,
        "secretmanager": secrets,
        "serviceusage": ServiceUsage(
            projects, state.path / "disabled-services.json", Quotas(state.path / "quota-overrides.json")
        ),
        "artifactregistry": ArtifactRegistry(projects, iam, _image_tables(state)),
    }
    handlers = {name: guarded(front, permit_calls(iam), faults) for name, front in fronts.items()}
    handlers["storage"] = StorageFront(_storage(state, projects), faults, permit_storage(iam), iam).answer
    server = grpc.server(ThreadPoolExecutor(_GRPC_WORKERS), interceptors=[GrpcMiddleware(bearers, iam, faults)])
    server.add_generic_rpc_handlers(
        (
            logs.grpc_handler(),
            ResourceManager(projects),
            secrets.grpc_handler(),
            MetricService(Measurements(state.measurements_path), projects),
        )
    )
    server.add_insecure_port(f"unix:{state.socket_path(GATEWAY_SOCKET)}")
    server.start()
    return GatewayServices(handlers=handlers, grpc_server=server)


def _image_tables(state: State) -> list[Path]:
    """Return the files that say which images Vertex AI can run."""
    own = Path(__file__).parents[1] / "vertex" / "processes" / "images.json"
    return [state.path / "vertex" / "images.json", state.config_path, own]


def _storage(state: State, projects: Projects) -> StorageService:
    objects = Objects(state.directory("storage"), state.storage_path)
    location = state.read_settings().region
    return StorageService(objects, projects, state.directory("uploads"), location=location)


def permit_calls(iam: Iam) -> Permit[fronts.Call]:
    """Return what asks the table about a call that says itself what it concerns."""
    return lambda principal, call: iam.check(principal, call.method, call.resources)


def permit_storage(iam: Iam) -> Permit[Call]:
    """Return what asks the table about a call of Cloud Storage: the value that is acted on, not the request."""
    return lambda principal, call: iam.check(principal, call.method, concerned(call))


def concerned(call: Call) -> Resources:
    """Return the object or bucket of a call, and the objects that it reads to write it.

    A list's resource is the bucket, whatever prefix it asks for. A piece of a resumable upload concerns nothing: its
    session was begun by somebody who may create the object.
    """
    piece = call.upload not in ("", "start")
    return {
        "bucket": [object_resource(call.bucket, call.name)] if call.bucket and not piece else [],
        "source": sorted({object_resource(source.bucket, source.name) for source in call.sources}),
    }

"""Service Usage: which APIs a project has enabled. All are, until one is disabled, by the service's own methods.

In: REST calls. Out: services with their state, as
https://cloud.google.com/service-usage/docs/reference/rest/v1/services has them. A disabled API is answered as ever.
Quotas, of v1beta1, are in `quotas`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from localcloud.errors import CallError
from localcloud.gateway.serviceusage.quotas import Quotas
from localcloud.http.fronts import Call, Front
from localcloud.http.http1 import Request, Response
from localcloud.projects import Projects

MOST_NAMES = 30
"""Of one batchGet, as the service takes."""
_QUOTAS = re.compile(r"/v1beta1/projects/(?P<project>[^/:]+)(?P<rest>/services/[^/]+/consumerQuotaMetrics/.*)")
_QUOTA_METHODS = {
    ("GET", False, False): "ServiceUsage.GetConsumerQuotaMetric",
    ("POST", True, False): "ServiceUsage.CreateConsumerOverride",
    ("DELETE", True, True): "ServiceUsage.DeleteConsumerOverride",
}
_DONE = {"name": "operations/noop.DONE_OPERATION", "done": True, "response": {}}
_SERVICES = re.compile(r"/v1/projects/(?P<project>[^/:]+)/services(?P<rest>.*)")
_ONE = re.compile(r"/(?P<name>[a-z0-9.-]+\.googleapis\.com)(:(?P<verb>enable|disable))?")


@dataclass(frozen=True, kw_only=True)
class UsageCall(Call):
    """A call: of which project, and of which services by their names, or of which quota."""

    project: str
    names: tuple[str, ...] = ()
    quota: re.Match[str] | None = None
    request: Request


class ServiceUsage(Front[UsageCall]):
    """Answers for the APIs of projects.

    Args:
        projects: Those that there are.
        path: A file with what is disabled, by project.
        quotas: What may be had.
    """

    def __init__(self, projects: Projects, path: Path, quotas: Quotas) -> None:
        self._projects = projects
        self._path = path
        self._quotas = quotas

    async def read_call(self, request: Request) -> UsageCall:
        """Read a request."""
        address = urlsplit(request.head.target)
        found = _QUOTAS.fullmatch(address.path) or _SERVICES.fullmatch(unquote(address.path))
        if found is None:
            raise _unknown(request)
        project = self._projects.find_id(found["project"])
        if project is None:
            raise CallError(f"Project {found['project']} does not exist here.", "PERMISSION_DENIED")
        resource = f"projects/{project}"
        common: dict[str, Any] = {"resources": {"project": [resource]}, "project": project, "request": request}
        if found.re is _QUOTAS:
            quota = self._quotas.read_metric(found["rest"])
            kind = request.method, bool(quota and quota["overrides"]), bool(quota and quota["override"])
            if quota is None or kind not in _QUOTA_METHODS:
                raise _unknown(request)
            return UsageCall(method=_QUOTA_METHODS[kind], about=resource, quota=quota, **common)
        method, names = _read_names(request.method, found["rest"], address.query)
        about = f"{resource}/services/{names[0]}" if len(names) == 1 else resource
        return UsageCall(method=method, about=about, names=names, **common)

    async def answer_call(self, call: UsageCall) -> Response:
        """Answer a call."""
        if call.quota is not None:
            return await self._answer_quota(call, call.quota)
        disabled = self._read()
        of_project = set(disabled.get(call.project, ()))
        if call.method == "ServiceUsage.BatchGetServices":
            return Response.of_json({"services": [self._service(call, name, of_project) for name in call.names]})
        (name,) = call.names
        if call.method == "ServiceUsage.GetService":
            return Response.of_json(self._service(call, name, of_project))
        changed = of_project | {name} if call.method == "ServiceUsage.DisableService" else of_project - {name}
        self._write({**disabled, call.project: sorted(changed)})
        return Response.of_json(_DONE)

    async def _answer_quota(self, call: UsageCall, quota: re.Match[str]) -> Response:
        if call.method == "ServiceUsage.GetConsumerQuotaMetric":
            return Response.of_json(self._quotas.describe(call.project, self._projects.number(call.project), quota))
        if call.method == "ServiceUsage.CreateConsumerOverride":
            self._quotas.override(call.project, quota, await call.request.read_body())
        else:
            self._quotas.remove(call.project, quota)
        return Response.of_json(_DONE)

    def _service(self, call: UsageCall, name: str, disabled: set[str]) -> dict[str, object]:
        parent = f"projects/{self._projects.number(call.project)}"
        state = "DISABLED" if name in disabled else "ENABLED"
        return {"name": f"{parent}/services/{name}", "parent": parent, "config": {"name": name}, "state": state}

    def _read(self) -> Mapping[str, list[str]]:
        if not self._path.exists():
            return {}
        disabled: dict[str, list[str]] = json.loads(self._path.read_bytes())
        return disabled

    def _write(self, disabled: Mapping[str, list[str]]) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(disabled, indent=2) + "\n")
        temporary.replace(self._path)


def _unknown(request: Request) -> CallError:
    return CallError(f"{request.method} {request.path} is not part of the local cloud", "NOT_FOUND")


def _read_names(verb: str, rest: str, query: str) -> tuple[str, tuple[str, ...]]:
    """Return the method, and the services that it is about."""
    one = _ONE.fullmatch(rest)
    if one and verb == "GET" and not one["verb"]:
        return "ServiceUsage.GetService", (one["name"],)
    if one and verb == "POST" and one["verb"]:
        return f"ServiceUsage.{one['verb'].capitalize()}Service", (one["name"],)
    if rest == ":batchGet" and verb == "GET":
        names = tuple(value.rpartition("/services/")[2] for name, value in parse_qsl(query) if name == "names")
        if not 1 <= len(names) <= MOST_NAMES or not all(_ONE.fullmatch(f"/{name}") for name in names):
            raise CallError(f"Expected names, 1 to {MOST_NAMES} of services of the project.", "INVALID_ARGUMENT")
        return "ServiceUsage.BatchGetServices", names
    raise CallError(f"{verb} /services{rest} is not part of the local cloud", "NOT_FOUND")

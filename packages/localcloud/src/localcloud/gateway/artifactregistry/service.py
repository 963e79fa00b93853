"""Artifact Registry v1: whether an image is there, by digest or tag, and the policy of its repository.

In: REST calls, and the files of Vertex AI's table of images. Out: versions, tags and policies, as
https://cloud.google.com/artifact-registry/docs/reference/rest has them. An image that Vertex AI could run is there.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from localcloud.errors import CallError
from localcloud.http.fronts import Call, Front
from localcloud.http.http1 import Request, Response
from localcloud.projects import Projects

_ADDRESS = re.compile(
    r"/v1/(?P<repository>projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/repositories/(?P<id>[^/:]+))"
    r"(?:/packages/(?P<package>[^/]+)/(?P<kind>versions|tags)/(?P<name>[^/]+)|(?P<policy>:getIamPolicy))"
)


class Policies(Protocol):
    """The IAM table."""

    def policy(self, resource: str) -> dict[str, Any]:
        """Return what is bound on a resource."""


@dataclass(frozen=True, kw_only=True)
class RegistryCall(Call):
    """A call: of which repository, and of which image by its address (empty: none)."""

    repository: str
    image: str = ""
    resource_name: str = ""


class ArtifactRegistry(Front[RegistryCall]):
    """Answers for images.

    Args:
        projects: Those that there are.
        policies: The IAM table.
        tables: Files of Vertex AI's table of images; they need not exist.
    """

    def __init__(self, projects: Projects, policies: Policies, tables: Sequence[Path]) -> None:
        self._projects = projects
        self._policies = policies
        self._tables = tables

    async def read_call(self, request: Request) -> RegistryCall:
        """Read a request."""
        path = urlsplit(request.head.target).path
        found = _ADDRESS.fullmatch(path)
        if found is None or request.method != "GET":
            raise CallError(f"{request.method} {request.path} is not part of the local cloud", "NOT_FOUND")
        project = self._projects.find_id(found["project"])
        if project is None:
            raise CallError(f"Project {found['project']} does not exist here.", "PERMISSION_DENIED")
        repository = f"projects/{project}/locations/{found['location']}/repositories/{found['id']}"
        common: dict[str, Any] = {
            "resources": {"repository": [repository]},
            "about": repository,
            "repository": repository,
        }
        if found["policy"]:
            return RegistryCall(method="ArtifactRegistry.GetIamPolicy", **common)
        sign, verb = ("@", "GetVersion") if found["kind"] == "versions" else (":", "GetTag")
        package, name = unquote(found["package"]), unquote(found["name"])
        host = f"{found['location']}-docker.pkg.dev"
        return RegistryCall(
            method=f"ArtifactRegistry.{verb}",
            image=f"{host}/{project.replace(':', '/')}/{found['id']}/{package}{sign}{name}",
            resource_name=unquote(path).removeprefix("/v1/"),
            **common,
        )

    async def answer_call(self, call: RegistryCall) -> Response:
        """Answer a call."""
        if call.method == "ArtifactRegistry.GetIamPolicy":
            return Response.of_json(self._policies.policy(call.repository))
        if not any(fnmatch.fnmatchcase(call.image, pattern) for pattern in self._patterns()):
            raise CallError("Requested entity was not found.", "NOT_FOUND")
        if call.method == "ArtifactRegistry.GetVersion":
            return Response.of_json({"name": call.resource_name})
        digest = hashlib.sha256(call.image.encode()).hexdigest()
        version = f"{call.resource_name.rpartition('/tags/')[0]}/versions/sha256:{digest}"
        return Response.of_json({"name": call.resource_name, "version": version})

    def _patterns(self) -> list[str]:
        tables = [json.loads(path.read_bytes()) for path in self._tables if path.exists()]
        return [str(entry["pattern"]) for table in tables for entry in table.get("images", [])]

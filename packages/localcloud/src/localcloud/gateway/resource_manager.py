"""The Resource Manager over gRPC: GetProject and SearchProjects, which the Vertex AI SDK asks for a project's number.

In: names by id or number. Out: the projects of this cloud; PERMISSION_DENIED for others, which is how the service says
that there is none. Its REST form is in `identity`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from localcloud.fields import read_fields
from localcloud.message_fields import MessageFields
from localcloud.projects import Projects

_PACKAGE = "google.cloud.resourcemanager.v3."
_SERVICE = f"/{_PACKAGE}Projects/"
_Method = Callable[[Any, grpc.ServicerContext], Any]
FIELDS = MessageFields(read_fields(Path(__file__).with_name("fields.json")), _PACKAGE)
"""What becomes of each field."""


class ResourceManager(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Answers for projects."""

    def __init__(self, projects: Projects) -> None:
        from google.cloud.resourcemanager_v3 import types

        self._projects = projects
        self._types: Any = types
        self._methods: dict[str, tuple[Any, _Method]] = {
            "GetProject": (types.GetProjectRequest, self.get),
            "SearchProjects": (types.SearchProjectsRequest, self.search),
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the handler of a method (grpc's interface)."""
        handler = self._methods.get(handler_call_details.method.removeprefix(_SERVICE))
        if not handler_call_details.method.startswith(_SERVICE) or handler is None:
            return None
        kind, method = handler
        name = f"Projects.{handler_call_details.method.removeprefix(_SERVICE)}"

        def answer(request: object, context: grpc.ServicerContext) -> object:
            FIELDS.check(name, kind.pb(request))  # no field is dropped without a word
            return method(request, context)

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=kind.deserialize,
            response_serializer=lambda answer: type(answer).serialize(answer),
        )

    def get(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - Google's types publish none
        """Return one project."""
        project = self._projects.find_id(request.name.removeprefix("projects/"))
        if project is None:
            message = f"The caller does not have permission, or {request.name!r} does not exist."
            context.abort(grpc.StatusCode.PERMISSION_DENIED, message)
            raise AssertionError("abort always raises")
        return self._project(project)

    def search(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - as above
        """Return all projects."""
        del request, context
        return self._types.SearchProjectsResponse(projects=[self._project(each) for each in self._projects.ids])

    def _project(self, project: str) -> Any:  # noqa: ANN401 - as above
        return self._types.Project(
            name=f"projects/{self._projects.number(project)}",
            project_id=project,
            display_name="Local cloud",
            state=self._types.Project.State.ACTIVE,
        )

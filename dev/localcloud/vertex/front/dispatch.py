"""Every call comes through here: check it as the service would, find its handler by name, answer or refuse.

Comes in: a method of the table, a request message, who asked. Goes out: the response message, or an `ApiError`.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from localcloud.iam import DeniedError, Iam
from localcloud.iam_calls import service_accounts
from localcloud.projects import Projects
from localcloud.vertex.wire import names, schema
from localcloud.vertex.wire.errors import ApiError, InvalidArgument, PermissionDenied, Unimplemented, found_errors
from localcloud.vertex.wire.methods import Message, Method, raw

if TYPE_CHECKING:
    from localcloud.vertex.cloud import Cloud

LOGGER = logging.getLogger(__name__)
Handler = Callable[[Message, "Context"], Message]
_HOST = re.compile(r"(?P<region>[a-z]+-[a-z]+\d+)-(prediction-)?aiplatform\.googleapis\.com")
# An update names only the fields it changes: the rest of its resource may be missing.
_PARTIAL = re.compile(r"^(Update|Mutate)")


@dataclasses.dataclass(kw_only=True)
class Context:
    """One call: who was addressed, what it may use, what it wants to send beside its response."""

    cloud: Cloud
    method: Method
    host: str
    principal: str
    headers: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def host_region(self) -> str | None:
        """Region that the host stands for (`us-central1-aiplatform.googleapis.com`), or None on a bare port."""
        match = _HOST.match(self.host)
        return match["region"] if match else None


class Dispatcher:
    """Finds the handler of a call and guards it.

    Args:
        cloud: What handlers work with.
        families: Service name -> modules whose functions answer its methods (`create_custom_job` for CreateCustomJob).
        projects: Projects that exist.
        iam: Who may do what.
    """

    def __init__(
        self, cloud: Cloud, families: Mapping[str, Iterable[ModuleType]], projects: Projects, iam: Iam
    ) -> None:
        self._cloud = cloud
        self._families = {service: tuple(modules) for service, modules in families.items()}
        self._projects = projects
        self._iam = iam

    def call(self, method: Method, request: Message, host: str, principal: str) -> tuple[Message, Context]:
        """Answer a call.

        Returns:
            The response, and the context with the headers that go with it.

        Raises:
            ApiError: The refusal.
        """
        context = Context(cloud=self._cloud, method=method, host=host, principal=principal)
        try:
            return self._answer(method, request, context), context
        except ApiError:
            raise
        except Exception as error:  # the edge: a fault of ours becomes the service's INTERNAL
            LOGGER.exception("%s failed", method.full_name)
            raise ApiError(
                f"{method.full_name}: {type(error).__name__}: {error}. See the log of the local Vertex AI.",
                code="INTERNAL",
            ) from error

    def _answer(self, method: Method, request: Message, context: Context) -> Message:
        handler = self._find(method)
        write_ids(raw(request), self._projects)
        self._check_place(request, context)
        self._check_permission(method, request, context)
        fault = self._cloud.faults.take(method.full_name, kinds=("error", "lost_response", "delay")) or {"kind": "none"}
        if fault["kind"] == "delay":
            time.sleep(fault["seconds"])
        if fault["kind"] == "error":
            raise ApiError(fault["message"], code=fault["code"])
        missing = schema.missing_fields(
            request, nested=method.service != "PredictionService" and not _PARTIAL.match(method.name)
        )
        if missing:
            raise found_errors([(path, "Required field is not set.") for path in missing])
        response = handler(request, context)
        if fault["kind"] == "lost_response":
            raise ApiError(fault["message"], code=fault["code"])
        return response

    def _find(self, method: Method) -> Handler:
        for module in self._families.get(method.service, ()):
            handler: Handler | None = getattr(module, method.handler_name, None)
            if handler is not None:
                return handler
        raise Unimplemented(f"The local cloud does not offer {method.full_name}.")

    def _check_permission(self, method: Method, request: Message, context: Context) -> None:
        if not self._iam.in_force():
            return
        location = addressed_location(request)
        name = method.full_name
        if method.service == "Operations":  # what an operation's reader needs is a matter of what it works on
            name += f"/{names.collection_of(request.name)}"
        resources = {
            "project": [f"projects/{location.project if location else self._projects.main}"],
            "service_account": service_accounts(raw(request)),
        }
        try:
            self._iam.check(context.principal, name, resources)
        except DeniedError as error:
            raise PermissionDenied(str(error)) from None

    def _check_place(self, request: Message, context: Context) -> None:
        location = addressed_location(request)
        if location is None:
            return
        if context.host_region not in (None, location.region):
            raise InvalidArgument(
                f"The provided location ID {location.region!r} doesn't match the endpoint {context.host!r}."
                f" The valid location ID is {context.host_region!r}."
            )
        if self._projects.find(location.project) is None:
            raise PermissionDenied(
                f"Permission denied on resource '//aiplatform.googleapis.com/{location}' (or it may not exist):"
                f" the project {location.project!r} was found in the request, the local cloud has"
                f" {sorted(self._projects.ids)}."
            )


def write_ids(message: Message, projects: Projects) -> None:
    """Write a project's id where a name in a request has its number: the service takes either."""
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is not None and (kind.GetOptions().map_entry or kind.full_name.startswith("google.protobuf.")):
            continue  # labels, traffic and instances have no names of resources
        values = list(value) if field.is_repeated else [value]
        if field.message_type is not None:
            for child in values:
                write_ids(child, projects)
        elif field.cpp_type == field.CPPTYPE_STRING and field.type != field.TYPE_BYTES:
            known = [projects.with_ids(each) if each.startswith("projects/") else each for each in values]
            if known == values:
                continue
            if field.is_repeated:
                value[:] = known
            else:
                setattr(message, field.name, known[0])


def addressed_location(request: Message) -> names.Location | None:
    """The location that a request is about: from its parent, name, endpoint, or the name of the resource inside."""
    for field, value in raw(request).ListFields():
        if field.message_type is not None:
            value = getattr(value, "name", "") if not field.is_repeated else ""
        if isinstance(value, str) and value.startswith("projects/"):
            return names.location_of(value)
    return None

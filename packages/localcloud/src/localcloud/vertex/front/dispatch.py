"""Every call comes through here: check it as the service would, find its handler by name, answer or refuse.

Comes in: a method of the table, a request message, who asked. Goes out: the response message, or an `ApiError`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence

from localcloud.access.iam import DeniedError, Iam
from localcloud.access.iam_calls import service_accounts
from localcloud.projects import Projects
from localcloud.vertex.resources.faults import Faults
from localcloud.vertex.wire import names, schema
from localcloud.vertex.wire.errors import ApiError, InvalidArgument, PermissionDenied, Unimplemented, found_errors
from localcloud.vertex.wire.fields import check_request
from localcloud.vertex.wire.methods import Answer, Message, Method, raw

LOGGER = logging.getLogger(__name__)
Handler = Callable[[Message], Message | Answer]
Admission = Callable[[Message, str], None]
_HOST = re.compile(r"(?P<region>[a-z]+-[a-z]+\d+)-(prediction-)?aiplatform\.googleapis\.com")
# An update names only the fields it changes: the rest of its resource may be missing.
_PARTIAL = re.compile(r"^(Update|Mutate)")


class Dispatcher:
    """Finds the handler of a call and guards it.

    Args:
        families: Service name -> objects whose methods answer its calls (`create_custom_job` for CreateCustomJob). One
            that answers at hosts of its own refuses a wrong one in `check_host(request, host)`.
        faults: May slow calls down, refuse them, or lose their responses.
        iam: Who may do what.
    """

    def __init__(self, families: Mapping[str, Sequence[object]], faults: Faults, projects: Projects, iam: Iam) -> None:
        self._families = families
        self._faults = faults
        self._projects = projects
        self._iam = iam

    def call(self, method: Method, request: Message, host: str, principal: str) -> Answer:
        """Answer a call.

        Args:
            request: Its message.
            host: Where it was sent.

        Raises:
            ApiError: The refusal.
        """
        self._faults.count(method.full_name)
        try:
            return self._answer(method, request, host, principal)
        except ApiError:
            raise
        except Exception as error:  # the edge: a fault of ours becomes the service's INTERNAL
            LOGGER.exception("%s failed", method.full_name)
            raise ApiError(
                f"{method.full_name}: {type(error).__name__}: {error}. See the log of the local Vertex AI.",
                code="INTERNAL",
            ) from error

    def _answer(self, method: Method, request: Message, host: str, principal: str) -> Answer:
        family, handler = self._find_handler(method)
        write_ids(raw(request), self._projects)
        self._check_place(request, host)
        self._check_permission(method, request, principal)
        check_host: Admission | None = getattr(family, "check_host", None)
        if check_host is not None:
            check_host(request, host)
        with self._faults.intercept(method.full_name):
            check_request(method, request)
            missing = schema.missing_fields(
                request, nested=method.service != "PredictionService" and not _PARTIAL.match(method.name)
            )
            if missing:
                raise found_errors([(path, "Required field is not set.") for path in missing])
            answer = handler(request)
        return answer if isinstance(answer, Answer) else Answer(answer)

    def _find_handler(self, method: Method) -> tuple[object, Handler]:
        for family in self._families.get(method.service, ()):
            handler: Handler | None = getattr(family, method.handler_name, None)
            if handler is not None:
                return family, handler
        raise Unimplemented(f"The local cloud does not offer {method.full_name}.")

    def _check_permission(self, method: Method, request: Message, principal: str) -> None:
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
            self._iam.check(principal, name, resources)
        except DeniedError as error:
            raise PermissionDenied(str(error)) from None

    def _check_place(self, request: Message, host: str) -> None:
        location = addressed_location(request)
        if location is None:
            return
        own = _HOST.match(host)  # none of a bare port
        if own and own["region"] != location.region:
            raise InvalidArgument(
                f"The provided location ID {location.region!r} doesn't match the endpoint {host!r}."
                f" The valid location ID is {own['region']!r}."
            )
        if self._projects.find_id(location.project) is None:
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
    """Return the location that a request is about, by its parent, name, endpoint, or the resource inside."""
    for field, value in raw(request).ListFields():
        if field.message_type is not None:
            value = getattr(value, "name", "") if not field.is_repeated else ""
        if isinstance(value, str) and value.startswith("projects/"):
            return names.location_of(value)
    return None

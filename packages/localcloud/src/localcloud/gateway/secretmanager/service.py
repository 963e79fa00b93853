"""Secret Manager's methods, over gRPC and REST on one store.

In: requests in Google's messages. Out: secrets and versions, named by the project's number as the service does, or the
service's refusals. What is not offered is refused by name: `fields.json` says what becomes of each field.
https://cloud.google.com/secret-manager/docs/reference/rpc/google.cloud.secretmanager.v1
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import google_crc32c
import grpc
from google.protobuf import empty_pb2, json_format

from localcloud.access.iam_calls import about, asked, method_of
from localcloud.errors import CallError
from localcloud.fields import read_fields
from localcloud.gateway.secretmanager.messages import MESSAGES, PACKAGE
from localcloud.gateway.secretmanager.store import Secret, SecretStore, Version, VersionState
from localcloud.http.fronts import Call, Front
from localcloud.http.http1 import Request, Response
from localcloud.message_fields import MessageFields
from localcloud.projects import Projects
from localcloud.untyped import Untyped

_KIND = "SecretManagerService"
_SERVICE = f"/{PACKAGE}.{_KIND}/"
FIELDS = MessageFields(read_fields(Path(__file__).with_name("fields.json")), f"{PACKAGE}.")
"""What becomes of each field."""

MOST_BYTES = 64 * 1024
"""Of a payload; https://cloud.google.com/secret-manager/quotas"""
_MOST_ON_A_PAGE = 25_000
_LATEST = "latest"
_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
_NAME = re.compile(r"projects/(?P<project>[^/]+)(?:/secrets/(?P<secret>[^/]+)(?:/versions/(?P<version>[^/]+))?)?")
_LABEL_KEY, _LABEL_VALUE = re.compile(r"[^\W\d_][\w-]{0,62}"), re.compile(r"[\w-]{0,63}")

_ROUTES = tuple(
    (verb, re.compile(pattern), name, body)
    for verb, pattern, name, body in (
        ("GET", r"/v1/(?P<parent>projects/[^/]+)/secrets", "ListSecrets", ""),
        ("POST", r"/v1/(?P<parent>projects/[^/]+)/secrets", "CreateSecret", "secret"),
        ("POST", r"/v1/(?P<parent>projects/[^/]+/secrets/[^/:]+):addVersion", "AddSecretVersion", "*"),
        ("GET", r"/v1/(?P<name>projects/[^/]+/secrets/[^/:]+)", "GetSecret", ""),
        ("DELETE", r"/v1/(?P<name>projects/[^/]+/secrets/[^/:]+)", "DeleteSecret", ""),
        ("GET", r"/v1/(?P<parent>projects/[^/]+/secrets/[^/:]+)/versions", "ListSecretVersions", ""),
        ("GET", r"/v1/(?P<name>projects/[^/]+/secrets/[^/]+/versions/[^/:]+)", "GetSecretVersion", ""),
        ("GET", r"/v1/(?P<name>projects/[^/]+/secrets/[^/]+/versions/[^/:]+):access", "AccessSecretVersion", ""),
        ("POST", r"/v1/(?P<name>projects/[^/]+/secrets/[^/]+/versions/[^/:]+):disable", "DisableSecretVersion", "*"),
        ("POST", r"/v1/(?P<name>projects/[^/]+/secrets/[^/]+/versions/[^/:]+):enable", "EnableSecretVersion", "*"),
        ("POST", r"/v1/(?P<name>projects/[^/]+/secrets/[^/]+/versions/[^/:]+):destroy", "DestroySecretVersion", "*"),
    )
)
"""Verb, address, method, and where the body goes: the whole request, one field of it, or nowhere."""
_Row = TypeVar("_Row")
_Behaviour = Callable[[Untyped, grpc.ServicerContext], Untyped]


@dataclass(frozen=True, kw_only=True)
class SecretCall(Call):
    """A call: its name and its message."""

    name: str
    message: Untyped


@dataclass(frozen=True, kw_only=True)
class _Place:
    """What a name stands for: "" for what it leaves out; the project by its id."""

    project: str
    secret: str = ""
    version: str = ""


class SecretManager(Front[SecretCall]):
    """The service, in its REST form; `grpc_handler` is its gRPC form."""

    def __init__(self, store: SecretStore, projects: Projects) -> None:
        self._store = store
        self._projects = projects
        methods = (
            self.list_secrets, self.create_secret, self.add_secret_version, self.get_secret, self.delete_secret,
            self.list_secret_versions, self.get_secret_version, self.access_secret_version,
            self.disable_secret_version, self.enable_secret_version, self.destroy_secret_version,
        )  # fmt: skip
        self._methods: dict[str, Callable[[Untyped], Untyped]] = {
            "".join(part.capitalize() for part in method.__name__.split("_")): method for method in methods
        }

    def answer(self, name: str, request: Untyped) -> Untyped:
        """Answer a method.

        Raises:
            CallError: The refusal.
        """
        FIELDS.check(f"{_KIND}.{name}", request)
        return self._methods[name](request)

    def create_secret(self, request: Untyped) -> Untyped:
        """Make a secret that has no versions yet."""
        place = self._place(request.parent, depth=1)
        if not _ID.fullmatch(request.secret_id):
            raise CallError(
                f"The provided Secret ID [{request.secret_id}] does not match the expected format [{_ID.pattern}]."
            )
        replication = request.secret.replication
        if replication.HasField("automatic") == replication.HasField("user_managed"):
            raise CallError("Secret.replication must say one of automatic and user_managed.")
        if replication.HasField("user_managed") and not replication.user_managed.replicas:
            raise CallError("Secret.replication.user_managed must have a replica.")
        for key, value in request.secret.labels.items():
            _check_label(key, value)
        secret = self._store.create(place.project, request.secret_id, request.secret.SerializeToString())
        if secret is None:
            name = self._name(place.project, request.secret_id)
            raise CallError(f"Secret [{name}] already exists.", "ALREADY_EXISTS")
        return self._secret(place.project, secret)

    def get_secret(self, request: Untyped) -> Untyped:
        """Return a secret, without what it holds."""
        place = self._place(request.name, depth=2)
        return self._secret(place.project, self._find(place))

    def list_secrets(self, request: Untyped) -> Untyped:
        """Return a page of a project's secrets, the newest first."""
        place = self._place(request.parent, depth=1)
        found = self._store.list_all(place.project)
        page, token = _page(found, request)
        secrets = [self._secret(place.project, each) for each in page]
        return MESSAGES["ListSecretsResponse"](secrets=secrets, next_page_token=token, total_size=len(found))

    def delete_secret(self, request: Untyped) -> Untyped:
        """Remove a secret and all its versions."""
        place = self._place(request.name, depth=2)
        _check_etag(request.etag, self._find(place).etag)
        self._store.delete(place.project, place.secret)
        return empty_pb2.Empty()

    def add_secret_version(self, request: Untyped) -> Untyped:
        """Add a version, which is the latest then."""
        place = self._place(request.parent, depth=2)
        payload = request.payload
        self._find(place)
        if not payload.data:
            raise CallError("Secret Payload cannot be empty.")
        if len(payload.data) > MOST_BYTES:
            raise CallError(f"Secret Payload has {len(payload.data)} bytes. Expected at most {MOST_BYTES}.")
        checked = payload.HasField("data_crc32c")
        if checked and payload.data_crc32c != google_crc32c.value(payload.data):
            raise CallError("The checksum in payload.data_crc32c is not that of payload.data.")
        version = self._store.add_version(place.project, place.secret, payload.data, checked=checked)
        if version is None:  # deleted since it was found
            raise self._no_secret(place)
        return self._version(place, version)

    def get_secret_version(self, request: Untyped) -> Untyped:
        """Return a version, without what it holds."""
        place = self._place(request.name, depth=3)
        return self._version(place, self._find_version(place))

    def list_secret_versions(self, request: Untyped) -> Untyped:
        """Return a page of a secret's versions, the newest first."""
        place = self._place(request.parent, depth=2)
        self._find(place)
        found = self._store.list_versions(place.project, place.secret)
        page, token = _page(found, request)
        versions = [self._version(place, each) for each in page]
        return MESSAGES["ListSecretVersionsResponse"](versions=versions, next_page_token=token, total_size=len(found))

    def access_secret_version(self, request: Untyped) -> Untyped:
        """Return what an enabled version holds."""
        place = self._place(request.name, depth=3)
        version = self._find_version(place)
        name = self._name(place.project, place.secret, version.number)
        if version.state != "ENABLED" or version.data is None:
            raise CallError(f"Secret Version [{name}] is in {version.state} state.", "FAILED_PRECONDITION")
        payload = {"data": version.data, "data_crc32c": google_crc32c.value(version.data)}
        return MESSAGES["AccessSecretVersionResponse"](name=name, payload=payload)

    def disable_secret_version(self, request: Untyped) -> Untyped:
        """Keep a version from being read until it is enabled."""
        return self._change(request, "DISABLED")

    def enable_secret_version(self, request: Untyped) -> Untyped:
        """Let a version be read."""
        return self._change(request, "ENABLED")

    def destroy_secret_version(self, request: Untyped) -> Untyped:
        """Forget for good what a version holds."""
        return self._change(request, "DESTROYED")

    def grpc_handler(self) -> grpc.GenericRpcHandler:
        """Return the methods for a gRPC server."""
        return _Dispatch(self.answer, self._methods)

    async def read_call(self, request: Request) -> SecretCall:
        """Read a REST request."""
        path = unquote(request.path)
        for verb, pattern, name, body in _ROUTES:
            found = pattern.fullmatch(path)
            if found is not None and verb == request.method:
                message = await _read_message(request, name, body, found.groupdict())
                method, resources = asked(_SERVICE + name, message)
                of = about(resources)
                return SecretCall(method=method, resources=resources, about=of, name=name, message=message)
        raise CallError(f"The local cloud does not offer {request.method} {request.path}.", "UNIMPLEMENTED")

    async def answer_call(self, call: SecretCall) -> Response:
        """Answer a call."""
        answer = await asyncio.to_thread(self.answer, call.name, call.message)
        return Response(body=json_format.MessageToJson(answer, indent=None).encode())

    def _change(self, request: Untyped, state: VersionState) -> Untyped:
        place = self._place(request.name, depth=3)
        version = self._find_version(place)
        _check_etag(request.etag, version.etag)
        if version.state == "DESTROYED":
            name = self._name(place.project, place.secret, version.number)
            raise CallError(f"Secret Version [{name}] is in DESTROYED state.", "FAILED_PRECONDITION")
        changed = self._store.set_state(place.project, place.secret, version.number, state)
        if changed is None:  # deleted since it was found
            raise self._no_secret(place)
        return self._version(place, changed)

    def _place(self, name: str, *, depth: int) -> _Place:
        """Return what a name stands for.

        Args:
            depth: How many pairs of words it must have: a project's 1, a secret's 2, a version's 3.
        """
        if "/locations/" in name:
            raise CallError(f"{name}: regional secrets are not offered by the local cloud.", "UNIMPLEMENTED")
        found = _NAME.fullmatch(name)
        if found is None or name.count("/") != 2 * depth - 1:
            form = "/".join(("projects/*", "secrets/*", "versions/*")[:depth])
            raise CallError(f"Invalid resource name [{name}]. Expected the form {form}.")
        project = self._projects.find_id(found["project"])
        if project is None:
            raise CallError(
                f"Permission denied on resource project {found['project']} (or it may not exist).", "PERMISSION_DENIED"
            )
        secret, version = found["secret"] or "", found["version"] or ""
        if secret and not _ID.fullmatch(secret):
            raise CallError(f"The provided Secret ID [{secret}] does not match the expected format [{_ID.pattern}].")
        return _Place(project=project, secret=secret, version=version)

    def _find(self, place: _Place) -> Secret:
        secret = self._store.find(place.project, place.secret)
        if secret is None:
            raise self._no_secret(place)
        return secret

    def _find_version(self, place: _Place) -> Version:
        is_latest = place.version == _LATEST
        if not is_latest and not (place.version.isascii() and place.version.isdigit()):
            raise CallError(f"Invalid Secret Version [{place.version}]. Expected a number, or {_LATEST}.")
        number = None if is_latest else min(int(place.version), 2**63 - 1)
        version = self._store.find_version(place.project, place.secret, number)
        if version is not None:
            return version
        name = self._name(place.project, place.secret)
        if is_latest or self._store.find(place.project, place.secret) is None:
            raise CallError(f"Secret [{name}] not found or has no versions.", "NOT_FOUND")
        raise CallError(f"Secret Version [{name}/versions/{place.version}] not found.", "NOT_FOUND")

    def _no_secret(self, place: _Place) -> CallError:
        return CallError(f"Secret [{self._name(place.project, place.secret)}] not found.", "NOT_FOUND")

    def _name(self, project: str, secret: str, version: int | None = None) -> str:
        name = f"projects/{self._projects.number(project)}/secrets/{secret}"
        return name if version is None else f"{name}/versions/{version}"

    def _secret(self, project: str, secret: Secret) -> Untyped:
        message = MESSAGES["Secret"].FromString(secret.body)
        message.name, message.etag = self._name(project, secret.id), secret.etag
        message.create_time.FromNanoseconds(secret.created_ns)
        return message

    def _version(self, place: _Place, version: Version) -> Untyped:
        message = MESSAGES["SecretVersion"](
            name=self._name(place.project, place.secret, version.number),
            state=version.state,
            etag=version.etag,
            client_specified_payload_checksum=version.checked,
        )
        message.create_time.FromNanoseconds(version.created_ns)
        if version.destroyed_ns:
            message.destroy_time.FromNanoseconds(version.destroyed_ns)
        secret = self._store.find(place.project, place.secret)
        replication = MESSAGES["Secret"].FromString(secret.body if secret else b"").replication
        if replication.HasField("user_managed"):
            for replica in replication.user_managed.replicas:
                message.replication_status.user_managed.replicas.add(location=replica.location)
        else:
            message.replication_status.automatic.SetInParent()
        return message


class _Dispatch(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    def __init__(self, answer: Callable[[str, Untyped], Untyped], names: Iterable[str]) -> None:
        self._handlers = {
            _SERVICE + name: grpc.unary_unary_rpc_method_handler(
                _with_name(answer, name),
                request_deserializer=MESSAGES[f"{name}Request"].FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for name in names
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        path = handler_call_details.method
        if path.startswith(_SERVICE) and path not in self._handlers:
            return grpc.unary_unary_rpc_method_handler(_refusing(method_of(path)))
        return self._handlers.get(path)


def _with_name(answer: Callable[[str, Untyped], Untyped], name: str) -> _Behaviour:
    return lambda request, _context: answer(name, request)


def _refusing(method: str) -> _Behaviour:
    def refuse(_request: Untyped, _context: grpc.ServicerContext) -> Untyped:
        raise CallError(f"The local cloud does not offer {method}.", "UNIMPLEMENTED")

    return refuse


def _check_label(key: str, value: str) -> None:
    is_small = key == key.lower() and value == value.lower()
    if not is_small or not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
        raise CallError(
            f"Invalid label {key[:100]!r}: {value[:100]!r}. Expected small letters, digits, _ and -, a letter first in"
            " the key, at most 63 of them."
        )


async def _read_message(request: Request, name: str, body: str, names: dict[str, str]) -> Untyped:
    """Return the request message of a REST call.

    Raises:
        CallError: An unknown field or parameter, a value of the wrong type, no JSON.
    """
    message = MESSAGES[f"{name}Request"]()
    try:
        document = json.loads(await request.read_body() or b"{}") if body else {}
        if not isinstance(document, dict):
            raise CallError(f"Invalid JSON payload received. Expected an object, found {type(document).__name__}.")
        own: dict[str, object] = dict(FIELDS.check_parameters(f"{_KIND}.{name}", request.query))
        json_format.ParseDict(own, message)
        json_format.ParseDict(document, message if body in ("", "*") else getattr(message, body))
    except (ValueError, RecursionError, json_format.ParseError) as error:
        raise CallError(f"Invalid JSON payload received. {error}") from None
    for field, value in names.items():
        setattr(message, field, value)
    return message


def _check_etag(given: str, stored: str) -> None:
    if given and given.strip('"') != stored.strip('"'):
        raise CallError(
            f"The etag provided in the request [{given}] does not match that of the resource.", "FAILED_PRECONDITION"
        )


def _page(rows: list[_Row], request: Untyped) -> tuple[list[_Row], str]:
    """Return a page of rows, and the token of the next one."""
    if request.page_size < 0:
        raise CallError(f"Invalid page size {request.page_size}. Expected a number that is not negative.")
    try:
        begin = int(base64.urlsafe_b64decode(request.page_token)) if request.page_token else 0
    except (ValueError, binascii.Error):
        raise CallError("Invalid page token.") from None
    end = begin + min(request.page_size or _MOST_ON_A_PAGE, _MOST_ON_A_PAGE)
    token = base64.urlsafe_b64encode(str(end).encode()).decode() if end < len(rows) else ""
    return rows[begin:end], token

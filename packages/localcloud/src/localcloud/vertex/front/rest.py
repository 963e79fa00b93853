"""The REST server: HTTP/1.1 with Google's JSON, `/faults`, `/calls`, `/iam`, `/clock`, and `/healthz`.

Comes in: HTTP requests. Goes out: proto JSON, or Google's error JSON.
"""

from __future__ import annotations

import http.server
import json
import logging
import socket
import socketserver
import threading
import urllib.parse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from localcloud.access.bearer import BearerError, Bearers
from localcloud.access.credentials import ACCOUNT_EMAIL
from localcloud.access.iam import Iam, TableError
from localcloud.vertex.front.dispatch import Dispatcher
from localcloud.vertex.front.transcoding import Router, read_request, write_response
from localcloud.vertex.resources.clock import PredictionClock
from localcloud.vertex.resources.faults import Faults
from localcloud.vertex.wire.errors import ApiError, InvalidArgument, NotFound, PermissionDenied
from localcloud.vertex.wire.methods import Method

LOGGER = logging.getLogger(__name__)
_JSON = "application/json; charset=UTF-8"


class RestServer(http.server.ThreadingHTTPServer):
    """Listens for REST, and answers in the background once it is started.

    Args:
        faults: What `/faults` changes.
        bearers: Knows who calls.
        iam: What `/iam` changes.
        clock: What `/clock` changes.
        socket_path: Unix socket to listen on.
    """

    daemon_threads = True
    address_family = socket.AF_UNIX
    request_queue_size = 128

    def __init__(
        self,
        dispatcher: Dispatcher,
        methods: Iterable[Method],
        faults: Faults,
        bearers: Bearers,
        iam: Iam,
        *,
        clock: PredictionClock,
        socket_path: Path,
    ) -> None:
        self.dispatcher = dispatcher
        self.router = Router(methods)
        self.faults = faults
        self.bearers = bearers
        self.iam = iam
        self.clock = clock
        socket_path.unlink(missing_ok=True)  # of a server that was killed: this state directory is ours
        super().__init__(str(socket_path), _Handler)  # type: ignore[arg-type]  # a path for AF_UNIX

    def server_bind(self) -> None:
        """Take the socket (an HTTPServer would ask for the name of its host)."""
        socketserver.TCPServer.server_bind(self)

    def start(self) -> None:
        """Begin to answer."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, name="rest", daemon=True).start()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body leave in one packet: two would wait 40 ms for an ACK
    server: RestServer

    def log_message(self, format: str, *args: object) -> None:
        LOGGER.debug(format, *args)

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PATCH = do_DELETE = do_PUT = do_GET

    def _serve(self) -> None:
        headers: Mapping[str, str] = {}
        try:
            body = self._body()
            parts = urllib.parse.urlsplit(self.path)
            path = urllib.parse.unquote(parts.path)
            principal = "" if path == "/healthz" else self._authenticate()
            if path == "/healthz" or path.split("/")[1] in ("faults", "calls", "iam", "clock"):
                self._require_owner(principal, path)
                status, data, kind = self._own_page(path, body)
            else:
                query = urllib.parse.parse_qs(parts.query, keep_blank_values=True)
                data, kind, headers = self._call(path, query, body, principal)
                status = 200
        except ApiError as error:
            status, data, kind = error.http_status, json.dumps(error.to_json(), indent=2).encode() + b"\n", _JSON
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _authenticate(self) -> str:
        try:
            return self.server.bearers.principal(self.headers.get("Authorization", ""))
        except BearerError as error:
            raise ApiError(str(error), code="UNAUTHENTICATED") from None

    def _require_owner(self, principal: str, path: str) -> None:
        """Refuse the local cloud's own pages to everybody else: what runs in it must not change its rules."""
        if path != "/healthz" and principal != ACCOUNT_EMAIL:
            raise PermissionDenied(
                f"{path} is for {ACCOUNT_EMAIL}, the local cloud's owner; called by {principal}. Use the token that"
                " `localcloud token` prints."
            )

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(parts)

    def _call(
        self, path: str, query: dict[str, list[str]], body: bytes, principal: str
    ) -> tuple[bytes, str, Mapping[str, str]]:
        verb = self.headers.get("X-HTTP-Method-Override", self.command)
        match = self.server.router.find_method(verb, path)
        request = read_request(match, query, body, self.headers.get("Content-Type", ""))
        host = self.headers.get("X-Forwarded-Host") or self.headers.get("Host") or ""
        response, headers = self.server.dispatcher.call(match.method, request, host, principal)
        data, kind = write_response(response, query)
        return data, kind, headers

    def _own_page(self, path: str, body: bytes) -> tuple[int, bytes, str]:
        answer: Any = {}
        parts = path.strip("/").split("/")
        if parts == ["healthz"]:
            answer = {"status": "SERVING"}
        elif self.command == "GET" and parts == ["calls"]:
            answer = {"calls": self.server.faults.read_counts()}
        elif parts == ["iam"]:
            answer = self._iam_page(body)
        elif parts == ["clock"]:
            answer = self._clock_page(body)
        elif self.command == "POST" and parts == ["faults"]:
            answer = self.server.faults.create(_from_json(body))
        elif self.command == "GET" and parts == ["faults"]:
            answer = {"faults": self.server.faults.list_all()}
        elif self.command == "DELETE" and len(parts) <= 2 and (len(parts) == 1 or parts[1].isdigit()):
            self.server.faults.delete(int(parts[1]) if len(parts) == 2 else None)
        else:
            raise NotFound(
                f"{self.command} {path} was not found. Expected GET, POST or DELETE on /faults, /iam or /clock, DELETE"
                f" on /faults/NUMBER, GET on /calls or /healthz."
            )
        return 200, json.dumps(answer, indent=2).encode() + b"\n", _JSON

    def _clock_page(self, body: bytes) -> dict[str, Any]:
        if self.command == "POST":
            return self.server.clock.set_time(_from_json(body))
        if self.command == "DELETE":
            self.server.clock.reset()
        return self.server.clock.describe()

    def _iam_page(self, body: bytes) -> Any:  # noqa: ANN401 - JSON
        if self.command == "POST":
            try:
                return self.server.iam.put(json.loads(body))
            except TableError as error:
                raise InvalidArgument(str(error)) from error
            except ValueError as error:
                raise InvalidArgument(f"Invalid JSON payload received. {error}.") from error
        if self.command == "DELETE":
            self.server.iam.delete()
        return self.server.iam.table() or {}


def _from_json(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError as error:
        raise InvalidArgument(f"Invalid JSON payload received. {error}.") from error

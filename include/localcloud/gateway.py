"""The one door to the local cloud: an HTTP CONNECT proxy that ends TLS itself, so that real host names lead here.

In: connections of unmodified Google clients (`https_proxy`). Out: for a host of `routes`, TLS with a certificate of our
own authority, then HTTP/2 bytes piped to the service's gRPC port or HTTP/1.1 requests to its REST port. Every other
host, and every request that is not CONNECT, is refused: nothing local can reach the real cloud by mistake.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path

import uvloop

from localcloud import credentials, http1
from localcloud.certificates import Authority
from localcloud.faults import FaultShelf
from localcloud.http1 import Head, MalformedMessageError, Request, Response
from localcloud.identity import Identity
from localcloud.logservice import LogService
from localcloud.logstore import LogStore
from localcloud.projects import Projects
from localcloud.resource_manager import ResourceManager
from localcloud.routes import Address, Handler, Route, Routes
from localcloud.state import State
from localcloud.storage_faults import StorageFaults
from localcloud.storage_guard import StorageGuard
from localcloud.storage_rules import StorageRules

_log = logging.getLogger("gateway")

HANDSHAKE_TIMEOUT_S = 30
_GONE = (ConnectionError, MalformedMessageError, ssl.SSLError, TimeoutError)


class Gateway:
    """Accepts connections and carries each to the service its host name stands for."""

    def __init__(self, authority: Authority, routes: Routes) -> None:
        self._authority = authority
        self._routes = routes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client connection to its end."""
        try:
            await self._serve(reader, writer)
        except _GONE as error:
            _log.debug("connection ended: %r", error)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(http1.read_head(reader), HANDSHAKE_TIMEOUT_S)
        if head is None:
            return
        host = head.target.rsplit(":", 1)[0]  # tensorflow-io's gRPC sends no port
        route = self._routes.find(host) if head.method == "CONNECT" else None
        if route is None:
            await self._refuse(head, writer)
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
        plain_reader, plain_writer, protocol = await self._end_tls(writer, host)
        try:
            if protocol == "h2":
                await self._pipe_grpc(plain_reader, plain_writer, route)
            else:
                await self._serve_http1(plain_reader, plain_writer, host, route)
        finally:
            plain_writer.close()

    async def _refuse(self, head: Head, writer: asyncio.StreamWriter) -> None:
        asked = head.target if head.method == "CONNECT" else f"{head.method} {head.target}"
        text = (
            f"local cloud: refused {asked}. Expected CONNECT to one of: {', '.join(self._routes.hosts())}. "
            "This gateway leads to the local cloud only; to reach another host, unset https_proxy for that process.\n"
        )
        _log.warning("%s", text.strip())
        response = Response(status=403, body=text.encode(), content_type="text/plain; charset=utf-8")
        writer.write(response.encode(close=True))
        await writer.drain()

    async def _end_tls(
        self, writer: asyncio.StreamWriter, host: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str | None]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=http1.HEAD_LIMIT_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport = await loop.start_tls(
            writer.transport,
            protocol,
            self._authority.server_context(host),
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
        )
        if transport is None:
            raise ConnectionResetError("the client went away during the handshake")
        protocol.connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop), tls.selected_alpn_protocol()

    async def _pipe_grpc(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, route: Route) -> None:
        if route.grpc is None:
            _log.warning("%s has no gRPC service here", route.host)
            return
        async with _connection(route.grpc) as (up_reader, up_writer):
            await _first_to_end(_pump(reader, up_writer), _pump(up_reader, writer))

    async def _serve_http1(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, route: Route
    ) -> None:
        while (head := await http1.read_head(reader)) is not None:
            _acknowledge(writer)
            target = route.rest(head)
            if target is None:
                message = f"{host} has no {head.target.split('?')[0]} in the local cloud"
                writer.write(Response.of_error(404, message, "NOT_FOUND").encode(close=True))
                await writer.drain()
                return
            if isinstance(target, Address):
                keep = await self._forward(reader, writer, _mend(head, host), target)
            else:
                keep = await self._answer(reader, writer, host, head, target)
            if not keep:
                return

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: Head, address: Address
    ) -> bool:
        """Carry one request to a REST server and its response back; tell whether the connection can go on."""
        try:
            opened = await address.connect()
        except ConnectionError:
            message = f"{address.name} is not answering; see its log with `python -m localcloud status`"
            writer.write(Response.of_error(503, message, "UNAVAILABLE").encode(close=True))
            await writer.drain()
            return False
        up_reader, up_writer = opened
        up_writer.write(head.encode())
        body = http1.read_request_body(reader, head, raw=True)
        sending = asyncio.create_task(_write_all(body, up_writer))
        try:
            answer = await _relay_response(up_reader, writer, head.method)
            complete = sending.done()  # an early answer leaves the rest of the request unread
            return complete and http1.has_length(answer, head.method) and not head.closes()
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, *_GONE):
                await sending
            up_writer.close()

    async def _answer(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        head: Head,
        handler: Handler,
    ) -> bool:
        """Answer one request inside the gateway; tell whether the connection can go on."""
        if head.get("expect").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request = Request(host=host, head=head, body=http1.read_request_body(reader, head, raw=False))
        try:
            response = await handler(request)
        except _GONE:
            raise
        except Exception:  # noqa: BLE001 - a fault of ours is told to the client and logged, as any server does
            _log.exception("%s %s%s", head.method, host, head.target)
            message = "The local cloud failed on this request; the gateway's log has the reason"
            response = Response.of_error(500, message, "INTERNAL")
        async for _ in request.body:  # what the handler left unread
            pass
        writer.write(response.encode(close=head.closes()))
        await writer.drain()
        return not head.closes()


def _acknowledge(writer: asyncio.StreamWriter) -> None:
    """Acknowledge what came so far at once.

    Behind a proxy urllib3 sends a body only when its head is acknowledged (it leaves Nagle's algorithm on), and the
    kernel would wait 40 ms with that.
    """
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _mend(head: Head, host: str) -> Head:
    """Give the request head as the servers behind the gateway need it.

    TensorFlow's gs:// sends `Transfer-Encoding: identity`, which Go's HTTP server refuses with 501. Storage builds the
    address of a resumable upload from X-Forwarded-Proto. A connection of the client is not one of the server's.
    """
    mended = head.without("x-forwarded-proto", "x-forwarded-host", "proxy-connection", "connection", "keep-alive")
    if not head.is_chunked():
        mended = mended.without("transfer-encoding")
    mended.fields += [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", host)]
    return mended


async def _relay_response(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str) -> Head:
    while True:
        answer = await http1.read_head(reader)
        if answer is None:
            raise ConnectionResetError("the server closed the connection without an answer")
        relayed = answer.without("connection", "keep-alive")
        if answer.status >= 200 and not http1.has_length(answer, method):
            relayed.fields.append(("Connection", "close"))
        writer.write(relayed.encode())
        if answer.status >= 200:
            break
        await writer.drain()
    await _write_all(http1.read_response_body(reader, answer, method), writer)
    return answer


async def _write_all(pieces: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for piece in pieces:
        writer.write(piece)
        await writer.drain()
    await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(*_GONE):
        while piece := await reader.read(http1.CHUNK_BYTES):
            writer.write(piece)
            await writer.drain()


async def _first_to_end(*coroutines: Coroutine[None, None, None]) -> None:
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def _connection(address: Address) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await address.connect()
    try:
        yield reader, writer
    finally:
        writer.close()


async def run(state: State) -> None:
    """Serve until SIGTERM or SIGINT."""
    settings = state.read_settings()
    projects = Projects.of(state)
    store = LogStore(state.logs_path)
    logs = LogService(store, projects)
    identity = Identity(credentials.load_or_create(state), projects=projects)
    guard = StorageGuard(Address("storage", settings.ports["storage"]), state.directory("uploads"))
    rules = StorageRules(guard.choose, projects)
    storage = StorageFaults(rules, FaultShelf(state.faults_path)).choose
    gateway = Gateway(Authority(state), Routes(settings, identity=identity.answer, logs=logs.answer, storage=storage))
    grpc_server = logs.start_grpc(settings.ports["logging_grpc"], ResourceManager(projects))
    server = await asyncio.start_server(
        gateway.serve, settings.gateway_host, settings.ports["gateway"], limit=http1.HEAD_LIMIT_BYTES, backlog=512
    )
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    server.close()
    grpc_server.stop(grace=0.2)


def main(arguments: list[str] | None = None) -> int:
    """Run the gateway of a state directory."""
    parser = argparse.ArgumentParser(prog="localcloud.gateway", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(State(options.state)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

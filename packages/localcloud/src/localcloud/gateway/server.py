"""The one way into the local cloud: an HTTP CONNECT proxy that ends TLS itself, so that real host names lead here.

In: connections of unmodified Google clients (`https_proxy`). Out: for a host of `routes`, TLS with a certificate of our
own authority, then HTTP/2 bytes piped to the service's gRPC socket or HTTP/1.1 requests to its REST socket. Every other
host, and every request that is not CONNECT, is refused: nothing local can reach the real cloud by mistake. A request
must say who calls (`bearer`; gRPC servers check it themselves) or have a signed address (`signed_urls`), and must not
come from a page of another site.
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

from localcloud.access.bearer import WAY_OUT, BearerError, Bearers
from localcloud.access.certificates import Authority
from localcloud.gateway.services import start_services
from localcloud.gateway.signed_urls import SignedUrlError, SignedUrls, without_signature
from localcloud.http import http1
from localcloud.http.http1 import Exchange, Head, MalformedMessageError, Peer, Request, Response
from localcloud.http.routes import Address, Handler, Route, Routes
from localcloud.state import State
from localcloud.storage.refusals import RefusedError, nobody
from localcloud.storage.requests import is_xml

_log = logging.getLogger("gateway")

HANDSHAKE_TIMEOUT_S = 30
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'}
_STORAGE = "storage.googleapis.com"
_GONE = (ConnectionError, ssl.SSLError, TimeoutError)


class Gateway:
    """Accepts connections and carries each to the service its host name stands for."""

    def __init__(self, authority: Authority, routes: Routes, bearers: Bearers, signed_urls: SignedUrls) -> None:
        self._authority = authority
        self._routes = routes
        self._bearers = bearers
        self._signed_urls = signed_urls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client connection to its end."""
        peer = Peer(reader, writer)
        try:
            await self._serve(peer, writer)
        except (*_GONE, MalformedMessageError) as error:
            await _tell(peer, error)
            _log.debug("connection ended: %r", error)
        finally:
            writer.close()

    async def _serve(self, peer: Peer, writer: asyncio.StreamWriter) -> None:
        head = await peer.receive()
        if head is None:
            return
        host = head.target.rsplit(":", 1)[0]  # tensorflow-io's gRPC sends no port
        route = self._routes.find_route(host) if head.method == "CONNECT" else None
        if route is None:
            await self._refuse(head, peer)
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
        plain_reader, plain_writer, protocol = await self._end_tls(writer, host)
        try:
            if protocol == "h2":
                await self._pipe_grpc(plain_reader, plain_writer, route)
            else:
                await self._serve_http1(Peer(plain_reader, plain_writer), plain_writer, host, route)
        finally:
            plain_writer.close()

    async def _refuse(self, head: Head, peer: Peer) -> None:
        asked = head.target if head.method == "CONNECT" else f"{head.method} {head.target}"
        text = (
            f"local cloud: refused {asked}. Expected CONNECT to one of: {', '.join(self._routes.hosts())}. "
            "This gateway leads to the local cloud only; to reach another host, unset https_proxy for that process.\n"
        )
        _log.warning("%s", text.strip())
        response = Response(status=403, body=text.encode(), content_type="text/plain; charset=utf-8")
        await peer.respond(response)

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

    async def _serve_http1(self, peer: Peer, writer: asyncio.StreamWriter, host: str, route: Route) -> None:
        try:
            while (head := await peer.receive()) is not None:
                _acknowledge(writer)
                await self._serve_one(peer, host, route, head)
                if not peer.next_request():
                    return
        except (*_GONE, MalformedMessageError) as error:
            await _tell(peer, error)

    async def _serve_one(self, peer: Peer, host: str, route: Route, head: Head) -> None:
        refusal, principal = self._admit(host, head)
        target = None if refusal is not None else route.rest(head)
        if refusal is not None:
            await peer.respond(refusal)
        elif target is None:
            message = f"{host} has no {head.target.split('?')[0]} in the local cloud"
            await peer.respond(Response.of_error(404, message, "NOT_FOUND"))
        elif isinstance(target, Address):
            await self._forward(peer, _forwarded(head, host), target)
        else:
            asked = without_signature(head) if _may_be_signed(host, head) else head
            await self._answer(peer, Request(host=host, principal=principal, head=asked, body=peer.body()), target)

    def _admit(self, host: str, head: Head) -> tuple[Response | None, str]:
        """Return the refusal of a request, or None and who sent it.

        A browser says where a page is from (Origin), and by which name it thinks to reach us (Host): a page of another
        site may not use the tunnel of somebody's browser, whatever name its server gave to this address.
        """
        named = head.get("host").lower().removesuffix(":443")
        if named != host:
            message = f"Host {named!r} in a connection to {host}. Expected the host that the connection was made to."
            return Response.of_error(421, message, "FAILED_PRECONDITION"), ""
        origin = head.get("origin")
        if origin and self._routes.find_route(origin.removeprefix("https://").removesuffix(":443")) is None:
            message = f"Requests from pages of {origin} are refused. Expected a client without Origin."
            return Response.of_error(403, message, "PERMISSION_DENIED"), ""
        if host == "oauth2.googleapis.com":  # who asks for a token has none
            return None, ""
        try:
            return None, self._signer(host, head) or self._bearers.principal(head.get("authorization"))
        except SignedUrlError as error:
            return RefusedError(error.status, str(error), xml_code=error.code).respond(xml=True), ""
        except BearerError as error:
            return _unauthenticated(host, head, error), ""

    def _signer(self, host: str, head: Head) -> str | None:
        """Return who signed the address of a request to Cloud Storage; None: nobody, or the request says who calls."""
        return self._signed_urls.signer(head) if _may_be_signed(host, head) else None

    async def _forward(self, peer: Peer, head: Head, address: Address) -> None:
        """Carry one request to a REST server and its response back."""
        try:
            exchange = Exchange(await address.connect(), head)
        except OSError:
            message = f"{address.name} is not answering; see its log with `localcloud status`"
            await peer.respond(Response.of_error(503, message, "UNAVAILABLE"))
            return
        sending = asyncio.create_task(exchange.send_body(peer.body()))
        receiving = asyncio.create_task(exchange.receive())
        try:
            await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and isinstance(sending.exception(), MalformedMessageError):
                await sending  # the client's fault: the server waits for what never comes
            answer = await receiving
            await peer.begin(answer.status, http1.passed_on(answer))
            async for piece in exchange.body():
                await peer.send(piece)
            await peer.end()
        finally:
            for task in (sending, receiving):
                task.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)
            exchange.close()

    async def _answer(self, peer: Peer, request: Request, handler: Handler) -> None:
        """Answer one request inside the gateway."""
        try:
            response = await handler(request)
        except (*_GONE, MalformedMessageError):
            raise
        except Exception:  # noqa: BLE001 - a fault of ours is answered and logged, as any server does
            _log.exception("%s %s%s", request.method, request.host, request.head.target)
            message = "The local cloud failed on this request; the gateway's log has the reason"
            response = Response.of_error(500, message, "INTERNAL")
        async for _ in request.body:  # what the handler left unread
            pass
        await peer.respond(response)


def _may_be_signed(host: str, head: Head) -> bool:
    """Whether a request's address can say who calls: it is of the XML API, and the request says it nowhere else."""
    return host == _STORAGE and not head.get("authorization") and is_xml(head.target)


def _unauthenticated(host: str, head: Head, error: BearerError) -> Response:
    """Refuse who does not say who calls, in the form of the service that was asked."""
    if host == _STORAGE or "/storage/v1/" in head.target:
        is_missing = not head.get("authorization").strip()
        response = nobody(WAY_OUT, xml=is_xml(head.target), is_missing=is_missing)
    else:
        response = Response.of_error(401, str(error), "UNAUTHENTICATED")
    response.fields.update(_CHALLENGE)
    return response


async def _tell(peer: Peer, error: Exception) -> None:
    """Answer what was no HTTP, where an answer can still be sent; the connection ends after it."""
    _log.debug("connection ended: %r", error)
    if isinstance(error, MalformedMessageError) and peer.can_answer:
        with contextlib.suppress(*_GONE):
            await peer.respond(Response.of_error(error.status, str(error), "INVALID_ARGUMENT", {"Connection": "close"}))


def _acknowledge(writer: asyncio.StreamWriter) -> None:
    """Acknowledge what came so far at once.

    Behind a proxy urllib3 sends a body only when its head is acknowledged (it leaves Nagle's algorithm on), and the
    kernel would wait 40 ms with that.
    """
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _forwarded(head: Head, host: str) -> Head:
    """Return the request head as the servers behind the gateway need it.

    Storage builds the address of a resumable upload from X-Forwarded-Proto.
    """
    forwarded = head.without("x-forwarded-proto", "x-forwarded-host")
    forwarded.fields += [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", host)]
    return forwarded


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


async def serve_gateway(state: State) -> None:
    """Serve until SIGTERM or SIGINT."""
    settings = state.read_settings()
    bearers = Bearers(state)
    services = start_services(state, bearers)
    gateway = Gateway(Authority(state), Routes(state, services.handlers), bearers, SignedUrls(state))
    server = await asyncio.start_server(
        gateway.serve, settings.gateway_host, settings.ports["gateway"], limit=http1.HEAD_LIMIT_BYTES, backlog=512
    )
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    server.close()
    services.grpc_server.stop(grace=0.2)


def main(arguments: list[str] | None = None) -> int:
    """Run the gateway of a state directory."""
    parser = argparse.ArgumentParser(prog="localcloud.gateway.server", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve_gateway(State(options.state)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

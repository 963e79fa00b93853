"""A mail server and a webhook on loopback that keep what they are sent."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class MailSink:
    """What a mail server took.

    Attributes:
        port: On 127.0.0.1.
        mails: In order.
        refused: Answer to every recipient instead of taking it.
    """

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    refused: str = ""


@dataclass
class HookSink:
    """What a webhook was posted.

    Attributes:
        port: On 127.0.0.1.
        posts: Path and body, in order.
        statuses: Of the next answers; then 200.
    """

    port: int = 0
    posts: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)


@contextlib.contextmanager
def mail_sink() -> Iterator[MailSink]:
    """A mail server, for as long as it is used."""
    sink = MailSink()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 sink")
            while line := self.rfile.readline().decode().strip():
                verb = line.split(" ")[0].split(":")[0].upper()
                if verb == "QUIT":
                    self.say("221 bye")
                    return
                if verb == "RCPT" and sink.refused:
                    self.say(sink.refused)
                elif verb == "DATA":
                    self.say("354 go on")
                    self.take()
                    self.say("250 taken")
                else:
                    self.say("250 sink")

        def take(self) -> None:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b"."))
            sink.mails.append(message_from_bytes(b"".join(lines), policy=policy.default))

        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    with _serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as sink.port:
        yield sink


@contextlib.contextmanager
def hook_sink() -> Iterator[HookSink]:
    """A webhook, for as long as it is used."""
    sink = HookSink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = sink.statuses.pop(0) if sink.statuses else 200
            if status == 200:
                sink.posts.append((self.path, body))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as sink.port:
        yield sink


@dataclass
class StubbornServer:
    """A server that answers as it likes, until its caller is gone.

    Attributes:
        port: On 127.0.0.1.
        sent: Bytes that callers' sockets took.
        callers: How many there were.
        left: Set when one has gone.
    """

    port: int = 0
    sent: int = 0
    callers: int = 0
    left: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def stubborn_server(answer: Callable[[], Iterator[bytes]]) -> Iterator[StubbornServer]:
    """A server that sends something to whoever calls, and then waits until the caller goes."""
    server = StubbornServer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            server.callers += 1
            with contextlib.suppress(OSError):
                for part in answer():
                    self.wfile.write(part)
                    server.sent += len(part)
                while self.rfile.read(1):
                    pass
            server.left.set()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with _serving(Server(("127.0.0.1", 0), Handler)) as server.port:
        yield server


def mail_text(mail: EmailMessage) -> str:
    """Return a mail's text, decoded."""
    part = mail.get_body(("html", "plain"))
    assert part is not None
    return str(part.get_content())


def connections(mail: MailSink | None, hook: HookSink | None, path: str = "T000/B000/XXXX") -> dict[str, str]:
    """Return the variables of Airflow's connections `smtp_default` and `team_channel` to them."""
    found = {}
    if mail is not None:
        extra = {"from_email": "retraining@example.com", "disable_ssl": True, "disable_tls": True, "timeout": 5}
        values = {"conn_type": "smtp", "host": "127.0.0.1", "port": mail.port, "extra": extra}
        found["AIRFLOW_CONN_SMTP_DEFAULT"] = json.dumps(values)
    if hook is not None:
        host = f"http://127.0.0.1:{hook.port}/services"
        found["AIRFLOW_CONN_TEAM_CHANNEL"] = json.dumps({"conn_type": "http", "host": host, "password": path})
    return found


@contextlib.contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[int]:
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()

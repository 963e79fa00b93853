"""5,000 malformed inputs at every front: each gets an error of the service's kind, at once, and no server minds.

The inputs are made of good ones by a seeded generator, so that a failure can be repeated; its number is in the message.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import sqlite3
import ssl
import string
import time
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import grpc
import pytest

from localcloud.logs.filters import FilterError, compile_filter
from localcloud.logs.store import Entry, LogStore, is_found
from localcloud.storage.names import decode, encode
from localcloud.vertex.wire.errors import InvalidArgument
from localcloud.vertex.wire.filters import compile_filter as compile_list_filter
from tests.support.mutations import quickly

SEED = 20261122
PATIENCE_S = 10.0
FILTER_S = 2.0  # of this thread
PARENT = "projects/local-project/locations/us-central1"
# What one front answers: (400 and its like, 2xx by luck). 500 and 503 are a server's fault; BigQuery's 501 is a word.
SERVICE_STATUS = {*range(200, 210), *range(300, 309), *range(400, 432), 501}
NASTY = [
    *(
        "",
        "\0",
        "\xff\xfe",
        "%",
        "%zz",
        "..",
        "../../x",
        "//",
        "'",
        '"',
        "\\",
        "(",
        "[" * 300,
        "{" * 300,
        "-1",
        "1e999",
    ),
    *("9" * 400, "NaN", "null", "true", "\r\n", "\r\nX: y", "é" * 50, "\u202e", "a" * 5000, "*" * 200, "(a+)+$"),
]


def seeded(seed: int) -> random.Random:
    """Return a generator whose inputs are the same each time."""
    return random.Random(seed)


def mutated(rng: random.Random, text: str) -> str:
    """Return a text with up to four things wrong."""
    for _ in range(rng.randint(1, 4)):
        at, kind = rng.randint(0, len(text)), rng.randint(0, 4)
        if kind == 0:
            text = text[:at] + rng.choice(NASTY) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randint(1, 20) :]
        elif kind == 2:
            text = text[:at] + rng.choice(string.printable) + text[at + 1 :]
        elif kind == 3:
            text = text[:at]
        else:
            text = text[at:] + text[:at]
    return text


def mutated_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with up to four things wrong."""
    return mutated(rng, data.decode("latin-1")).encode("latin-1", "replace")


class Wire:
    """A raw TLS connection through the gateway, opened anew when it was closed."""

    def __init__(self, local_cloud, host: str) -> None:
        self._address = urlsplit(local_cloud.env["https_proxy"])
        self._context = ssl.create_default_context(cafile=local_cloud.env["SSL_CERT_FILE"])
        self._context.set_alpn_protocols(["http/1.1"])
        self._host = host
        self._socket: ssl.SSLSocket | None = None

    def ask(self, data: bytes, *, ends: bool) -> bytes:
        """Send bytes; give the head of what comes back, b"" when the connection was closed without a word."""
        for _ in range(2):  # a kept connection may have been closed since
            fresh = self._socket is None
            if self._socket is None:
                self._socket = self._connect()
            try:
                self._socket.sendall(data)
                answer = self._receive()
            except TimeoutError:
                pytest.fail(f"no answer within {PATIENCE_S} s to {data!r}")
            except OSError:
                answer = b""
            if ends or not answer:
                self.close()
            if answer or fresh:
                return answer
        return b""

    def _receive(self) -> bytes:
        """Read one answer with its body."""
        assert self._socket is not None
        answer = b""
        while b"\r\n\r\n" not in answer:
            if not (piece := self._socket.recv(65536)):
                return answer
            answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if b"content-length" not in fields or fields.get(b"connection") == b"close":
            self.close()
            return head
        while len(body) < int(fields[b"content-length"]):
            body += self._socket.recv(65536)
        return head

    def _connect(self) -> ssl.SSLSocket:
        raw = socket.create_connection((self._address.hostname, self._address.port), timeout=PATIENCE_S)
        raw.sendall(f"CONNECT {self._host}:443 HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())
        assert b" 200 " in raw.recv(4096)
        return self._context.wrap_socket(raw, server_hostname=self._host)

    def close(self) -> None:
        """Close it, if it is open."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def request(
    host: str, method: str, target: str, token: str, body: bytes = b"", kind: str = "application/json"
) -> bytes:
    """Return a good request's bytes."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", f"Authorization: {token}", f"Content-Type: {kind}"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


@pytest.fixture(autouse=True)
def logs(local_cloud) -> Iterator[None]:
    """No server prints a traceback, and each still answers at once."""
    paths = sorted((local_cloud.state_path / "server-logs").glob("*.log"))
    before = {path: path.stat().st_size for path in paths}
    yield
    for path in paths:
        said = path.read_bytes()[before[path] :].decode(errors="replace")
        assert "Traceback" not in said, said[-3000:]
    begun = time.monotonic()
    for url in (
        f"https://us-central1-aiplatform.googleapis.com/v1/{PARENT}/customJobs",
        "https://bigquery.googleapis.com/bigquery/v2/projects/local-project/datasets",
        f"https://storage.googleapis.com/storage/v1/b/{local_cloud.bucket}",
        "https://logging.googleapis.com/v2/projects/local-project/logs",
    ):
        assert local_cloud.http.get(url, timeout=PATIENCE_S).status_code == 200
    assert time.monotonic() - begun < PATIENCE_S


def test_http_itself(local_cloud):
    """1,000: heads and framing that are none. The gateway says 4xx or 501, or ends the connection."""
    host = "storage.googleapis.com"
    rng, wire = seeded(SEED), Wire(local_cloud, host)
    good = request(host, "POST", "/storage/v1/b?project=p", "Bearer x", b'{"name": "n"}').decode()
    chunked = good.split("Content-Length")[0] + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    extras = ["Content-Length: -1", "Content-Length: 5, 6", "Transfer-Encoding: gzip", "X" * 70000, ": x", "A B: c"]
    for number in range(1000):
        text = rng.choice([good, chunked])
        if rng.random() < 0.3:
            text = text.replace("\r\n", f"\r\n{rng.choice(extras)}\r\n", 1)
        data = mutated(rng, text).encode("latin-1", "replace") + b"\r\n\r\n"
        head = wire.ask(data, ends=True)
        if head:
            assert int(head.split(b" ")[1]) in SERVICE_STATUS, (number, data, head)


def rest_inputs(rng: random.Random, bucket: str) -> tuple[str, str, str, bytes]:
    """Return host, method, target and body of a call with something wrong."""
    job = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1"}}]}}
    asked = {"query": "SELECT @a", "queryParameters": [{"name": "a"}], "useLegacySql": False}
    query = {"configuration": {"query": asked}}
    select = {"query": "SELECT 1", "maxResults": 1, "useLegacySql": False}
    entry = {"resourceNames": ["projects/local-project"], "filter": 'severity>=ERROR AND labels.a="b"', "pageSize": 2}
    vertex, bigquery, logging = "us-central1-aiplatform", "bigquery", "logging"
    host, method, target, body = rng.choice(
        [
            (vertex, "POST", f"/v1/{PARENT}/customJobs", json.dumps(job)),
            (vertex, "GET", f"/v1/{PARENT}/customJobs?filter=display_name%3D%22x%22&pageSize=3&pageToken=abc", ""),
            (vertex, "POST", f"/v1/{PARENT}/endpoints/1:predict", '{"instances": [{"a": 1}]}'),
            (vertex, "POST", "/faults", '{"target": "x", "count": 1, "action": {"kind": "error"}}'),
            (bigquery, "POST", "/bigquery/v2/projects/local-project/jobs", json.dumps(query)),
            (bigquery, "POST", "/bigquery/v2/projects/local-project/queries", json.dumps(select)),
            (bigquery, "GET", "/bigquery/v2/projects/local-project/datasets/d/tables/t/data?startIndex=1", ""),
            ("storage", "GET", f"/storage/v1/b/{bucket}/o?prefix=a&maxResults=2&pageToken=x&delimiter=%2F", ""),
            ("storage", "POST", f"/upload/storage/v1/b/{bucket}/o?uploadType=resumable", '{"name": "fuzz/a"}'),
            ("storage", "POST", f"/storage/v1/b/{bucket}/o/fuzz%2Fa/compose", '{"sourceObjects": [{"name": "b"}]}'),
            ("storage", "DELETE", f"/storage/v1/b/{bucket}/o/fuzz%2Fno?ifGenerationMatch=1", ""),
            (logging, "POST", "/v2/entries:list", json.dumps(entry)),
            (logging, "POST", "/v2/entries:write", '{"entries": [{"logName": "projects/p/logs/l"}]}'),
            ("oauth2", "POST", "/token", "grant_type=urn%3Aietf&assertion=a.b.c"),
            ("iamcredentials", "POST", "/v1/projects/-/serviceAccounts/a@b:signBlob", '{"payload": "YQ=="}'),
            ("cloudresourcemanager", "GET", "/v1/projects/local-project", ""),
        ]
    )
    if body and rng.random() < 0.7:
        body = mutated(rng, body)
    else:
        target = "/" + quote(mutated(rng, target[1:]), safe="/?&=%:@-._~")
    return f"{host}.googleapis.com", method, target, body.encode()


def test_rest(local_cloud):
    """1,500: addresses, queries and bodies of every REST front."""
    url = f"https://storage.googleapis.com/upload/storage/v1/b/{local_cloud.bucket}/o?uploadType=media&name=fuzz/kept"
    local_cloud.http.post(url, data=b"x", timeout=PATIENCE_S)  # an empty bucket would go by a DELETE that was cut short
    rng = seeded(SEED + 1)
    wires: dict[str, Wire] = {}
    for number in range(1500):
        host, method, target, body = rest_inputs(rng, local_cloud.bucket)
        wire = wires.setdefault(host, Wire(local_cloud, host))
        data = request(host, method, target, local_cloud.headers["Authorization"], body)
        head = wire.ask(data, ends=False)
        assert head, (number, data)
        assert int(head.split(b" ")[1]) in SERVICE_STATUS, (number, data, head)
    local_cloud.http.delete("https://us-central1-aiplatform.googleapis.com/faults", timeout=PATIENCE_S)


GRPC = {
    "us-central1-aiplatform": [
        *(f"/google.cloud.aiplatform.v1.JobService/{name}" for name in ("CreateCustomJob", "ListCustomJobs")),
        "/google.cloud.aiplatform.v1.ModelService/UploadModel",
        "/google.cloud.aiplatform.v1.PredictionService/Predict",
    ],
    "bigquerystorage": [
        "/google.cloud.bigquery.storage.v1.BigQueryRead/CreateReadSession",
        "/google.cloud.bigquery.storage.v1.BigQueryRead/SplitReadStream",
        "/google.cloud.bigquery.storage.v1beta1.BigQueryStorage/CreateReadSession",
    ],
    "logging": [
        "/google.logging.v2.LoggingServiceV2/ListLogEntries",
        "/google.logging.v2.LoggingServiceV2/WriteLogEntries",
    ],
}
ALLOWED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}


def outcome(call: grpc.UnaryUnaryMultiCallable, data: bytes, who: list[tuple[str, str]]) -> grpc.StatusCode:
    """Return the status that a call ends with."""
    try:
        call(data, metadata=who, timeout=PATIENCE_S)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("host", GRPC)
def test_grpc(local_cloud, host):
    """500 of each: bytes that are no request, and requests with nonsense inside."""
    rng = seeded(SEED + 2)
    who = [("authorization", local_cloud.headers["Authorization"])]
    good = b"\n+" + PARENT.encode() + b"\x12\x0e\n\x01x\x12\t\n\x07{" + b'"a": 1}'
    with grpc.secure_channel(f"{host}.googleapis.com:443", grpc.ssl_channel_credentials()) as channel:
        calls = [channel.unary_unary(path) for path in GRPC[host]]
        for number in range(500):
            data = rng.randbytes(rng.randint(0, 60)) if rng.random() < 0.5 else mutated_bytes(rng, good)
            code = outcome(rng.choice(calls), data, who)
            assert code in ALLOWED, (number, data, code)


def test_log_filters(tmp_path):
    """500: filters of Cloud Logging, also those that are slow in other engines."""
    is_found("", "")  # the first search of a process takes a second or more
    rng, store = seeded(SEED + 3), LogStore(tmp_path / "logs.sqlite")
    store.append(
        Entry.of_job(project="p", job_id=str(n), task_name="workerpool0-0", message="a" * 5000 + "!") for n in range(50)
    )
    good = (
        'resource.labels.job_id="7" AND (timestamp>="2026-01-01T00:00:00Z" OR NOT jsonPayload.a.b=~"^x") severity=INFO'
    )
    slow = [
        'textPayload=~"(a+)+$"',
        'textPayload=~"(a|a)*$"',
        "(" * 5000,
        "NOT " * 4000,
        "a " * 9000,
        '"' + "\\" * 9999,
    ]
    for number in range(500):
        text = slow[number] if number < len(slow) else mutated(rng, good)

        def act(text: str = text) -> None:
            with contextlib.suppress(FilterError, sqlite3.Error, OverflowError, UnicodeEncodeError):  # refused
                condition, parameters = compile_filter(text)
                store.page(where=condition, parameters=parameters)

        quickly(act, (number, text), FILTER_S)


def test_list_filters_and_names():
    """500: filters of Vertex AI's lists, and names of objects."""
    rng = seeded(SEED + 4)
    good = 'labels.run="a" AND NOT (display_name="x*" OR create_time>"2026-01-01T00:00:00Z")'
    fields = {"labels": "labels", "display_name": "display_name", "create_time": "create_time"}
    for number in range(500):
        text = mutated(rng, good) if number > 1 else "(" * 9000 + "NOT " * 900
        name = mutated(rng, "a/b//../d/é") or "x"

        def act(text: str = text, name: str = name) -> None:
            with contextlib.suppress(InvalidArgument):
                compile_list_filter(text, fields)
            assert decode(encode(name)) == name, name

        quickly(act, (number, text, name), FILTER_S)


def test_a_stalled_upload_stops_nobody(local_cloud):
    """One that sends its head and never its body, with a precondition, as storage's changes are made one at a time."""
    host = "storage.googleapis.com"
    stalled = Wire(local_cloud, host)
    target = f"/storage/v1/b/{local_cloud.bucket}/o/stalled?ifGenerationMatch=0"
    data = request(host, "PATCH", target, local_cloud.headers["Authorization"], b"x" * 100)[:-50]
    connection = stalled._connect()
    connection.sendall(data)
    try:
        begun = time.monotonic()
        url = f"https://{host}/storage/v1/b/{local_cloud.bucket}/o/none?ifGenerationMatch=5"
        assert local_cloud.http.delete(url, timeout=PATIENCE_S).status_code == 412
        assert time.monotonic() - begun < PATIENCE_S / 2
    finally:
        connection.close()


def test_a_slow_log_filter_stops_nobody(local_cloud):
    """What took the gateway ten seconds is refused or answered at once, as the service's RE2 does."""
    entry = {
        "logName": "projects/local-project/logs/slow",
        "textPayload": "a" * 40 + "!",
        "resource": {"type": "global"},
    }
    base = "https://logging.googleapis.com/v2/entries"
    assert local_cloud.http.post(f"{base}:write", json={"entries": [entry]}, timeout=10).status_code == 200
    body = {"resourceNames": ["projects/local-project"], "filter": 'textPayload=~"(a+)+$"'}
    begun = time.monotonic()
    assert local_cloud.http.post(f"{base}:list", json=body, timeout=10).json() == {}
    assert time.monotonic() - begun < 5
    refused = local_cloud.http.post(f"{base}:list", json={**body, "filter": 'textPayload=~"("'}, timeout=10)
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")

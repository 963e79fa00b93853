"""The gateway lets nothing out, and carries what it lets in."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

import grpc
import pytest
import requests


@pytest.fixture(scope="module")
def gateway(local_cloud) -> tuple[str, int]:
    """Host and port of the gateway."""
    address = urlsplit(local_cloud.env["https_proxy"])
    return address.hostname, address.port


def talk(gateway, text: str) -> bytes:
    with socket.create_connection(gateway, timeout=10) as connection:
        connection.sendall(text.encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


@pytest.mark.parametrize(
    "host",
    [
        "example.com:443",
        "compute.googleapis.com:443",
        "storage.googleapis.com.example.com:443",
        "storage.googleapis.com.:443",
        "127.0.0.1:22",
        "localhost:80",
        "metadata.google.internal:80",
        "-:443",
    ],
)
def test_foreign_hosts_are_refused(gateway, host):
    """With 403 and the reason; no TLS is offered and the connection ends."""
    answer = talk(gateway, f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert f"refused {host}. Expected CONNECT to one of:".encode() in answer


@pytest.mark.parametrize("target", ["http://example.com/", "http://storage.googleapis.com/", "/"])
def test_plain_requests_are_refused(gateway, target):
    """Nothing goes out as plain HTTP either."""
    assert talk(gateway, f"GET {target} HTTP/1.1\r\nHost: example.com\r\n\r\n").startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("text", ["nonsense\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n", "GET / HTTP/1.1\r\nbad\r\n\r\n", ""])
def test_nonsense_is_not_answered_with_tls(gateway, text):
    """What is not a request gets a refusal or nothing."""
    with socket.create_connection(gateway, timeout=10) as connection:
        connection.sendall(text.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100)[:13] in (b"", b"HTTP/1.1 403 ", b"HTTP/1.1 400 ")


def test_real_clients_cannot_leave(local_cloud):
    """Requests goes through the gateway by the environment alone and is refused there."""
    with pytest.raises(requests.exceptions.ProxyError, match="403"):
        requests.get("https://example.com", timeout=10)


def test_grpc_cannot_leave(local_cloud):
    """Nor does gRPC."""
    with grpc.secure_channel("compute.googleapis.com:443", grpc.ssl_channel_credentials()) as channel:
        call = channel.unary_unary("/x.Y/Z")
        with pytest.raises(grpc.RpcError) as refused:
            call(b"", timeout=5)
    assert refused.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def connect(gateway, connect_line, local_cloud, protocols):
    raw = socket.create_connection(gateway, timeout=10)
    raw.sendall(f"{connect_line}\r\nHost: x\r\n\r\n".encode())
    assert raw.recv(4096).startswith(b"HTTP/1.1 200 ")
    context = ssl.create_default_context(cafile=local_cloud.env["SSL_CERT_FILE"])
    context.set_alpn_protocols(protocols)
    return context.wrap_socket(raw, server_hostname=connect_line.split()[1].split(":")[0])


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["h2"], "h2"), (["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), (["grpc-exp", "h2"], "h2")],
)
def test_protocol_by_alpn(gateway, local_cloud, offered, chosen):
    """h2 means gRPC; who offers both (curl) gets HTTP/1.1."""
    with connect(gateway, "CONNECT logging.googleapis.com:443 HTTP/1.1", local_cloud, offered) as tls:
        assert tls.selected_alpn_protocol() == chosen


def test_connect_without_a_port(gateway, local_cloud):
    """As tensorflow-io's gRPC sends it, in HTTP/1.0."""
    with connect(gateway, "CONNECT bigquerystorage.googleapis.com HTTP/1.0", local_cloud, ["h2"]) as tls:
        assert tls.selected_alpn_protocol() == "h2"


def test_every_region_has_a_vertex_host(gateway, local_cloud):
    """Its certificate carries the asked name."""
    with connect(
        gateway, "CONNECT europe-west4-aiplatform.googleapis.com:443 HTTP/1.1", local_cloud, ["http/1.1"]
    ) as tls:
        assert ("DNS", "europe-west4-aiplatform.googleapis.com") in tls.getpeercert()["subjectAltName"]


def test_unknown_paths_of_shared_hosts(local_cloud):
    """www.googleapis.com leads to storage and BigQuery only."""
    assert local_cloud.http.get("https://www.googleapis.com/compute/v1/projects", timeout=10).status_code == 404
    assert (
        local_cloud.http.get("https://www.googleapis.com/storage/v1/b?project=local-project", timeout=10).status_code
        == 200
    )
    assert local_cloud.http.get("https://www.googleapis.com/bigquery/v2/projects", timeout=10).status_code == 200

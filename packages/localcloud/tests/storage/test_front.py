"""Calls of Cloud Storage without a server: who is asked about what, and what the XML API keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from localcloud.access.iam import Iam
from localcloud.faults import FaultStore, check
from localcloud.gateway.services import permit_storage
from localcloud.http.http1 import Head, Request, Response
from localcloud.projects import Projects
from localcloud.state import State
from localcloud.storage.front import StorageFront
from localcloud.storage.objects import Objects
from localcloud.storage.service import StorageService

ME = "me@local-project.iam.gserviceaccount.com"


class Cloud:
    """Cloud Storage on a state directory, asked in this process."""

    def __init__(self, state: State) -> None:
        projects = Projects(["local-project"])
        self.iam, self.faults = Iam(state, projects), FaultStore(state.faults_path)
        objects = Objects(state.directory("storage"), state.storage_path)
        service = StorageService(objects, projects, state.directory("uploads"), location="us-central1")
        self.front = StorageFront(service, self.faults, permit_storage(self.iam), self.iam)

    def ask(self, method: str, target: str, body: bytes = b"", **fields: str) -> tuple[Response, bytes]:
        """Send a request; give the answer and its whole body."""

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(body), 7):
                yield body[at : at + 7]

        async def ask() -> tuple[Response, bytes]:
            named = [(name.replace("_", "-"), value) for name, value in fields.items()]
            head = Head(first_line=f"{method} {target} HTTP/1.1", fields=named)
            request = Request(host="storage.googleapis.com", principal=ME, head=head, body=pieces())
            answer = await self.front.answer(request)
            return answer, b"".join([piece async for piece in answer.pieces()])

        return asyncio.run(ask())


@pytest.fixture
def cloud(tmp_path) -> Cloud:
    """With two empty buckets."""
    made = Cloud(State(tmp_path))
    for name in ("one", "two"):
        made.ask("POST", "/storage/v1/b?project=local-project", json.dumps({"name": name}).encode())
    return made


def test_a_multipart_body_in_small_pieces(cloud):
    """Wherever the pieces of a body are cut."""
    for end in (b"\r\n", b"\n"):
        content = end + b"--" + end + b"--bb" + end + b"--b"[:2]
        lines = [b"--bnd", b"Content-Type: application/json", b"", b'{"name": "n"}', b"--bnd", b"", content, b"--bnd--"]
        url = "/upload/storage/v1/b/one/o?uploadType=multipart"
        answer, _ = cloud.ask("POST", url, end.join(lines) + end, content_type="multipart/related; boundary='bnd'")
        assert answer.status == 200
        assert cloud.ask("GET", "/one/n")[1] == content


def test_what_the_xml_api_is_given_it_keeps(cloud):
    """Metadata in header fields; a PUT is an insert, for the IAM table and for faults."""
    answer, _ = cloud.ask(
        "PUT", "/one/a%2Fb", b"hello", content_type="text/x", cache_control="no-store", x_goog_meta_k="v"
    )
    assert answer.status == 200
    resource = json.loads(cloud.ask("GET", "/storage/v1/b/one/o/a%2Fb")[1])
    assert (resource["contentType"], resource["cacheControl"], resource["metadata"]) == (
        "text/x",
        "no-store",
        {"k": "v"},
    )
    refused, text = cloud.ask("PUT", "/one/a%2Fb", b"again", x_goog_if_generation_match="0")
    assert (refused.status, b"<Code>PreconditionFailed</Code>" in text) == (412, True)
    cloud.faults.add(check({"target": "storage.objects.insert gs://one/a/b", "action": {"kind": "error"}}))
    assert cloud.ask("PUT", "/one/a/b", b"again")[0].status == 503
    assert cloud.ask("GET", "/one/a/b")[1] == b"hello"


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("PUT", "/two/x", b"x"),
        ("POST", "/upload/storage/v1/b/two/o?uploadType=media&name=x", b"x"),
        ("POST", "/resumable/upload/storage/v1/b/two/o?uploadType=media&name=x", b"x"),
        ("POST", "/upload/storage/v1/b/two/o?uploadType=resumable", b'{"name": "x", "bucket": "one"}'),
        ("POST", "/storage/v1/b/one/o/a/rewriteTo/b/two/o/x", b""),
        ("POST", "/storage/v1/b/two/o/a/rewriteTo/b/one/o/x", b""),
        ("POST", "/storage/v1/b/two/o/a/moveTo/o/x", b""),
        ("POST", "/storage/v1/b/two/o/x/compose", b'{"sourceObjects": [{"name": "a"}]}'),
        ("GET", "/storage/v1/b/two/o/a?alt=media", b""),
        ("GET", "/download/storage/v1/b/two/o/a", b""),
        ("GET", "/storage/v1/b/two/o?prefix=one", b""),
        ("PATCH", "/storage/v1/b/two/o/a", b'{"bucket": "one"}'),
        ("DELETE", "/two/a", b""),
        ("DELETE", "/storage/v1/b/two", b""),
    ],
)
def test_a_bucket_without_a_role_is_not_reached(cloud, method, target, body):
    """By any address, whatever else a request says."""
    for bucket in ("one", "two"):
        cloud.ask("PUT", f"/{bucket}/a", b"secret")
    role = {"principal": ME, "role": "roles/storage.objectUser", "resource": "buckets/one"}
    cloud.iam.put({"bindings": [role]})
    answer, text = cloud.ask(method, target, body)
    assert (answer.status, b"secret" in text) == (403, False)
    cloud.iam.delete()
    listed = json.loads(cloud.ask("GET", "/storage/v1/b/two/o")[1])["items"]
    assert [each["name"] for each in listed] == ["a"]


@pytest.mark.parametrize(
    ("target", "body", "status", "word"),
    [
        (
            "/storage/v1/b/one/o/x/compose",
            b'{"sourceObjects": [{"name": "a"}], "deleteSourceObjects": true}',
            501,
            "delete",
        ),
        ("/storage/v1/b/one/o/x/compose", b'{"sourceObjects": []}', 400, "sourceObjects"),
        ("/upload/storage/v1/b/one/o?uploadType=media&name=x&kmsKeyName=k", b"", 501, "kmsKeyName"),
        ("/upload/storage/v1/b/one/o?uploadType=media&name=x&strange=1", b"", 400, "strange"),
        ("/upload/storage/v1/b/one/o?uploadType=resumable", b'{"name": "x", "Name": "y"}', 400, "Did you mean 'name'"),
        ("/upload/storage/v1/b/one/o?uploadType=resumable", b'{"name": "x", "eventBasedHold": true}', 501, "Hold"),
        ("/upload/storage/v1/b/one/o?uploadType=media&name=%ff", b"", 400, "UTF-8"),
        ("/upload/storage/v1/b/one/o?uploadType=media&name=x&ifGenerationMatch=" + "9" * 30, b"", 400, "64-bit"),
    ],
)
def test_what_is_not_offered_is_named(cloud, target, body, status, word):
    """Instead of being left out in silence."""
    answer, text = cloud.ask("POST", target, body)
    assert (answer.status, word in text.decode()) == (status, True), text

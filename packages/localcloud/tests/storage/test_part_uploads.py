"""Uploads of the XML API in parts, as Google's client makes them and as others might."""

from __future__ import annotations

import hashlib
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import requests
from google.cloud import storage
from google.cloud.storage import transfer_manager

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def client(local_cloud) -> storage.Client:
    return storage.Client(project=local_cloud.project)


@pytest.fixture
def blob(client, local_cloud) -> storage.Blob:
    """An object that is not there."""
    return client.bucket(local_cloud.bucket).blob(f"tests/{uuid.uuid4().hex}/a b&c.bin")


class PartUpload:
    """An upload in parts, step by step."""

    def __init__(self, client: storage.Client, blob: storage.Blob, **fields: str) -> None:
        self.http, self.address = client._http, blob.public_url
        self.begun = self.http.post(self.address, params={"uploads": ""}, headers=fields)
        found = re.search("<UploadId>(.+?)</UploadId>", self.begun.text)
        self.id = found[1] if found else ""

    def take(self, number: int, content: bytes, **fields: str) -> requests.Response:
        """Send a part."""
        params = {"partNumber": str(number), "uploadId": self.id}
        return self.http.put(self.address, params=params, data=content, headers=fields)

    def finish(self, *parts: tuple[int, str], body: str | None = None) -> requests.Response:
        """End it with these parts."""
        listed = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{etag}</ETag></Part>" for n, etag in parts)
        text = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>" if body is None else body
        return self.http.post(self.address, params={"uploadId": self.id}, data=text)


def code(answer: requests.Response) -> str:
    """The refusal's code."""
    found = re.search("<Code>(.+?)</Code>", answer.text)
    return found[1] if found else ""


def test_the_clients_transfer_manager_uploads_a_file(blob, tmp_path):
    """Parts at the same time, with what the object is to say."""
    content = bytes(range(256)) * (50 * 1024)
    (tmp_path / "file").write_bytes(content)
    blob.content_type, blob.metadata, blob.cache_control = "text/csv", {"day": "1"}, "no-store"
    transfer_manager.upload_chunks_concurrently(
        str(tmp_path / "file"), blob, chunk_size=5 * MIB, worker_type=transfer_manager.THREAD
    )
    found = blob.bucket.get_blob(blob.name)
    assert found.download_as_bytes(checksum="crc32c") == content
    assert (found.content_type, found.metadata, found.cache_control) == ("text/csv", {"day": "1"}, "no-store")
    assert (found.md5_hash, found.component_count) == (None, None)


def test_parts_come_in_any_order_and_again(client, blob):
    """The last of a number counts, what is not listed goes, and nothing is there before the end."""
    upload = PartUpload(client, blob, **{"content-type": "text/plain"})
    first, other = b"a" * 5 * MIB, b"b" * 5 * MIB
    with ThreadPoolExecutor() as threads:
        sent = list(threads.map(lambda each: upload.take(*each), [(7, b"end"), (2, other), (9, b"unlisted")]))
    again = upload.take(2, first)
    assert [answer.status_code for answer in (*sent, again)] == [200] * 4
    assert again.headers["ETag"] == f'"{hashlib.md5(first, usedforsecurity=False).hexdigest()}"'
    assert code(upload.finish((2, sent[1].headers["ETag"]), (7, sent[0].headers["ETag"]))) == "InvalidPart"
    assert not blob.exists()
    listed = upload.http.get(upload.address, params={"uploadId": upload.id}).text
    assert re.findall("<PartNumber>(.+?)</PartNumber>", listed) == ["2", "7", "9"]
    ended = upload.finish((2, again.headers["ETag"]), (7, sent[0].headers["ETag"]))
    assert (ended.status_code, "a b&amp;c.bin</Key>" in ended.text) == (200, True)
    assert blob.download_as_bytes() == first + b"end"
    assert code(upload.take(1, b"late")) == "NoSuchUpload"


def test_what_does_not_fit_is_refused_by_its_code(client, blob):
    upload = PartUpload(client, blob)
    small, end = upload.take(1, b"small").headers["ETag"], upload.take(2, b"end").headers["ETag"]
    assert code(upload.finish((1, small), (2, end))) == "EntityTooSmall"
    assert code(upload.finish((2, end), (1, small))) == "InvalidPartOrder"
    assert code(upload.finish((1, small), (1, small))) == "InvalidPartOrder"
    assert code(upload.finish((3, end))) == "InvalidPart"
    entity = '<!DOCTYPE x [<!ENTITY e "1">]><CompleteMultipartUpload/>'
    for body in ("", "<a", "<a/>", entity, "<C><Part><PartNumber>1</PartNumber></Part></C>"):
        assert code(upload.finish(body=body)) == "MalformedXML", body
    wrong = "1B2M2Y8AsgTpgAmY7PhCfg=="
    assert code(upload.take(3, b"x", **{"Content-MD5": wrong})) == "BadDigest"
    for number in (0, 10_001):
        assert code(upload.take(number, b"x")) == "InvalidArgument"
    assert upload.finish((2, end)).status_code == 200
    assert blob.download_as_bytes() == b"end"


def test_one_that_is_given_up_leaves_nothing(client, blob):
    upload = PartUpload(client, blob)
    etag = upload.take(1, b"x").headers["ETag"]
    assert upload.http.delete(upload.address, params={"uploadId": upload.id}).status_code == 204
    assert code(upload.finish((1, etag))) == "NoSuchUpload"
    assert not blob.exists()


def test_an_end_that_fails_keeps_the_parts(client):
    """Here because its bucket is away; who mends that ends it once more."""
    bucket = client.create_bucket(f"parts-{uuid.uuid4().hex}")
    blob = bucket.blob("whole")
    upload = PartUpload(client, blob)
    etag = upload.take(1, b"x").headers["ETag"]
    bucket.delete()
    assert code(upload.finish((1, etag))) == "NoSuchBucket"
    client.create_bucket(bucket.name)
    assert upload.finish((1, etag)).status_code == 200
    assert blob.download_as_bytes() == b"x"


def test_what_is_not_offered_is_named(client, blob):
    fields = {"x-goog-if-generation-match": "0"}
    assert "Preconditions of uploads in parts" in PartUpload(client, blob, **fields).begun.text
    upload = PartUpload(client, blob)
    for params in ({"uploadId": upload.id, "max-parts": "1"}, {"uploads": "", "x": "1"}):
        answer = upload.http.get(upload.address, params=params)
        assert (answer.status_code, code(answer)) == (501, "NotImplemented")
    listed = upload.http.get(f"https://storage.googleapis.com/{blob.bucket.name}", params={"uploads": ""})
    assert listed.status_code == 501


def test_each_step_may_be_signed(client, blob):
    """As for a program that has no account."""
    upload = PartUpload(client, blob)

    def sign(method: str, **query: str) -> str:
        query["uploadId"] = upload.id
        until = timedelta(minutes=1)
        return str(blob.generate_signed_url(version="v4", expiration=until, method=method, query_parameters=query))

    part = requests.put(sign("PUT", partNumber="1"), b"signed", timeout=30)
    upload.http = requests.Session()
    upload.address = sign("POST")
    listed = f"<Part><PartNumber>1</PartNumber><ETag>{part.headers['ETag']}</ETag></Part>"
    body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>"
    assert requests.post(upload.address, body, timeout=30).status_code == 200
    assert blob.download_as_bytes() == b"signed"

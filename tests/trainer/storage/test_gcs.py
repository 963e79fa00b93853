"""Cloud Storage through Google's own client, against a small server that speaks its JSON API."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c
import pytest

from tests.support.refusals import refuses
from trainer.errors import DataError, RequestError
from trainer.storage import Storage, backend


class FakeCloudStorage(BaseHTTPRequestHandler):
    """One bucket called `bucket`. `faults` answers are 503 before the next good one."""

    objects: dict[str, bytes] = {}
    faults = 0
    lose_answers = 0
    uploads: dict[str, tuple[str, bytes]] = {}
    pieces: list[int] = []

    def _answer(self, code: int, body: object = b"") -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _error(self, code: int, message: str) -> None:
        self._answer(code, {"error": {"code": code, "message": message}})

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if FakeCloudStorage.faults:
            FakeCloudStorage.faults -= 1
            return self._error(503, "try again")
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if "upload_id" in query:
            return self._continue(query["upload_id"], body)
        bucket, _, name = url.path.partition("/b/")[2].partition("/o")
        if bucket != "bucket":
            return self._error(404, "The specified bucket does not exist.")
        return self._on_object(unquote(name.lstrip("/")), query, body)

    def _continue(self, upload: str, body: bytes) -> None:
        """Take a piece of a resumable upload."""
        cloud = FakeCloudStorage
        name, content = cloud.uploads[upload]
        cloud.pieces.append(len(body))
        cloud.uploads[upload] = name, content + body
        total = self.headers["Content-Range"].rpartition("/")[2]
        if total == "*" or len(content + body) < int(total):
            self.send_response(308)
            self.send_header("Range", f"bytes=0-{len(content + body) - 1}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if name in cloud.objects:
            return self._error(412, "At least one of the pre-conditions you specified did not hold.")
        cloud.objects[name] = content + body
        return self._answer(200, self._metadata(name))

    def _on_object(self, name: str, query: dict[str, str], body: bytes) -> None:
        objects = FakeCloudStorage.objects
        if self.command == "POST":
            return self._upload(query, body)
        if not name:
            found = [self._metadata(key) for key in sorted(objects) if key.startswith(query.get("prefix", ""))]
            return self._answer(200, {"items": found})
        if name not in objects or query.get("generation", "1") != "1":
            return self._error(404, f"No such object: bucket/{name}")
        if self.command == "DELETE":
            del objects[name]
            return self._answer(204)
        return self._answer(200, objects[name] if query.get("alt") == "media" else self._metadata(name))

    def _upload(self, query: dict[str, str], body: bytes) -> None:
        if query.get("uploadType") == "resumable":
            upload = str(len(FakeCloudStorage.uploads))
            FakeCloudStorage.uploads[upload] = json.loads(body)["name"], b""
            self.send_response(200)
            self.send_header("Location", f"http://{self.headers['Host']}/upload?upload_id={upload}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        parsed: Any = BytesParser().parsebytes(f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode() + body)
        metadata, content = parsed.get_payload()
        name = json.loads(metadata.get_payload())["name"]
        if query.get("ifGenerationMatch") == "0" and name in FakeCloudStorage.objects:
            return self._error(412, "At least one of the pre-conditions you specified did not hold.")
        FakeCloudStorage.objects[name] = content.get_payload(decode=True)
        if FakeCloudStorage.lose_answers:
            FakeCloudStorage.lose_answers -= 1
            return self._error(503, "the object is there, the answer got lost")
        return self._answer(200, self._metadata(name))

    def _metadata(self, name: str) -> dict[str, str]:
        content = FakeCloudStorage.objects[name]
        crc = base64.b64encode(google_crc32c.value(content).to_bytes(4, "big")).decode()
        return {"name": name, "bucket": "bucket", "size": str(len(content)), "generation": "1", "crc32c": crc}

    do_GET = do_POST = do_PUT = do_DELETE = _handle

    def log_message(self, *_arguments: object) -> None:
        """Keep quiet."""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeCloudStorage]]:
    """The running server; clients find it by environment."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeCloudStorage)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    FakeCloudStorage.objects, FakeCloudStorage.faults, FakeCloudStorage.lose_answers = {}, 0, 0
    FakeCloudStorage.uploads, FakeCloudStorage.pieces = {}, []
    yield FakeCloudStorage
    server.shutdown()
    server.server_close()


@pytest.fixture
def storage(fake: type[FakeCloudStorage]) -> Storage:
    return Storage()


def test_an_object_is_written_once(storage: Storage, fake) -> None:
    assert storage.write_once("gs://bucket/a/x.json", b"first")
    assert not storage.write_once("gs://bucket/a/x.json", b"second")
    assert storage.read_object("gs://bucket/a/x.json") == b"first"
    assert storage.size("gs://bucket/a/x.json") == 5


def test_what_is_missing_reads_as_none(storage: Storage, tmp_path: Path) -> None:
    assert storage.read_object("gs://bucket/none") is None
    assert not storage.exists("gs://bucket/none")
    assert not storage.download("gs://bucket/none", tmp_path / "x")
    storage.delete_object("gs://bucket/none")


def test_an_object_is_read_in_one_generation_or_not_at_all(storage: Storage, fake) -> None:
    """What was overwritten since is gone, whatever lies there now; answers that pass are waited out here too."""
    storage.write_once("gs://bucket/photo #1.png", b"now")
    assert storage.read_object("gs://bucket/photo #1.png", 2) is None
    fake.faults = 1
    assert storage.read_object("gs://bucket/photo #1.png", 1) == b"now"


def test_folders_go_up_come_down_and_are_listed(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "up/inner").mkdir(parents=True)
    (tmp_path / "up/a").write_bytes(b"1")
    (tmp_path / "up/inner/b").write_bytes(b"22")
    storage.upload_folder(tmp_path / "up", "gs://bucket/model/")
    assert [(item.uri, item.bytes) for item in storage.list_objects("gs://bucket/model/")] == [
        ("gs://bucket/model/a", 1),
        ("gs://bucket/model/inner/b", 2),
    ]
    assert storage.download_folder("gs://bucket/model", tmp_path / "down") == 2
    assert (tmp_path / "down/inner/b").read_bytes() == b"22"


def test_answers_that_pass_are_waited_out(storage: Storage, fake) -> None:
    storage.write_once("gs://bucket/x", b"1")
    fake.faults = 2
    assert storage.read_object("gs://bucket/x") == b"1"
    fake.faults = 1
    assert storage.write_once("gs://bucket/y", b"2")


def test_an_upload_whose_answer_got_lost_finds_its_own_object(storage: Storage, fake) -> None:
    fake.lose_answers = 1
    assert not storage.write_once("gs://bucket/x", b"1")
    assert storage.read_object("gs://bucket/x") == b"1"


def test_a_large_object_goes_up_in_pieces_and_comes_back_whole(storage: Storage, fake) -> None:
    """The client keeps a piece in memory, by default 100 MB of it."""
    content = bytes(range(256)) * (80 << 10)
    assert storage.write_once("gs://bucket/large", content)
    assert fake.pieces == [4 << 20] * 5
    assert storage.sha256("gs://bucket/large") == hashlib.sha256(content).hexdigest()
    assert storage.sha256("gs://bucket/none") is None
    assert not storage.write_once("gs://bucket/large", content)


def test_a_large_upload_waits_out_answers_that_pass(storage: Storage, fake) -> None:
    content = bytes(20 << 20)
    with storage.scratch("gs://bucket/large") as file:
        file.write(content)
        fake.faults = 2
        assert storage.publish("gs://bucket/large", file)
    assert fake.objects["large"] == content


@pytest.mark.parametrize("call", ["read_object", "write_once"])
def test_a_missing_bucket_is_the_requests_fault(storage: Storage, call: str) -> None:
    arguments = ["gs://other/x"] + ([b"1"] if call == "write_once" else [])
    with refuses(RequestError, where="gs://other/x", found="bucket does not exist", way_out="Create it"):
        getattr(storage, call)(*arguments)
    assert getattr(storage, call)("gs://bucket/x", *arguments[1:]) is (None if call == "read_object" else True)


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "a//b", "./a", "a/..", "a\0b"])
def test_a_folder_with_a_name_that_leads_elsewhere_is_not_copied_at_all(fake, tmp_path: Path, name: str) -> None:
    fake.objects = {"model/a/first": b"1", f"model/{name}": b"evil", "model/z": b"2"}
    with pytest.raises(DataError, match=r"no place below a folder.*Delete the object"):
        Storage().download_folder("gs://bucket/model", tmp_path / "inner" / "copy")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    del fake.objects[f"model/{name}"]
    assert Storage().download_folder("gs://bucket/model", tmp_path / "inner" / "copy") == 2


def test_a_checkpoint_that_names_files_elsewhere_is_refused(tmp_path: Path) -> None:
    from trainer.training.checkpoints import Checkpoints  # TensorFlow, which no other test of this file needs

    checkpoints = Checkpoints(str(tmp_path / "stored"), Storage())
    folder = Path(checkpoints.folder(1))
    folder.mkdir(parents=True)
    (tmp_path / "stored" / "evil").write_bytes(b"evil")
    state = {"request_sha256": "0" * 64, "step": 1}
    (folder / "state.json").write_text(json.dumps({"state": state, "files": {"../evil": "0" * 64}}))
    with pytest.raises(DataError, match="no place below a folder"):
        checkpoints.fetch(1, tmp_path / "copy")


def test_a_document_that_no_memory_should_take_is_refused_by_name(fake, tmp_path: Path, monkeypatch) -> None:
    fake.objects = {"a.json": b"0123456789"}
    (tmp_path / "a.json").write_bytes(b"0123456789")
    for uri in ("gs://bucket/a.json", str(tmp_path / "a.json")):
        monkeypatch.setattr(backend, "MAX_DOCUMENT_BYTES", 10)
        assert Storage().read_object(uri) == b"0123456789"
        monkeypatch.setattr(backend, "MAX_DOCUMENT_BYTES", 9)
        with pytest.raises(DataError, match=r"a\.json: more than 9 bytes"):
            Storage().read_object(uri)

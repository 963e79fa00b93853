"""One request names one object: whichever spelling is used, what is checked is what is done."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

import pytest

UPLOAD = "https://storage.googleapis.com/upload/storage/v1/b"
OWN = "local-cloud@local-project.iam.gserviceaccount.com"


@pytest.fixture
def folder() -> str:
    """A fresh prefix."""
    return f"spellings/{uuid.uuid4().hex}"


def related(metadata: str, content: bytes, boundary: str = "b", end: str = "\r\n") -> tuple[bytes, dict[str, str]]:
    """Return a body of two parts, and its header field."""
    lines = [
        f"--{boundary}",
        "Content-Type: application/json",
        "",
        metadata,
        f"--{boundary}",
        "Content-Type: text/x",
        "",
        "",
    ]
    body = end.join(lines).encode() + content + f"{end}--{boundary}--".encode()
    return body, {"Content-Type": f'multipart/related; boundary="{boundary}"'}


def outside(local_cloud) -> list[str]:
    """Return what lies beside the buckets: in the state's directory, and in the one that holds it."""
    state = local_cloud.state_path
    found = []
    for folder, folders, files in os.walk(state.parent):  # passes over what a server deletes meanwhile
        if Path(folder) == state:
            folders.remove("storage")
        found += [str(Path(folder, name)) for name in (*folders, *files) if "spelt-outside" in name]
    return found


def test_a_name_that_is_given_twice_is_refused(local_cloud, folder):
    """In the query, in each order; none of the two is written."""
    for first, second in ((f"{folder}/a", "../spelt-outside"), ("../spelt-outside", f"{folder}/a")):
        for kind in ("media", "resumable"):
            url = f"{UPLOAD}/{local_cloud.bucket}/o?uploadType={kind}&name={first}&name={second}"
            answer = local_cloud.http.post(url, b"x" if kind == "media" else None, timeout=10)
            assert answer.status_code == 400, answer.text
            assert "given twice" in answer.json()["error"]["message"]
    listed = f"https://storage.googleapis.com/storage/v1/b/{local_cloud.bucket}/o?prefix={folder}"
    assert "items" not in local_cloud.http.get(listed, timeout=10).json()
    assert outside(local_cloud) == []


@pytest.mark.parametrize(
    "metadata",
    [
        '{"name": "FOLDER/a", "Name": "../spelt-outside"}',
        '{"Name": "../spelt-outside"}',
        '{"NAME": "../spelt-outside", "name": "FOLDER/a"}',
        '{"name": "FOLDER/a", "name": "../spelt-outside"}',
        '{"name": "FOLDER/a", "n\\u0061me": "../spelt-outside"}',
        '{"name": "FOLDER/a", "bucket": "other", "Bucket": "x"}',
        '{"name": "\\ud800"}',
        '{"name": 7}',
        '{"name": ""}',
        '{"name": ".."}',
        "[]",
    ],
)
@pytest.mark.parametrize("kind", ["multipart", "resumable"])
def test_a_name_in_metadata_is_the_one_that_is_written(local_cloud, folder, metadata, kind):
    """Keys in another case, or twice, are refused by name."""
    body, fields = related(metadata.replace("FOLDER", folder), b"x")
    if kind == "resumable":
        body, fields = metadata.replace("FOLDER", folder).encode(), {"Content-Type": "application/json"}
    url = f"{UPLOAD}/{local_cloud.bucket}/o?uploadType={kind}"
    answer = local_cloud.http.post(url, body, headers=fields, timeout=10)
    assert answer.status_code == 400, answer.text
    assert outside(local_cloud) == []


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("POST", "upload/storage/v1/b/{bucket}/o?uploadType=media&Name=../spelt-outside"),
        ("POST", "upload/storage/v1/b/{bucket}/o?uploadType=media&name={folder}/a&key2=../spelt-outside"),
        ("POST", "upload/storage/v1/b/{bucket}/o?uploadType=media&name={folder}/a;name=../spelt-outside&x"),
        ("POST", "{bucket}?key=../spelt-outside"),
        ("POST", "{bucket}/../spelt-outside"),
        ("POST", "upload/storage/v1/b/{bucket}/o/..%2fspelt-outside?uploadType=media"),
        ("PUT", "%2e%2e/spelt-outside"),
        ("PUT", "../spelt-outside"),
        ("PUT", "{bucket}%2f..%2f..%2fspelt-outside"),
        ("POST", "storage/v1/b/{bucket}/o/a/rewriteTo/b/..%2f..%2fx/o/spelt-outside"),
        ("POST", "storage/v1/b/{bucket}/o/a/rewriteTo/b/{bucket}/o/b/rewriteTo/b/{bucket}/o/c"),
    ],
)
def test_what_is_no_call_is_refused(local_cloud, folder, method, address):
    """Parameters in another case, forms, paths: nothing is written anywhere."""
    target = "https://storage.googleapis.com/" + address.format(bucket=local_cloud.bucket, folder=folder)
    form = {"Content-Type": "multipart/form-data; boundary=f"}
    body = b'--f\r\nContent-Disposition: form-data; name="key"\r\n\r\n../spelt-outside\r\n--f--\r\n'
    answer = local_cloud.http.request(method, target, data=body, headers=form, timeout=10)
    assert answer.status_code in (400, 404, 501), (answer.status_code, answer.text)
    assert outside(local_cloud) == []


@pytest.mark.parametrize("end", ["\r\n", "\n"], ids=["CRLF", "LF"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        b"\n",
        b"\r\n\r\nx",
        b"a\r\n--local-cloud-part--\r\nb",
        b"--b",
        b"x--b--\r\n",
        b"\xff" * 700_000,
        b"\r\n--",
    ],
)
def test_a_content_is_kept_to_the_byte(local_cloud, folder, end, content):
    """Whatever is in it, and however the lines of the parts end."""
    body, fields = related(json.dumps({"name": f"{folder}/c"}), content, boundary="==0==", end=end)
    url = f"{UPLOAD}/{local_cloud.bucket}/o?uploadType=multipart"
    made = local_cloud.http.post(url, body, headers=fields, timeout=10)
    assert (made.status_code, made.json()["size"]) == (200, str(len(content)))
    read = local_cloud.http.get(f"https://storage.googleapis.com/{local_cloud.bucket}/{folder}/c", timeout=10)
    assert (read.content, read.headers["Content-Type"]) == (content, "text/x")


def test_a_boundary_in_resumable_content_cuts_nothing(local_cloud, folder):
    """There is no boundary of the local cloud's own that could."""
    content = b"a\r\n--local-cloud-part--\r\nb" * 1000
    url = f"{UPLOAD}/{local_cloud.bucket}/o?uploadType=resumable&name={folder}/r"
    where = local_cloud.http.post(url, timeout=10).headers["Location"]
    assert local_cloud.http.put(where, data=content, timeout=10).json()["size"] == str(len(content))


@pytest.mark.parametrize(
    "body",
    [
        b'--b\r\n\r\n{"name": "NAME"}\r\n--b\r\n\r\nhalf',
        b'--b\r\n\r\n{"name": "NAME"}\r\n--b\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--',
        b'--b\r\n\r\n{"name": "NAME"}\r\n--b--',
        b'--c\r\n\r\n{"name": "NAME"}\r\n--c\r\n\r\nx\r\n--c--',
    ],
    ids=["cut off", "three parts", "one part", "another boundary"],
)
def test_half_an_upload_is_none(local_cloud, folder, body):
    """400, and no object."""
    fields = {"Content-Type": "multipart/related; boundary=b"}
    url = f"{UPLOAD}/{local_cloud.bucket}/o?uploadType=multipart"
    sent = body.replace(b"NAME", f"{folder}/half".encode())
    assert local_cloud.http.post(url, sent, headers=fields, timeout=10).status_code == 400
    assert local_cloud.http.get(f"https://storage.googleapis.com/{local_cloud.bucket}/{folder}/half").status_code == 404


def test_the_iam_table_sees_what_is_done(local_cloud, folder):
    """A bucket that is named in a body, or a second time, is not written past the table."""
    table = f"https://{local_cloud.region}-aiplatform.googleapis.com/iam"
    made = local_cloud.http.post(
        "https://storage.googleapis.com/storage/v1/b?project=local-project", json={"name": "spelt-other"}, timeout=10
    )
    assert made.status_code in (200, 409)
    role = {"principal": OWN, "role": "roles/storage.objectUser", "resource": f"buckets/{local_cloud.bucket}"}
    assert local_cloud.http.post(table, json={"bindings": [role]}, timeout=10).status_code == 200
    try:
        for metadata in ('{"name": "FOLDER/a", "bucket": "spelt-other"}', '{"name": "FOLDER/b"}'):
            body, fields = related(metadata.replace("FOLDER", folder), b"x")
            url = f"{UPLOAD}/{local_cloud.bucket}/o?uploadType=multipart"
            answer = local_cloud.http.post(url, body, headers=fields, timeout=10)
            if "spelt-other" in metadata:
                assert (answer.status_code, "'spelt-other'" in answer.text) == (400, True)
            else:
                assert answer.json()["bucket"] == local_cloud.bucket
            denied = local_cloud.http.post(
                url.replace(local_cloud.bucket, "spelt-other"), body, headers=fields, timeout=10
            )
            assert denied.status_code == 403
        whose = local_cloud.http.post(
            f"{UPLOAD}/{local_cloud.bucket}/o?uploadType=resumable&name={folder}/r", timeout=10
        )
        moved = whose.headers["Location"].replace(f"/b/{local_cloud.bucket}/", "/b/spelt-other/")
        assert local_cloud.http.put(moved, data=b"x", timeout=10).status_code in (403, 404)
        copy = f"https://storage.googleapis.com/storage/v1/b/spelt-other/o/x/rewriteTo/b/{local_cloud.bucket}/o/y"
        assert local_cloud.http.post(copy, timeout=10).status_code == 403
    finally:
        local_cloud.http.delete(table, timeout=10)
    listed = local_cloud.http.get("https://storage.googleapis.com/storage/v1/b/spelt-other/o", timeout=10).json()
    assert "items" not in listed

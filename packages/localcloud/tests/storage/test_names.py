"""Object names that are no safe paths are kept as they are, and stay where they belong."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import storage

from localcloud.storage import names as storage_names

REPOSITORY_PATH = Path(__file__).resolve().parents[4]
TRAINER_PYTHON = REPOSITORY_PATH / ".venv" / "trainer" / "bin" / "python"
NAMES = [
    *("a//b", "/a", "a", "d/", "d", "../x", "x/../../y", ".", "..", "a/./b", "//", "/", "d//", "é//ü"),
    *("a b//c?d#e%2Ff", ".encoded-names/61", ".encoded-names", "p" * 250 + "/q", "long/" * 150 + "/" + "x" * 200),
]


@pytest.fixture
def bucket(local_cloud) -> Iterator[storage.Bucket]:
    """A bucket of the test's own."""
    made = storage.Client(project=local_cloud.project).create_bucket(f"names-{uuid.uuid4().hex}")
    yield made
    made.delete(force=True)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_safe_on_disk_and_come_back(name):
    """Encoded names are paths inside their bucket, and never two names the same."""
    stored = storage_names.encode(name)
    assert storage_names.is_safe(stored.replace(".encoded-names", "e", 1))
    assert storage_names.decode(stored) == name
    assert all(len(part.encode()) < 240 for part in stored.split("/"))


def test_encoded_names_never_meet():
    """Not even where one begins like the other."""
    names = {*NAMES, *("/" + "x" * n for n in range(400))}
    stored = {storage_names.encode(name) for name in names}
    assert len(stored) == len(names)
    folders = {"/".join(name.split("/")[:count]) for name in stored for count in range(1, name.count("/") + 1)}
    assert not folders & stored


@pytest.mark.parametrize("size", [3, 9 * 1024 * 1024], ids=["multipart", "resumable"])
def test_round_trip(bucket, local_cloud, size):
    """Each way the real client has: written, read, described, listed, copied, composed, deleted."""
    names = [name for name in NAMES if name not in (".", "..")] if size == 3 else ["a//b"]  # those are no names
    before = _unencoded(local_cloud)
    for name in names:
        blob = bucket.blob(name)
        blob.upload_from_string(name.encode() * size, if_generation_match=0)
        assert blob.name == name
        with pytest.raises(exceptions.PreconditionFailed):
            bucket.blob(name).upload_from_string(b"again", if_generation_match=0)
    assert [blob.name for blob in bucket.list_blobs()] == sorted(names, key=str.encode)
    for name in names:
        blob = bucket.get_blob(name)
        assert blob.download_as_bytes() == name.encode() * size
        assert name in blob.path.replace("%2F", "/") or "%" in blob.path
        assert bucket.copy_blob(blob, bucket, f"{name}//copy").name == f"{name}//copy"
        assert bucket.get_blob(f"{name}//copy").download_as_bytes() == name.encode() * size
        both = bucket.blob(f"{name}//both")
        both.compose([bucket.blob(name), bucket.blob(f"{name}//copy")])
        assert both.download_as_bytes() == name.encode() * size * 2
        blob.metadata = {"k": "v"}
        blob.patch()
        assert bucket.get_blob(name).metadata == {"k": "v"}
        for gone in (name, f"{name}//copy", f"{name}//both"):
            bucket.delete_blob(gone)
        assert bucket.get_blob(name) is None
    assert list(bucket.list_blobs()) == []
    assert _unencoded(local_cloud) == before


def _unencoded(local_cloud) -> set[Path]:
    """The files whose names on the disk are the last words of the names above; other tests may have some."""
    return {path for path in (local_cloud.state_path / "storage").rglob("*") if path.name in ("x", "y")}


def test_order_and_delimiter(bucket):
    """As if nothing were encoded: by the bytes of the name, with common prefixes, page by page."""
    names = ["a!b", "a-b", "a//b", "a//c", "a/0", "a/b/c", "a0", "b/", "b/c", "c//", "é//x", "/lead", "../up"]
    for name in names:
        bucket.blob(name).upload_from_string(b"x")
    ordered = sorted(names, key=str.encode)
    assert [blob.name for blob in bucket.list_blobs(page_size=3)] == ordered
    assert [blob.name for blob in bucket.list_blobs(prefix="a/")] == ["a//b", "a//c", "a/0", "a/b/c"]
    for prefix, files, folders in (
        ("", ["a!b", "a-b", "a0"], {"/", "../", "a/", "b/", "c/", "é/"}),
        ("a/", ["a/0"], {"a//", "a/b/"}),
        ("a//", ["a//b", "a//c"], set()),
        ("b/", ["b/", "b/c"], set()),
        ("c/", [], {"c//"}),
    ):
        listed = bucket.list_blobs(prefix=prefix, delimiter="/", page_size=2)
        assert ([blob.name for blob in listed], listed.prefixes) == (files, folders), prefix
    offsets = bucket.list_blobs(start_offset="a//c", end_offset="a0")
    assert [blob.name for blob in offsets] == ["a//c", "a/0", "a/b/c"]
    placeholders = bucket.list_blobs(delimiter="/", include_trailing_delimiter=True)
    assert "b/" in [blob.name for blob in placeholders]


def test_batches(bucket):
    """A batch names its objects in its body."""
    for name in ("a//b", "c"):
        bucket.blob(name).upload_from_string(b"x")
    with bucket.client.batch():
        bucket.delete_blobs([bucket.blob("a//b"), bucket.blob("c")])
    assert list(bucket.list_blobs()) == []


@pytest.mark.parametrize("name", ["..", "../escape", "a..b", "UPPER", ".hidden", "x"])
def test_names_that_are_no_bucket(local_cloud, name):
    """Are refused, in an address and in a body."""
    base = "https://storage.googleapis.com/storage/v1/b"
    made = local_cloud.http.post(f"{base}?project=local-project", json={"name": name}, timeout=10)
    assert made.status_code == 400, made.text
    quoted = name.replace("/", "%2F").replace("..", "%2E%2E")
    asked = local_cloud.http.post(
        f"https://storage.googleapis.com/upload/storage/v1/b/{quoted}/o?uploadType=media&name=n", b"x", timeout=10
    )
    assert asked.status_code == 400, asked.text


def test_the_raw_address_stays_inside(local_cloud):
    """`..%2f`, as somebody would write it by hand."""
    url = (
        f"https://storage.googleapis.com/upload/storage/v1/b/{local_cloud.bucket}/o?uploadType=media&name=..%2f..%2fout"
    )
    assert local_cloud.http.post(url, b"x", timeout=10).json()["name"] == "../../out"
    assert not list(local_cloud.state_path.parent.glob("out"))
    assert not (local_cloud.state_path / "out").exists()
    read = f"https://storage.googleapis.com/{local_cloud.bucket}/..%2f..%2fout"
    assert local_cloud.http.get(read, timeout=10).content == b"x"
    storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).delete_blob("../../out")


_TENSORFLOW = """
import sys, tensorflow as tf
root = sys.argv[1]
tf.io.gfile.makedirs(f"{root}/made/deep")
assert tf.io.gfile.isdir(f"{root}/made/deep")
for name in ("a//b", "plain", "d1/f"):
    with tf.io.gfile.GFile(f"{root}/{name}", "w") as file:
        file.write(name)
    assert tf.io.gfile.GFile(f"{root}/{name}").read() == name
print(sorted(tf.io.gfile.listdir(root)))
tf.io.gfile.rename(f"{root}/a//b", f"{root}/a//c")
assert tf.io.gfile.exists(f"{root}/a//c") and not tf.io.gfile.exists(f"{root}/a//b")
tf.io.gfile.rmtree(root)
assert not tf.io.gfile.exists(f"{root}/plain")
"""


def test_tensorflow(bucket):
    """TensorFlow's own gs://: folders are objects whose names end in a slash."""
    done = subprocess.run(
        [TRAINER_PYTHON, "-c", _TENSORFLOW, f"gs://{bucket.name}"], text=True, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "['a/', 'd1/', 'made/', 'plain']"
    assert list(bucket.list_blobs()) == []

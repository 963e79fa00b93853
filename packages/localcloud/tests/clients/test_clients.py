"""The daily calls of the clients that people use beside the project's own, unmodified, by the environment alone.

Each script runs in an environment of `../clients`, TensorFlow's in the trainer's; what it checks itself fails it. They
are long tests: `make test-clients`.
"""

from __future__ import annotations

import json
import os
import uuid

import pytest
from google.cloud import storage

from tests.support.client_programs import run_program, run_script

pytestmark = pytest.mark.long

GCSFS = """
import gcsfs, pandas as pd
fs = gcsfs.GCSFileSystem(project=PROJECT, session_kwargs={"trust_env": True})
root = f"{BUCKET}/{FOLDER}"
with fs.open(f"{root}/small.txt", "wb") as file:
    file.write(b"hello")
with fs.open(f"{root}/large.bin", "wb", block_size=2**18) as file:
    for _ in range(5):
        file.write(b"x" * 200_000)
fs.pipe(f"{root}/piped", b"a\\nb\\n")
assert fs.cat(f"{root}/piped") == b"a\\nb\\n"
assert fs.cat(f"{root}/small.txt") == b"hello"
assert fs.cat_file(f"{root}/small.txt", 1, 3) == b"el"
assert fs.info(f"{root}/large.bin")["size"] == 1_000_000
assert sorted(fs.ls(root)) == sorted(f"{root}/{n}" for n in ("small.txt", "large.bin", "piped"))
fs.copy(f"{root}/small.txt", f"{root}/d/copy.txt")
fs.mv(f"{root}/d/copy.txt", f"{root}/d/moved.txt")
assert fs.find(root, maxdepth=None)[0].startswith(root)
fs.setxattrs(f"{root}/small.txt", content_type="text/x", k="v")
fs.invalidate_cache()
assert fs.getxattr(f"{root}/small.txt", "k") == "v"
assert fs.glob(f"{root}/**/*.txt")
options = {"session_kwargs": {"trust_env": True}}
frame = f"gs://{root}/frame.parquet"
pd.DataFrame({"a": [1, 2]}).to_parquet(frame, storage_options=options)
assert pd.read_parquet(frame, storage_options=options).a.tolist() == [1, 2]
fs.rm(root, recursive=True)
assert not fs.exists(f"{root}/small.txt")
fs.mkdir(f"gcsfs-{ID}"); fs.touch(f"gcsfs-{ID}/x"); fs.rm(f"gcsfs-{ID}", recursive=True)
"""

SMART_OPEN = """
from smart_open import open
uri = f"gs://{BUCKET}/{FOLDER}/lines.txt"
with open(uri, "w") as file:
    for n in range(1000):
        file.write(f"{n}\\n")
with open(uri) as file:
    assert [int(line) for line in file] == list(range(1000))
with open(uri, "rb") as file:
    file.seek(2); assert file.read(3) == b"1\\n2"
with open(uri + ".gz", "wt") as file:
    file.write("packed")
assert open(uri + ".gz", "rt").read() == "packed"
with open(uri + ".big", "wb", transport_params={"min_part_size": 256 * 1024}) as file:
    for _ in range(10):
        file.write(b"y" * 100_000)
assert len(open(uri + ".big", "rb").read()) == 1_000_000
"""

PYARROW = """
import datetime, os
import google.auth, google.auth.transport.requests
import pyarrow as pa, pyarrow.parquet as pq
from pyarrow import fs
gcs = fs.GcsFileSystem()
root = f"{BUCKET}/{FOLDER}"
pq.write_table(pa.table({"n": list(range(1000))}), f"{root}/t.parquet", filesystem=gcs)
assert pq.read_table(f"{root}/t.parquet", filesystem=gcs).num_rows == 1000
with gcs.open_output_stream(f"{root}/b.bin", metadata={"k": "v"}) as out:
    out.write(b"z" * 3_000_000)
assert gcs.get_file_info(f"{root}/b.bin").size == 3_000_000
gcs.copy_file(f"{root}/b.bin", f"{root}/c.bin")
gcs.move(f"{root}/c.bin", f"{root}/d.bin")
found = gcs.get_file_info(fs.FileSelector(root, recursive=True))
assert [each.base_name for each in found if each.is_file] == ["b.bin", "d.bin", "t.parquet"]
gcs.delete_file(f"{root}/b.bin")
gcs.delete_dir_contents(root)
"""

LOGGING = """
import logging
from google.cloud import logging as cloud
client = cloud.Client(project=PROJECT)
logger = client.logger(f"clients-{ID}")
logger.log_text("plain", severity="INFO", labels={"a": "b"})
logger.log_struct({"message": "structured", "n": 1}, severity="ERROR")
with logger.batch() as batch:
    batch.log_text("one"); batch.log_text("two")
name = f'logName="projects/{PROJECT}/logs/clients-{ID}"'
found = [e.payload for e in client.list_entries(filter_=name, order_by=cloud.ASCENDING)]
found = [each for each in found if "diagnostic" not in str(each)]  # of the client itself
assert len(found) == 4, found
errors = list(client.list_entries(filter_=f"{name} AND severity>=ERROR"))
assert [e.payload["n"] for e in errors] == [1]
handler = cloud.handlers.CloudLoggingHandler(client, name=f"handler-{ID}")
own = logging.getLogger("own")
own.addHandler(handler)
own.warning("by the standard library")
handler.close()
assert list(client.list_entries(filter_=name.replace("clients-", "handler-")))
logger.delete()
assert not list(client.list_entries(filter_=name))
"""


GFILE = """
import tensorflow as tf
gfile = tf.io.gfile
root = f"gs://{BUCKET}/{FOLDER}"
with gfile.GFile(f"{root}/a.txt", "w") as file:
    file.write("one\\n"); file.write("two\\n")
with gfile.GFile(f"{root}/a.txt") as file:
    assert file.readline() == "one\\n" and file.read() == "two\\n" and file.size() == 8
    file.seek(4); assert file.read(3) == "two"
assert gfile.exists(f"{root}/a.txt") and not gfile.exists(f"{root}/b.txt") and gfile.isdir(root)
gfile.copy(f"{root}/a.txt", f"{root}/d/b.txt")
try:
    gfile.copy(f"{root}/a.txt", f"{root}/d/b.txt")
except tf.errors.AlreadyExistsError:
    pass
else:
    raise AssertionError("written over")
gfile.copy(f"{root}/a.txt", f"{root}/d/b.txt", overwrite=True)
gfile.rename(f"{root}/d/b.txt", f"{root}/d/c.txt")
assert gfile.listdir(f"{root}/d") == ["c.txt"]
assert sorted(gfile.listdir(root)) == ["a.txt", "d/"], gfile.listdir(root)
assert gfile.stat(f"{root}/a.txt").length == 8
gfile.makedirs(f"{root}/x/y"); assert gfile.isdir(f"{root}/x/y")
assert gfile.glob(f"{root}/*.txt") == [f"{root}/a.txt"]
assert gfile.glob(f"{root}/d/*") == [f"{root}/d/c.txt"]
with gfile.GFile(f"{root}/large.bin", "wb") as file:
    for _ in range(10):
        file.write(b"x" * 1_000_000)
with gfile.GFile(f"{root}/large.bin", "rb") as file:
    assert len(file.read()) == 10_000_000
with gfile.GFile(f"{root}/a.txt", "a") as file:
    file.write("three\\n")
assert gfile.GFile(f"{root}/a.txt").read() == "one\\ntwo\\nthree\\n"
with tf.io.TFRecordWriter(f"{root}/r.tfrecord") as writer:
    for n in range(100):
        writer.write(b"%d" % n)
assert len(list(tf.data.TFRecordDataset(f"{root}/r.tfrecord"))) == 100
assert [f for f, _, _ in gfile.walk(root)][0].rstrip("/") == root
gfile.remove(f"{root}/a.txt")
gfile.rename(f"{root}/d", f"{root}/e"); assert gfile.listdir(f"{root}/e") == ["c.txt"]
gfile.rmtree(root)
assert not gfile.exists(f"{root}/e/c.txt")
"""


@pytest.mark.parametrize(
    ("environment", "script"),
    [
        pytest.param("clients", GCSFS, id="gcsfs"),
        pytest.param("clients", SMART_OPEN, id="smart_open"),
        pytest.param("clients", PYARROW, id="pyarrow"),
        pytest.param("clients", LOGGING, id="google-cloud-logging"),
        pytest.param("trainer", GFILE, id="gfile"),
    ],
)
def test_a_python_client(local_cloud, environment, script):
    """Writes, reads, lists, copies, deletes, in its own way."""
    run_script(local_cloud, environment, script)


def test_gsutil(local_cloud, tmp_path):
    """Copies there and back, in one request and in pieces; lists, describes, moves, sets metadata, removes."""
    folder = f"gs://{local_cloud.bucket}/gsutil/{uuid.uuid4().hex}"
    (tmp_path / "small.txt").write_text("hello\n--b\n")
    (tmp_path / "large.bin").write_bytes(os.urandom(9_000_000))

    def gsutil(*arguments: str) -> str:
        return run_program(local_cloud, "gsutil/bin/gsutil", "-q", *arguments, cwd=tmp_path)

    gsutil("cp", "small.txt", "large.bin", f"{folder}/")
    assert gsutil("cat", f"{folder}/small.txt") == "hello\n--b\n"
    gsutil("cp", f"{folder}/large.bin", "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == (tmp_path / "large.bin").read_bytes()
    assert sorted(gsutil("ls", folder).split()) == [f"{folder}/large.bin", f"{folder}/small.txt"]
    gsutil("setmeta", "-h", "Content-Type:text/x", "-h", "x-goog-meta-k:v", f"{folder}/small.txt")
    assert "text/x" in run_program(local_cloud, "gsutil/bin/gsutil", "stat", f"{folder}/small.txt")
    gsutil("cp", f"{folder}/small.txt", f"{folder}/copy.txt")
    gsutil("mv", f"{folder}/copy.txt", f"{folder}/moved.txt")
    gsutil("rsync", "-r", folder, str(tmp_path))
    assert (tmp_path / "moved.txt").exists()
    gsutil("rm", "-r", folder)
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    assert list(bucket.list_blobs(prefix=folder.removeprefix(f"gs://{local_cloud.bucket}/"))) == []


def test_an_upload_as_gcloud_storage_sends_it(local_cloud):
    """The Google Cloud CLI is in no package index; its uploads are apitools': MIME parts whose lines end in LF."""
    name = f"gcloud/{uuid.uuid4().hex}"
    metadata = json.dumps(
        {"bucket": local_cloud.bucket, "name": name, "contentType": "text/plain", "metadata": {"k": "v"}}
    )
    boundary = "===============0123456789=="
    head = "MIME-Version: 1.0\nContent-Transfer-Encoding: "
    body = (
        f"--{boundary}\nContent-Type: application/json\n{head}7bit\n\n{metadata}\n"
        f"--{boundary}\nContent-Type: text/plain\n{head}binary\n\nhello\n\n--{boundary}--"
    )
    url = f"https://storage.googleapis.com/upload/storage/v1/b/{local_cloud.bucket}/o"
    query = "alt=json&fields=name%2Csize&predefinedAcl=private&uploadType=multipart&ifGenerationMatch=0"
    fields = {"Content-Type": f"multipart/related; boundary='{boundary}'", "Accept": "application/json"}
    answer = local_cloud.http.post(f"{url}?{query}", body.encode(), headers=fields, timeout=30)
    assert answer.status_code == 200, answer.text
    blob = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).get_blob(name)
    assert (blob.download_as_bytes(), blob.content_type, blob.metadata) == (b"hello\n", "text/plain", {"k": "v"})

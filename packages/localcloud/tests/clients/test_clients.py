"""The daily calls of the clients that people use beside the project's own, unmodified, by the environment alone.

Each script runs in the environment of `../clients`; what it checks itself fails it. They are long tests: `make
test-clients`.
"""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest
from google.cloud import storage

REPOSITORY_PATH = Path(__file__).resolve().parents[4]
PATIENCE_S = 300

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
"""


def run(local_cloud, program: str, *command: str, cwd: Path | None = None) -> str:
    """Run a program of an environment against the local cloud; give its output."""
    path = REPOSITORY_PATH / ".venv" / program
    if not path.exists():
        pytest.skip(f"{path} is not there: make test-clients makes it")
    environ = {name: value for name, value in {**os.environ, **local_cloud.env}.items() if value}
    done = subprocess.run([path, *command], env=environ, text=True, capture_output=True, timeout=PATIENCE_S, cwd=cwd)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    return done.stdout


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(GCSFS, id="gcsfs"),
        pytest.param(SMART_OPEN, id="smart_open"),
        pytest.param(PYARROW, id="pyarrow"),
        pytest.param(LOGGING, id="google-cloud-logging"),
    ],
)
def test_a_python_client(local_cloud, script):
    """Writes, reads, lists, copies, deletes, in its own way."""
    identity = uuid.uuid4().hex[:12]
    names = {"PROJECT": local_cloud.project, "BUCKET": local_cloud.bucket, "ID": identity}
    names["FOLDER"] = f"clients/{identity}"
    begin = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    run(local_cloud, "clients/bin/python", "-c", begin + script)


def test_gsutil(local_cloud, tmp_path):
    """Copies there and back, in one request and in pieces; lists, describes, moves, sets metadata, removes."""
    folder = f"gs://{local_cloud.bucket}/gsutil/{uuid.uuid4().hex}"
    (tmp_path / "small.txt").write_text("hello\n--b\n")
    (tmp_path / "large.bin").write_bytes(os.urandom(9_000_000))

    def gsutil(*arguments: str) -> str:
        return run(local_cloud, "gsutil/bin/gsutil", "-q", *arguments, cwd=tmp_path)

    gsutil("cp", "small.txt", "large.bin", f"{folder}/")
    assert gsutil("cat", f"{folder}/small.txt") == "hello\n--b\n"
    gsutil("cp", f"{folder}/large.bin", "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == (tmp_path / "large.bin").read_bytes()
    assert sorted(gsutil("ls", folder).split()) == [f"{folder}/large.bin", f"{folder}/small.txt"]
    gsutil("setmeta", "-h", "Content-Type:text/x", "-h", "x-goog-meta-k:v", f"{folder}/small.txt")
    assert "text/x" in run(local_cloud, "gsutil/bin/gsutil", "stat", f"{folder}/small.txt")
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

"""What bad input gets from the real export job: it is named, nothing is half visible, and the next try goes on.

Each message has its four parts: where, what was found, what was expected, the way out.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.localcloud.export.conftest import DAYS, ROWS, SCHEMA, Ended, ExportJob

CANNOT_HELP, MAY_HELP = 2, 1


def assert_named(ended: Ended, code: int, *words: str) -> None:
    """The process ended with this code and one message that has four parts and these words."""
    assert ended.code == code, ended.error
    assert "Traceback" not in ended.error
    kind, where, rest = re.fullmatch(r"(\w+Error): (.+?): (.+)", ended.message).groups()
    assert kind in ("RequestError", "DataError", "StorageError"), ended.message
    assert where
    assert "Expected " in rest, ended.message
    assert rest.partition("Expected ")[2].count(". ") >= 1, f"no way out: {ended.message}"
    for word in words:
        assert word in ended.message


def assert_nothing_half_visible(job: ExportJob, expected: dict[str, bytes]) -> None:
    """What is there is whole; a span without all its shards is not declared complete, and there is no manifest."""
    found = job.shards()
    assert found == {name: expected[name] for name in found}
    assert job.manifest() is None
    for span in (name for name in job.names("span.json")):
        folder = span.removesuffix("span.json")
        assert {name for name in found if name.startswith(folder)} == {
            name for name in expected if name.startswith(folder)
        }


def assert_goes_on(job: ExportJob, expected: dict[str, bytes]) -> None:
    """The next try writes what is missing and nothing else; then all is as if nothing had happened."""
    before = job.generations()
    ended = job.run()
    assert ended.code == 0, ended.error
    after = job.generations()
    assert {name: after[name] for name in before} == before
    assert job.shards() == expected
    assert sum(split["rows"] for split in job.manifest()["splits"].values() if split) == ROWS


class TestSource:
    """BigQuery does not give what the request names."""

    def test_missing_table(self, make_job):
        """It may have expired: a new run makes it again."""
        job = make_job(table="local-project.exporting.gone")
        assert_named(job.run(), CANNOT_HELP, "local-project.exporting.gone", "Not found", "expired")
        assert job.names() == []

    def test_no_permission(self, job, add_fault):
        """The message names the permissions that the job's account lacks."""
        add_fault("BigQueryRead.CreateReadSession", "error", count=0, code="PERMISSION_DENIED", message="Access denied")
        assert_named(job.run(), CANNOT_HELP, job.request["table"], "Access denied", "bigquery.readsessions.create")
        assert job.names() == []

    def test_missing_column(self, make_job):
        """The column is named, and the table."""
        job = make_job(schema=[*SCHEMA, {"name": "colour", "type": "STRING", "mode": "NULLABLE"}])
        assert_named(job.run(), CANNOT_HELP, job.request["table"], "colour")
        assert job.names() == []

    def test_types_without_mapping(self, make_job):
        """All are refused by name before anything is read or written."""
        odd = [{"name": f"odd_{kind.lower()}", "type": kind, "mode": "NULLABLE"} for kind in ("INTERVAL", "RANGE")]
        job = make_job(schema=[*SCHEMA, *odd])
        assert_named(job.run(), CANNOT_HELP, "odd_interval (INTERVAL)", "odd_range (RANGE)")
        assert job.names() == []

    @pytest.mark.long  # a test of the exporter in memory has it in the default suite
    def test_rows_that_are_not_those_of_the_snapshot(self, job):
        """The table was changed since: the span is not what its fingerprint says."""
        job.request["spans"][1]["parts"][0]["rows"] += 1
        ended = job.run()
        assert_named(ended, CANNOT_HELP, job.request["table"], DAYS[1], "Trigger the DAG again")
        assert job.manifest() is None
        assert not [name for name in job.names("span.json") if name.startswith(DAYS[1])]

    def test_stream_that_breaks_midway(self, job, add_fault, expected):
        """Twice: the job goes on at the first missing row, and the bytes are the same."""
        add_fault("BigQueryRead.ReadRows", "break", after=700, count=2, message="connection reset")
        ended = job.run()
        assert ended.code == 0, ended.error
        assert job.shards() == expected

    def test_stream_that_always_breaks(self, job, add_fault, expected):
        """Broken for good at the same row: named with it; the next try, on a whole stream, goes on."""
        add_fault("BigQueryRead.ReadRows", "break", after=0, count=0, code="DATA_LOSS", message="corrupt block")
        assert_named(job.run(), MAY_HELP, "row", "corrupt block", "Start again")
        assert_nothing_half_visible(job, expected)


class TestStorage:
    """Cloud Storage does not take what the job writes."""

    def test_503_that_passes(self, job, add_fault, expected):
        """Retried; the job's log and its result do not show it."""
        add_fault("storage.objects.insert gs://*/spans/*", "error", count=3)
        add_fault("storage.objects.list gs://*/spans/*", "error", count=1)
        ended = job.run()
        assert ended.code == 0, ended.error
        assert job.shards() == expected

    def test_lost_answer(self, job, add_fault, expected):
        """The upload worked, its answer was lost: the retry finds its own object and goes on."""
        add_fault("storage.objects.insert gs://*/spans/*.tfrecord*", "lost_response", count=2)
        ended = job.run()
        assert ended.code == 0, ended.error
        assert job.shards() == expected

    def test_refused_halfway(self, job, add_fault, expected):
        """The third day may not be written: the other days are whole, and the next try writes the third only."""
        add_fault(f"storage.objects.insert gs://*/spans/{DAYS[2]}/*", "error", count=0, code="PERMISSION_DENIED")
        assert_named(job.run(), CANNOT_HELP, f"spans/{DAYS[2]}/", "storage.objects")
        assert_nothing_half_visible(job, expected)

    def test_412_from_an_object_with_other_bytes(self, job, expected):
        """Somebody else's object is at the address: it is named and never overwritten."""
        name = next(iter(expected))
        job.write(name, b"not ours")
        assert_named(job.run(), CANNOT_HELP, name, "other bytes")
        assert job.read(name) == b"not ours"
        assert job.manifest() is None

    @pytest.mark.long  # a test of the exporter in memory has it in the default suite
    def test_412_from_an_equal_object(self, job, expected):
        """A replica that was killed between a shard and its sidecar, or a second one: taken as its own."""
        for name, content in expected.items():
            job.write(name, content)
        assert_goes_on(job, expected)

    def test_missing_bucket(self, make_job):
        """Nothing to write to."""
        job = make_job(spans_uri="gs://no-such-bucket/spans")
        assert_named(job.run(), CANNOT_HELP, "gs://no-such-bucket", "bucket does not exist")


class TestDisk:
    """The replica's disk is full."""

    def test_limit_of_a_file(self, job, expected):
        """A limit on the size of files: named with its setting; nothing is visible, and the next try goes on."""
        ended = job.run(prefix=["prlimit", "--fsize=2048"])
        assert_named(ended, MAY_HELP, "gs://", "disk")
        assert_nothing_half_visible(job, expected)
        assert_goes_on(job, expected)

    def test_full_file_system(self, job, expected, tiny_folder):
        """The same on a file system without room."""
        ended = job.run(env={"TMPDIR": str(tiny_folder)})
        assert_named(ended, MAY_HELP, "No space left on device")
        assert_nothing_half_visible(job, expected)
        assert_goes_on(job, expected)
        assert list(tiny_folder.iterdir()) == []


@pytest.fixture
def tiny_folder(tmp_path):
    """A file system of 8 kB."""
    path: Path = tmp_path / "tiny"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", path], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here: only root may")
    yield path
    subprocess.run(["umount", path], check=True)


class TestDocuments:
    """Documents in the store that do not match their files."""

    @pytest.fixture
    def exported(self, job) -> ExportJob:
        """A whole export whose manifest is gone: the next run reuses its spans."""
        ended = job.run()
        assert ended.code == 0, ended.error
        job.bucket.blob(f"{job.folder}/manifest.json").delete()
        for span in job.request["spans"]:
            span["action"], span["because"] = "reuse", "same fingerprint as stored"
        return job

    @pytest.mark.long  # a test of the exporter in memory has it in the default suite
    def test_span_of_other_rows(self, exported):
        """The span is not the one that the request means."""
        name = exported.names("span.json")[0]
        document = json.loads(exported.read(name))
        document["files"][0]["rows"] += 1
        exported.write(name, json.dumps(document).encode())
        assert_named(exported.run(), CANNOT_HELP, name, "rows")
        assert exported.manifest() is None

    @pytest.mark.long  # a test of the exporter in memory has it in the default suite
    def test_span_that_is_no_document(self, exported):
        """Half a JSON document."""
        name = exported.names("span.json")[0]
        exported.write(name, b'{"half":')
        ended = exported.run()
        assert ended.code == CANNOT_HELP
        assert name in ended.message
        assert exported.manifest() is None

    def test_span_whose_file_is_gone(self, exported):
        """A manifest would name a file that is not there."""
        name = next(iter(exported.shards()))
        exported.bucket.blob(f"{exported.folder}/spans/{name}").delete()
        assert_named(exported.run(), CANNOT_HELP, name.rsplit("/", 1)[1])
        assert exported.manifest() is None

    def test_span_whose_file_has_another_size(self, exported):
        """A manifest would promise bytes that are not there."""
        name = next(iter(exported.shards()))
        exported.write(name, exported.read(name)[:-1])
        assert_named(exported.run(), CANNOT_HELP, name.rsplit("/", 1)[1], "bytes")
        assert exported.manifest() is None

    @pytest.mark.long  # a test of the exporter in memory has it in the default suite
    def test_span_that_is_gone(self, exported):
        """It was there when the snapshot looked."""
        name = exported.names("span.json")[0]
        exported.bucket.blob(f"{exported.folder}/spans/{name}").delete()
        assert_named(exported.run(), CANNOT_HELP, name, "missing")
        assert exported.manifest() is None

    @pytest.mark.long  # a test of the exporter in memory has it in the default suite
    def test_request_that_is_no_request(self, job):
        """The document and the field are named."""
        job.request["spans"][0]["fingerprint"] = "short"
        ended = job.run()
        assert ended.code == CANNOT_HELP
        assert re.search(r"ContractError: gs://\S+request.json: spans\S* is \"short\"", ended.message), ended.message
        assert job.names() == []

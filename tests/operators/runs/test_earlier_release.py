"""A bucket that an earlier release filled: what its runs left is found, compared with, kept, and used again.

Of a run of then all lies in one folder beside its documents, with the spans of its model in `<model>/spans`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from retraining.core.documents import EvaluateRequest, Manifest, Plan, Report, Snapshot
from retraining.core.naming import storage, vertex
from retraining.operators.record.run_record import Record
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.planned_run import FORM
from tests.support.scenes.recorded_run import RecordedRun

NEW, OLD = b"gs://bucket/jobs/flight_delays/", b"gs://bucket/flight_delays/"


def make_earlier(cloud: FakeCloud) -> None:
    """Put everything where the release before had it."""
    objects = cloud.artifacts.objects
    for uri in list(objects):
        data = objects.pop(uri).replace(NEW, OLD)
        if uri.endswith("/plan.json"):
            data = json.dumps({**json.loads(data), "results_uri": None}).encode()
        if "/adopted/" not in uri:
            objects.setdefault(uri.replace(NEW.decode(), OLD.decode()), data)
    versions = cloud.registry.versions
    for name, version in versions.items():
        artifact_uri = version.artifact_uri.replace(NEW.decode(), OLD.decode())
        versions[name] = dataclasses.replace(version, artifact_uri=artifact_uri)
    digests = cloud.model_files.digests
    for uri in list(digests):
        digests[uri.replace(NEW.decode(), OLD.decode())] = digests.pop(uri)


@pytest.fixture
def earlier(make_run: Any) -> RecordedRun:
    """A night of then, whose model is the champion."""
    night = RecordedRun(FakeCloud(), make_run(params=FORM))
    night.clear()
    make_earlier(night.cloud)
    (version,) = night.cloud.registry.list_versions("flight_delays")
    champion = night.cloud.registry.merge_aliases(version, [vertex.CHAMPION])
    assert champion.model_uri.startswith(OLD.decode())
    return night


@pytest.mark.parametrize("copied", [False, True], ids=["spans are exported once more", "spans were copied before"])
def test_the_next_run_goes_on(earlier: RecordedRun, make_run: Any, copied: bool) -> None:
    """Its champion is compared with where it lies; its days are exported again, or found where they were copied to."""
    cloud = earlier.cloud
    objects = cloud.artifacts.objects
    if copied:
        for uri in [uri for uri in objects if "/flight_delays/spans/" in uri]:
            objects[uri.replace(OLD.decode(), NEW.decode())] = objects[uri]
    before = {uri: data for uri, data in objects.items() if uri.startswith(earlier.folder)}
    night = RecordedRun(cloud, make_run(run_id="scheduled__2", params={**FORM, "as_of": "2013-11-21T03:00:00Z"}))
    night.clear()
    record = Record(cloud.artifacts, night.folder)
    planned, request = record.read_document(Plan), record.read_document(EvaluateRequest)
    assert planned.results_uri == storage.run_results_uri("bucket", "flight_delays", planned.run_key)
    assert request.champion is not None
    assert request.champion.run_key in earlier.folder
    actions = {span.action for span in record.read_document(Snapshot).spans}
    assert actions == ({"reuse"} if copied else {"export"})
    files = [file.uri for split in record.read_document(Manifest).splits.values() for file in split.files]
    assert files
    assert all(uri.startswith(NEW.decode()) for uri in files)
    assert {uri: data for uri, data in objects.items() if uri.startswith(earlier.folder)} == before


def test_a_run_under_way_ends_where_it_began(earlier: RecordedRun) -> None:
    """Cleared from its export on, it writes at the addresses of its plan, and nothing at the new ones."""
    for kind in ("manifest", "report", "evaluation", "evaluate_request", "decision", "registration", "deployment"):
        earlier.delete(kind)
    earlier.clear("export")
    assert not [uri for uri in earlier.cloud.artifacts.objects if uri.startswith(NEW.decode())]


def test_a_bucket_of_its_own_for_what_jobs_write(make_run: Any) -> None:
    """Results, models and spans there, and nothing else; the record where it is always."""
    cloud = FakeCloud()
    cloud.settings = dataclasses.replace(cloud.settings, results_bucket="results")
    night = RecordedRun(cloud, make_run(params=FORM))
    night.clear()
    theirs = {uri for uri in cloud.artifacts.objects if uri.startswith("gs://results/")}
    assert theirs
    assert all(uri.startswith("gs://results/jobs/flight_delays/") for uri in theirs)
    assert not [uri for uri in cloud.artifacts.objects if uri.startswith("gs://bucket/jobs/")]
    report = Record(cloud.artifacts, night.folder).read_document(Report)
    assert f"{report.model_uri}/saved_model.pb" in theirs

"""Whom the challenger meets, whose weights it begins with, and which of their files the judge must search."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from retraining.core.documents import EvaluateRequest, Plan, Snapshot, TrainRequest
from retraining.core.naming import serving, vertex
from retraining.core.naming.storage import model_file_uri
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.jobs.requests import request_evaluation, request_training
from retraining.operators.record.run_record import Record
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.planned_run import FORM, fill, plan, stored_plan

KEY = "20131113t030000z-0123456789ab"


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that the operators meet."""
    return FakeCloud()


@pytest.fixture
def record(cloud, make_run) -> Record:
    """A run of three days, up to its snapshot, with an older champion."""
    run = make_run(params=FORM)
    planned = stored_plan(cloud, plan(cloud, run))
    fill(cloud, planned)
    run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))
    champion = cloud.registry.add(KEY, vertex.CHAMPION)
    for model_uri in (champion.artifact_uri, serving.trained_model_uri(planned)):
        cloud.artifacts.objects[model_file_uri(model_uri)] = b"a SavedModel"
    return Record(cloud.artifacts, planned.run_uri)


def store_manifest(cloud: FakeCloud, record: Record, *, extra_rows: int = 0, **fingerprints: str) -> None:
    """The manifest of the champion's run: trained on two of this run's days."""
    planned = {str(span.span): span.fingerprint for span in record.read_document(Snapshot).spans}
    days = sorted(planned)[:2]
    files = [
        {"uri": f"gs://bucket/{day}", "span": day, "part": "train", "rows": 5, "bytes": 1, "crc32c": "AAAAAA=="}
        | {"sha256": "0" * 64}
        for day in days
    ]
    example = record.read_document(Snapshot).to_json()
    manifest: dict[str, Any] = {
        **{name: example[name] for name in ("schema_version", "model", "schema_hash", "schema", "table")},
        "kind": "manifest",
        "run_key": KEY,
        "compression": "GZIP",
        "splits": {
            "train": {"rows": 10 + extra_rows, "files": files},
            "validation": {"rows": 0, "files": []},
            "test": {"rows": 0, "files": []},
        },
        "spans": [
            {"span": day, "fingerprint": fingerprints.get(f"d{day[-2:]}", planned[day]), "rows": 5}
            | {"action": "export", "because": "new span"}
            for day in days
        ],
        "exported_rows": 10,
        "exported_bytes": 1,
        "seconds": 1.0,
    }
    plan_ = record.folder_uri
    cloud.artifacts.objects[f"{plan_.rsplit('/', 1)[0]}/{KEY}/manifest.json"] = json.dumps(manifest).encode()


def test_nothing_is_searched_where_every_span_is_the_same(cloud, record) -> None:
    """Proven by fingerprints."""
    store_manifest(cloud, record)
    request = request_evaluation(cloud, record).request
    assert request.champion.version_id == "1"
    assert request.prove_unseen == ()


def test_a_changed_span_is_searched(cloud, record) -> None:
    """An example may have moved to another day."""
    store_manifest(cloud, record, d17="f" * 32)
    assert [file.uri for file in request_evaluation(cloud, record).request.prove_unseen] == ["gs://bucket/2013-11-17"]


def test_what_cannot_be_proven_is_said(cloud, record, caplog) -> None:
    """No manifest any more, or a champion that read BigQuery itself: in the log, and to the decision."""
    caplog.set_level(logging.WARNING)
    request = request_evaluation(cloud, record).request
    assert request.prove_unseen == ()
    assert "manifest.json is gone" in caplog.text
    assert "manifest.json is gone" in request.unproven
    assert not request.trained_on_known
    store_manifest(cloud, record, extra_rows=7)
    request = request_evaluation(cloud, record).request
    assert "read 7 rows from its run table" in caplog.text
    assert "read 7 rows from its run table" in request.unproven
    assert request.trained_on_known


def test_both_sides_are_asked_for_by_the_digest_of_their_reports(cloud, record) -> None:
    """What lies at their addresses may have been exchanged: the judge loads what was trained, or nothing."""
    folders = {"challenger": record.folder_uri, "champion": f"{record.folder_uri.rsplit('/', 1)[0]}/{KEY}"}
    example = json.loads((EXAMPLES / "report__first_attempt.json").read_bytes())
    for side, digest in (("challenger", "a" * 64), ("champion", "b" * 64)):
        report = {**example, "model_digest": digest}
        cloud.artifacts.objects[f"{folders[side]}/report.json"] = json.dumps(report).encode()
    request = request_evaluation(cloud, record).request
    assert isinstance(request, EvaluateRequest)
    assert request.champion
    assert (request.challenger.model_digest, request.champion.model_digest) == ("a" * 64, "b" * 64)


BEST_KEY = "20131112t030000z-0123456789ab"


@pytest.fixture
def remembered(cloud, record) -> Any:
    """The champion's run met a model that it did not surely beat; returns what makes that run's documents."""
    folder = record.folder_uri.rsplit("/", 1)[0]
    best = {
        "model_uri": f"gs://bucket/{BEST_KEY}/model",
        "version_name": "projects/p/locations/r/models/flight_delays@7",
        "version_id": "7",
        "run_key": BEST_KEY,
        "as_of": "2013-11-12T03:00:00Z",
    }
    plan_ = json.loads(cloud.artifacts.objects[f"{record.folder_uri}/plan.json"])
    earlier = {**plan_, "run_key": BEST_KEY, "run_uri": f"{folder}/{BEST_KEY}"}
    cloud.artifacts.objects[f"{folder}/{BEST_KEY}/plan.json"] = json.dumps(earlier).encode()

    def store(low: float) -> None:
        for kind, changes in (("evaluate_request", {"champion": best}), ("evaluation", {})):
            document = {**json.loads((EXAMPLES / f"{kind}__duel.json").read_bytes()), "run_key": KEY, **changes}
            if kind == "evaluation":
                document["difference"] = {**document["difference"], "mean": 0.001, "low": low, "high": 0.02}
            cloud.artifacts.objects[f"{folder}/{KEY}/{kind}.json"] = json.dumps(document).encode()
        cloud.artifacts.objects[model_file_uri(best["model_uri"])] = b"a SavedModel"

    return store


def test_a_model_that_the_champion_did_not_surely_beat_is_scored_too(cloud, record, remembered) -> None:
    """By the documents of the run that made the champion."""
    remembered(low=-0.01)
    request = request_evaluation(cloud, record).request
    assert request.judge_best
    assert request.best.version_id == "7"
    remembered(low=0.0005)
    assert request_evaluation(cloud, record).request.best is None


def test_a_best_of_late_that_is_gone_is_said(cloud, record, remembered, caplog) -> None:
    """Its model, or the plan of its run: the comparison goes on without it."""
    remembered(low=-0.01)
    folder = record.folder_uri.rsplit("/", 1)[0]
    del cloud.artifacts.objects[model_file_uri(f"gs://bucket/{BEST_KEY}/model")]
    request = request_evaluation(cloud, record).request
    assert request.best is None
    assert f"the model of version 7 of run {BEST_KEY} is gone" in request.best_skipped
    assert "is not asked" in caplog.text
    remembered(low=-0.01)
    del cloud.artifacts.objects[f"{folder}/{BEST_KEY}/plan.json"]
    assert "plan of version 7" in request_evaluation(cloud, record).request.best_skipped


@pytest.fixture
def asking(cloud, record) -> Record:
    """The run's record, whose plan asks for the champion's weights, and all of the champion's run."""
    asks = json.loads(cloud.artifacts.objects[record.uri(Plan)])
    folder = f"{record.folder_uri.rsplit('/', 1)[0]}/{KEY}"
    its_plan = json.loads(json.dumps(asks))
    asks["spec"]["training"]["initial"] = "champion"
    cloud.artifacts.objects[record.uri(Plan)] = json.dumps(asks).encode()
    for name, content in {
        "plan.json": json.dumps(its_plan).encode(),
        "report.json": (EXAMPLES / "report__first_attempt.json").read_bytes(),
        "train_request.json": b"{}",
        "statistics.json": b"{}",
    }.items():
        cloud.artifacts.objects[f"{folder}/{name}"] = content
    store_manifest(cloud, record)
    return Record(cloud.artifacts, record.folder_uri)


def test_the_champion_is_asked_for_once(cloud, asking) -> None:
    """Its weights stand in the stored request: whoever is champion later changes nothing."""
    request = request_training(cloud, asking).request
    assert isinstance(request, TrainRequest)
    assert request.initial_skipped is None
    assert (request.initial.version_id, request.initial.run_key) == ("1", KEY)
    assert request.initial.request_uri.endswith(f"{KEY}/train_request.json")
    asking.write_once(request)
    cloud.registry.add("20131114t030000z-0123456789ab", vertex.CHAMPION)
    assert request_training(cloud, Record(cloud.artifacts, asking.folder_uri)).request == request


def test_a_model_without_a_champion_begins_anew(cloud, asking) -> None:
    cloud.registry.versions.clear()
    request = request_training(cloud, asking).request
    assert (request.initial, request.initial_skipped) == (None, "no version is champion yet")


def test_a_champion_whose_model_is_gone_is_not_begun_with(cloud, asking) -> None:
    (version,) = cloud.registry.versions.values()
    del cloud.artifacts.objects[model_file_uri(version.model_uri)]
    request = request_training(cloud, asking).request
    assert request.initial is None
    assert "the stored model is gone" in request.initial_skipped


def test_the_judge_searches_the_files_of_whom_it_does_not_meet(cloud, asking) -> None:
    """The alias moved after the training began: the challenger still knows what its first weights have seen."""
    asking.write_once(request_training(cloud, asking).request)
    met = request_evaluation(cloud, Record(cloud.artifacts, asking.folder_uri)).request
    assert isinstance(met, EvaluateRequest)
    assert met.initial is None
    store_manifest(cloud, asking, d17="f" * 32)
    cloud.registry.versions.clear()
    other = cloud.registry.add("20131114t030000z-0123456789ab", vertex.CHAMPION)
    cloud.artifacts.objects[model_file_uri(other.artifact_uri)] = b"a SavedModel"
    request = request_evaluation(cloud, Record(cloud.artifacts, asking.folder_uri)).request
    assert request.champion.run_key != KEY
    assert request.initial.run_key == KEY
    assert [file.uri for file in request.initial.prove_unseen] == ["gs://bucket/2013-11-17"]


def test_the_keys_are_only_there_where_they_are_asked_for(cloud, record) -> None:
    """A request of a model that begins anew is as it was."""
    assert "initial" not in request_training(cloud, record).request.to_json()


@pytest.fixture
def backfill(cloud, record) -> Record:
    """The record of the same run, as a backfill's."""
    planned = {**json.loads(cloud.artifacts.objects[record.uri(Plan)]), "mode": "backfill", "deploy": False}
    cloud.artifacts.objects[record.uri(Plan)] = json.dumps(planned).encode()
    return Record(cloud.artifacts, record.folder_uri)


def add_version(cloud: FakeCloud, day: int, *aliases: str) -> str:
    """A version of 03:00 of that day of November; returns its id."""
    version = cloud.registry.add(f"201311{day:02d}t030000z-0123456789ab", *aliases)
    cloud.artifacts.objects[model_file_uri(version.model_uri)] = b"a SavedModel"
    return version.version_id


def test_a_backfill_meets_the_newest_version_of_before_its_date(cloud, backfill) -> None:
    """Who would have been champion then: of other backfills' versions and the champion the newest before it."""
    planned = backfill.read_document(Plan)
    before, after = planned.as_of.day - 1, planned.as_of.day + 1
    assert request_evaluation(cloud, backfill).request.champion.version_id == "1"  # the champion of the 13th
    add_version(cloud, 12, "as-of-20131112")
    assert request_evaluation(cloud, backfill).request.champion.version_id == "1"
    newest = add_version(cloud, before, f"as-of-201311{before}")
    add_version(cloud, planned.as_of.day, f"as-of-201311{planned.as_of.day}")
    add_version(cloud, after, f"as-of-201311{after}")
    add_version(cloud, before, "challenger")  # was never champion, and no backfill recorded it
    assert request_evaluation(cloud, backfill).request.champion.version_id == newest


def test_a_backfill_before_all_versions_says_so(cloud, backfill) -> None:
    cloud.registry.versions.clear()
    assert request_evaluation(cloud, backfill).request.champion_skipped is None
    add_version(cloud, 28, vertex.CHAMPION)
    request = request_evaluation(cloud, backfill).request
    assert request.champion is None
    assert "was trained as of 2013-11-28" in request.champion_skipped


def test_a_backfill_begins_with_the_weights_of_whom_it_meets(cloud, asking, backfill) -> None:
    newest = add_version(cloud, 14, "as-of-20131114")
    skipped = request_training(cloud, backfill).request.initial_skipped
    assert f"champion version {newest}" in skipped

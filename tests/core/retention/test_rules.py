"""What a cleaning finds and does: a dry run or not, who points to a run, and what has changed since it was judged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from retraining.core.data.span_store import StoredObject
from retraining.core.documents import SpanToDelete
from retraining.core.documents.retention import FoundJob
from retraining.core.naming import vertex
from retraining.core.retention import jobs_and_tables, spans

RUN = "20131120t030000z-0123456789ab"
THEN = datetime(2013, 12, 1, tzinfo=UTC)
FOLDER = f"gs://b/late/spans/{'0' * 16}/2013-11-10/{'f' * 32}"
LABELS = {vertex.MODEL_LABEL: "late", vertex.RUN_LABEL: RUN}


def stored(name: str, days: float = 0, generation: int = 1, size: int = 10) -> StoredObject:
    """Object of the span's folder, written so many days after `THEN`."""
    return StoredObject(uri=f"{FOLDER}/{name}", bytes=size, generation=generation, created=THEN + timedelta(days=days))


DOOMED = SpanToDelete(
    uri=FOLDER, span="2013-11-10", objects=2, bytes=20, newest=THEN, marker=1, message="no kept run refers to it"
)


@pytest.mark.parametrize(
    ("run_type", "wished", "dry"), [("manual", True, True), ("manual", False, False), ("scheduled", True, False)]
)
def test_the_schedule_deletes_whatever_the_form_says(run_type, wished, dry):
    assert spans.is_dry_run(run_type, asked=wished) is dry


def test_a_run_was_last_at_work_with_its_newest_document_or_its_lease():
    documents = [stored("plan.json"), stored("snapshot.json", days=1)]
    assert spans.run_folder_of(RUN, documents, None).newest == THEN + timedelta(days=1)
    assert spans.run_folder_of(RUN, documents, stored("lease.json", days=3)).newest == THEN + timedelta(days=3)
    assert spans.run_folder_of(RUN, [], stored("lease.json")).newest is None
    assert not spans.run_folder_of(RUN, documents, None).ended
    assert spans.run_folder_of(RUN, [*documents, stored("deployment.json")], None).ended


def test_aliases_endpoints_and_jobs_claim_runs_of_ours_alone():
    versions = [
        spans.PointedVersion(run_key=RUN, version_id="3", aliases=("previous", "champion"), deployed=True),
        spans.PointedVersion(run_key="", version_id="4", aliases=("x",), deployed=True),
    ]
    claims = spans.claims_of(versions, {RUN: "77", "": "78"})
    assert claims.alias == {RUN: "version 3 has the alias champion, previous"}
    assert claims.serving == {RUN: "version 3 is on the endpoint"}
    assert claims.running == {RUN: "job 77 of it runs"}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([stored("span.json"), stored("a.arrow")], ""),
        ([stored("span.json", generation=2)], "it was exported again meanwhile"),
        ([stored("a.arrow", days=1)], "a.arrow was written meanwhile"),
        ([stored("deleted.json", days=1)], ""),
    ],
)
def test_what_was_written_since_stays(objects, reason):
    assert spans.reason_changed(DOOMED, objects) == reason


def _active(**changes):
    values = {"labels": LABELS, "created": THEN, "last_poke": None, "ended": False, **changes}
    return jobs_and_tables.active_job("projects/p/locations/r/customJobs/1", "JOB_STATE_RUNNING", **values)


def test_a_job_is_known_by_its_labels():
    assert _active().last_sign == THEN
    assert _active(last_poke=THEN + timedelta(hours=1)).last_sign == THEN + timedelta(hours=1)
    assert _active(labels={vertex.MODEL_LABEL: "late"}) is None
    assert _active(created=None) is None


FOUND = FoundJob(
    name="projects/p/locations/r/customJobs/1",
    state="JOB_STATE_RUNNING",
    model="late",
    run_key=RUN,
    created=THEN,
    silent_since=THEN,
    cancel=True,
    message="nobody waits",
)


@pytest.mark.parametrize(
    ("job", "ours", "reason"),
    [
        (None, True, "it has ended"),
        (_active(), False, "it is another environment's"),
        (_active(last_poke=THEN + timedelta(hours=1)), True, "somebody looks at it again"),
        (_active(), True, None),
    ],
)
def test_a_job_that_somebody_wants_is_left(job, ours, reason):
    assert jobs_and_tables.reason_to_leave(FOUND, job, ours=ours) == reason

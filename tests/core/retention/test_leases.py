"""The spans that a job works on are there before it is paid for."""

from __future__ import annotations

from retraining.core.errors import DataError
from retraining.core.retention.leases import Needed, require_whole, waits_for
from tests.support.refusals import refuses

WANTED = Needed(whole=frozenset({"gs://b/1", "gs://b/2"}), written=frozenset({"gs://b/3"}))


def test_a_job_waits_for_spans_that_are_being_deleted():
    assert waits_for(()) is None
    assert str(waits_for({"gs://b/2", "gs://b/1"})).startswith("gs://b/1 is being deleted")


def test_spans_that_are_read_must_be_whole():
    require_whole(WANTED, WANTED.whole)
    with refuses(DataError, where="gs://b/1/span.json", found="2 spans"):
        require_whole(WANTED, WANTED.written)

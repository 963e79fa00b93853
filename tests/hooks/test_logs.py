"""Lines of a job from Cloud Logging, beyond what `ports` says of them."""

from __future__ import annotations

import pytest

from retraining.hooks import logs
from retraining.hooks.logs import Cursor
from tests.support.scenes.port_stage import make_job, until


@pytest.mark.parametrize(("limit", "value"), [("MAX_LINES", 1), ("MAX_BYTES", 2)])
def test_many_lines_are_read_in_several_reads(cloud, unique, monkeypatch, limit, value) -> None:
    """Each line once and in order, however many there are."""
    created = cloud.jobs.create(make_job("print('one'); print('two'); print('three')", owner=unique))
    until(cloud, lambda: not cloud.jobs.get(created.name).active)
    monkeypatch.setattr(logs, limit, value)
    cursor, reads = Cursor(), []
    while lines := cloud.logs.read_new(created.job_id, cursor):
        reads.append([line.text for line in lines if line.task == "workerpool0-0"])
    assert all(len(read) <= 1 for read in reads)
    assert [text for read in reads for text in read] == ["one", "two", "three"]

"""What the Storage Read API keeps on disk, and for how long."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from google.cloud.bigquery_storage_v1 import types

from localcloud.bigquery.read.sessions import RefusalError, Session, Sessions

ROWS = pa.table({"n": list(range(1000))})  # 8,000 bytes
START = dt.datetime(2013, 11, 20, 3, tzinfo=dt.UTC)


class Clock:
    """Says what it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> dt.datetime:
        """Tell the time."""
        return self.now


def create(sessions: Sessions) -> Session:
    request = types.CreateReadSessionRequest(
        read_session=types.ReadSession(table="projects/p/datasets/d/tables/t"), max_stream_count=1
    )
    return sessions.create("p", ROWS.to_reader(), request)


def finish(session: Session) -> None:
    session.ended.update(session.streams)


def test_sessions_that_were_read_make_room_oldest_first(tmp_path):
    """Nothing goes below the limit; above it, what was read to its end goes, and never what is still to be read."""
    sessions = Sessions(tmp_path, Clock(), limit_bytes=20_000)
    made = [create(sessions) for _ in range(3)]
    finish(made[1])
    finish(made[2])
    made.append(create(sessions))
    left = {path.stem for path in tmp_path.iterdir()}
    assert left == {session.path.stem for session in (made[0], made[2], made[3])}
    assert sessions.get(made[0].name) is made[0]
    with pytest.raises(RefusalError, match="expired"):
        sessions.get(made[1].name)


def test_sessions_expire_after_six_hours(tmp_path):
    clock = Clock()
    sessions = Sessions(tmp_path, clock)
    session = create(sessions)
    clock.now += dt.timedelta(hours=6)
    with pytest.raises(RefusalError):
        sessions.find_stream(next(iter(session.streams)))
    assert list(tmp_path.iterdir()) == []


def test_left_overs_of_a_killed_process_are_removed(tmp_path):
    create(Sessions(tmp_path, Clock()))
    Sessions(tmp_path, Clock())
    assert list(tmp_path.iterdir()) == []

"""The time that predictions are stamped with: given over REST, kept over a restart, taken by log and measurements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from localcloud.logs.metrics.measurements import Measurements
from localcloud.vertex.endpoints.meter import Meter
from localcloud.vertex.endpoints.request_log import RequestLog
from localcloud.vertex.resources.clock import PredictionClock
from localcloud.vertex.resources.store import Store
from localcloud.vertex.wire.errors import InvalidArgument

GIVEN = datetime(2013, 11, 20, 3, tzinfo=UTC)


def test_it_goes_by_the_wall_until_a_time_is_given_and_again_after(tmp_path: Path) -> None:
    """What was given is there after a restart."""
    clock = PredictionClock(tmp_path / "clock.json")
    assert datetime.now(UTC) - clock.now() < timedelta(minutes=1)
    clock.set_time({"now": "2013-11-19T22:00:00-05:00"})
    again = PredictionClock(tmp_path / "clock.json")
    assert clock.now() == again.now() == GIVEN
    assert again.describe() == {"now": "2013-11-20T03:00:00+00:00", "given": True}
    again.reset()
    assert not PredictionClock(tmp_path / "clock.json").describe()["given"]


@pytest.mark.parametrize(
    "document", [None, {}, {"now": "noon"}, {"now": "2013-11-20T03:00:00"}, {"time": "2013-11-20"}]
)
def test_what_is_no_instant_is_refused(tmp_path: Path, document: object) -> None:
    """With an example, and what held before still holds."""
    clock = PredictionClock(tmp_path / "clock.json")
    clock.set_time({"now": GIVEN.isoformat()})
    with pytest.raises(InvalidArgument, match=r"Expected an instant with a zone, as in .*2013-11-20T03:00:00Z"):
        clock.set_time(document)
    assert clock.now() == GIVEN


def test_log_and_measurements_take_it(tmp_path: Path) -> None:
    """Both say when it was asked then."""
    store, measured = Store(tmp_path / "store.db"), Measurements(tmp_path / "measurements.sqlite")
    log = RequestLog(store, SimpleNamespace(bigquery=lambda: 1 / 0), lambda: GIVEN)
    config = {"enabled": True, "sampling_rate": 1.0, "bigquery_destination": SimpleNamespace(output_uri="bq://p.d.t")}
    endpoint = SimpleNamespace(
        name="projects/p/locations/us-central1/endpoints/e",
        predict_request_response_logging_config=SimpleNamespace(**config),
    )
    log.record(endpoint, "1", [{"x": 1}], [0.5])
    with Meter(measured, lambda: GIVEN).measure(endpoint.name, "1", 1):
        pass
    ((_, _, row),) = store.list_documents("request log")
    assert row["logging_time"] == GIVEN.isoformat()
    nanoseconds = int(GIVEN.timestamp() * 1e9)
    assert [each.time_ns for each in measured.read("p", nanoseconds - 1, nanoseconds)] == [nanoseconds]
    log.close(0.1)
    measured.close()


def test_it_is_set_over_rest(rest) -> None:
    """As the document says; anything else of it is refused."""
    assert rest("POST", "/clock", {"now": "2013-11-20T03:00:00Z"}).json()["now"] == "2013-11-20T03:00:00+00:00"
    assert rest("POST", "/clock", {"now": 3}).status_code == 400
    assert rest("GET", "/clock").json()["given"]
    assert not rest("DELETE", "/clock").json()["given"]

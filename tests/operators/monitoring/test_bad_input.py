"""What bad input gets: a named state in the signals, in the ledger and on the Models page, and no retraining."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from google.api_core.exceptions import PermissionDenied

from retraining.core.data.sql import Query
from retraining.core.documents import KINDS, Ledger, ModelOverview, Signals
from retraining.core.monitoring.orders import ORDERS
from retraining.core.monitoring.signals import Answered
from retraining.core.naming import storage
from retraining.core.naming.vertex import deployed_model_id
from retraining.core.signal_kinds import SIGNAL_KINDS
from retraining.operators.monitoring import decision, measurement
from retraining.operators.monitoring.decision import DecideRetrainingOperator
from retraining.operators.monitoring.measurement import MeasureSignalsOperator
from retraining.operators.monitoring.watch import ByteLimit, load_spec
from retraining.operators.report.models_page import RefreshModelsPageOperator
from tests.core.monitoring.test_performance import answers, counts, evaluation
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.request_log import CHAMPION_ID, CHAMPION_KEY, UNSEEN, counted
from tests.support.scenes.monitor_run import added

MODEL = "flight_delays"
TABLE = "local-project.retraining.requests_flight_delays"
SOURCE = "local-project.flights.flights"
QUERY = "flight_delays/examples.sql"
AS_OF = datetime(2013, 11, 21, 5, tzinfo=UTC)
LOOKS = (AS_OF, AS_OF + timedelta(hours=1))
BEFORE_KEY = "20131101t030000z-0123456789ab"
NEW = {"carrier": {UNSEEN: 300}}


@pytest.fixture
def cloud() -> FakeCloud:
    """A champion whose carrier was always UA, on an endpoint that logs; all requests say so too."""
    fake = FakeCloud()
    fake.registry.add(BEFORE_KEY, "previous")
    champion = fake.registry.add(CHAMPION_KEY, "champion")
    statistics = json.loads((EXAMPLES / "statistics__two_features.json").read_text())
    carrier = {"kind": "categorical", "nulls": 0, "distinct": 1, "top": [{"value": "UA", "count": 100}]}
    for split in statistics["splits"].values():
        split["features"] = {"carrier": carrier}
    statistics["splits"]["train"]["rows"] = 100
    stored = KINDS["statistics"].parse(json.dumps(statistics | {"run_key": CHAMPION_KEY}))
    folder = f"gs://bucket/flight_delays/runs/{CHAMPION_KEY}"
    for document in (stored, evaluation().model_copy(update={"model": "flight_delays", "run_key": CHAMPION_KEY})):
        fake.artifacts.objects[f"{folder}/{document.kind_name()}.json"] = document.to_bytes()
    names = ("flight_id", "scheduled_departure", "arrived_late", "carrier")
    fake.warehouse.schemas |= {TABLE: [], QUERY: [{"name": name, "type": "STRING"} for name in names]}
    fake.warehouse.rows["requests"] = counted({"carrier": {"UA": 300}})
    fake.warehouse.reads[QUERY] = (SOURCE,)
    fake.warehouse.changed[SOURCE] = AS_OF - timedelta(hours=3)
    endpoint = fake.endpoints.ensure("flight_delays", TABLE, {})
    fake.endpoints._change(endpoint.name, deployed={CHAMPION_ID: champion.version_name}, traffic={CHAMPION_ID: 100})
    return fake


class Look(NamedTuple):
    """What a monitor run saw, its row, whether it ordered something, and what the Models page then reads."""

    signals: Signals
    ledger: Ledger
    ordered: bool
    page: ModelOverview


@pytest.fixture
def watch(cloud: FakeCloud, make_run: Any) -> Callable[..., Look]:
    """Runs the monitor as of a time."""

    def do(as_of: datetime = AS_OF) -> Look:
        run = make_run(
            dag_id="monitor__flight_delays",
            run_id=f"scheduled__{as_of.hour}",
            logical_date=as_of,
            params={"as_of": None, "retrain_as_of": f"{as_of:%Y-%m-%dT%H:%M:%SZ}", "window_hours": 24},
            outlet_events=OutletEventAccessors(),
        )
        run.execute(MeasureSignalsOperator(task_id="measure", model=MODEL, cloud=cloud.connect))
        decided = run.execute(DecideRetrainingOperator(task_id="decide", model=MODEL, cloud=cloud.connect))
        run.execute(RefreshModelsPageOperator(task_id="show", model=MODEL, cloud=cloud.connect))
        folder = run.xcoms["measure", "return_value"]["monitor_uri"]
        stored = cloud.artifacts.objects
        return Look(
            Signals.parse(stored[f"{folder}/signals.json"]),
            Ledger.parse(stored[f"{folder}/ledger.json"]),
            bool(added(run)) or decided["outcome"] in ORDERS,
            ModelOverview.parse(stored[storage.model_overview_uri("bucket", MODEL)]),
        )

    return do


def no_traffic(cloud: FakeCloud) -> None:
    """Nobody asks."""
    cloud.warehouse.rows["requests"] = []


def too_few(cloud: FakeCloud) -> None:
    """Hardly anybody asks, and for something new."""
    cloud.warehouse.rows["requests"] = counted({"carrier": {UNSEEN: 50}})


def feature_gone(cloud: FakeCloud) -> None:
    """No request has a carrier."""
    cloud.warehouse.rows["requests"] = counted({"carrier": {None: 300}})


def garbage(cloud: FakeCloud) -> None:
    """Most of the log cannot be read, and the rest is new."""
    cloud.warehouse.rows["requests"] = counted(NEW, garbage=400)


def giant_batch(cloud: FakeCloud) -> None:
    """One request brought 10,000 instances with a new carrier."""
    cloud.warehouse.rows["requests"] = counted({"carrier": {UNSEEN: 10_000}}, largest=10_000, is_large=True)


def clock_skew(cloud: FakeCloud) -> None:
    """All that is logged, is logged in the future."""
    cloud.warehouse.rows["requests"] = counted(NEW, asked_in="astray")


def log_stopped(cloud: FakeCloud) -> None:
    """Cloud Monitoring counts requests of which none is logged in the window."""
    no_traffic(cloud)
    cloud.serving_metrics.answers |= {at: {CHAMPION_ID: Answered(requests=5000, errors=0)} for at in LOOKS}


def no_labels(cloud: FakeCloud) -> None:
    """All keys wait for what turns out."""
    cloud.warehouse.rows["performance"] = counts(CHAMPION_ID, asked=500, keys=500, waiting=500)


def labels_of_another_version(cloud: FakeCloud) -> None:
    """The version before answered badly; of the champion's answers none has a label."""
    mine = counts(CHAMPION_ID, asked=50, keys=50, waiting=50)
    others = answers(3000, moved=0.4, by=deployed_model_id(BEFORE_KEY))
    cloud.warehouse.rows["performance"] = [*mine, *others]


def endpoint_deleted(cloud: FakeCloud) -> None:
    """By hand; its log is still there, and has something new."""
    cloud.warehouse.rows["requests"] = counted(NEW)
    cloud.endpoints.by_name.clear()


def champion_gone(cloud: FakeCloud) -> None:
    """No version has the alias."""
    cloud.warehouse.rows["requests"] = counted(NEW)
    cloud.registry.versions.clear()


def source_stopped(cloud: FakeCloud) -> None:
    """For four hundred days nothing came."""
    cloud.warehouse.changed[SOURCE] = AS_OF - timedelta(days=400)


def source_deleted(cloud: FakeCloud) -> None:
    """Or may not be looked at."""
    del cloud.warehouse.changed[SOURCE]


def too_expensive(cloud: FakeCloud) -> None:
    """The log's table is not partitioned, and has grown."""
    cloud.warehouse.rows["requests"] = counted(NEW)
    cloud.warehouse.bytes |= {"requests": 11 * 10**9, "performance": 11 * 10**9}


def no_metrics(cloud: FakeCloud) -> None:
    """The account may not read Cloud Monitoring."""

    def refuse(*_: Any) -> Any:
        raise PermissionDenied("monitoring.timeSeries.list")

    spoilt: Any = cloud.serving_metrics
    spoilt.answered = refuse


@pytest.mark.parametrize(
    ("spoil", "because", "kind", "words"),
    [
        (no_traffic, "no_traffic", "skew", "No request was logged in the last 24 hours."),
        (too_few, "too_few", "skew", "50 instances in the last 24 hours are too few to judge (at least 200)."),
        (feature_gone, "feature_gone", "skew", "carrier is missing in all 300 instances"),
        (garbage, "garbage", "skew", "400 of 700 instances in the last 24 hours cannot be read."),
        (giant_batch, "giant_batch", "skew", "One request brought 10000 of 10000 instances"),
        (clock_skew, "clock_skew", "traffic", "300 requests were logged in the future"),
        (
            log_stopped,
            "clock_skew",
            "traffic",
            "counted 5000 requests in 24 hours and none was logged",
        ),
        (no_labels, "no_labels", "performance", "500"),
        (labels_of_another_version, "labels_of_another_version", "performance", ""),
        (endpoint_deleted, "no_endpoint", "skew", "flight_delays has no endpoint"),
        (champion_gone, "no_champion", "skew", "No champion of flight_delays serves"),
        (source_stopped, "source_stopped", "source", f"{SOURCE} changed last 960"),
        (source_deleted, "source_stopped", "source", f"{SOURCE} is gone, or may not be looked at."),
        (too_expensive, "too_expensive", "skew", "BigQuery would read 11.000 GB, at most 10 may be read"),
        (no_metrics, "no_metrics", "errors", "Cloud Monitoring does not answer"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_it_is_a_named_state_and_no_retraining(
    cloud: FakeCloud,
    watch: Callable[..., Look],
    limited: None,
    spoil: Callable[[FakeCloud], None],
    because: str,
    kind: str,
    words: str,
) -> None:
    """Twice in a row, which is enough for what is no named state, and whatever the file wants retrainings for."""
    spoil(cloud)
    for at in LOOKS:
        look = watch(at)
        named = [item for item in look.signals.signals if item.reason == because and item.kind == kind]
        assert [item for item in named if words in item.message], [item.message for item in look.signals.signals]
        assert not [item for item in look.signals.signals if item.state == "exceeded" and item.reason is None]
        assert {look.ledger.named_states[f"{kind}:{item.subject}"] for item in named} == {because}
        assert (look.ledger.as_of, look.ledger.retrain_as_of, look.ordered) == (at, None, False)
        assert look.ledger.message
        newest, shown = look.page.watches[0], look.page.summary.watch
        assert (newest.as_of, newest.outcome) == (at, look.ledger.outcome)
        assert because in {item.reason for item in newest.signals if item.kind == kind}
        assert shown is not None
        assert because in shown.named


@pytest.mark.parametrize(("limited", "orders"), [((1, 1), [True, True]), ((2, 3), [False, True])], indirect=["limited"])
def test_the_same_requests_in_good_order_are_a_reason(
    cloud: FakeCloud, watch: Callable[..., Look], limited: None, orders: list[bool]
) -> None:
    """In as many windows as the file says; so what holds the others back is their named state alone."""
    cloud.warehouse.rows["requests"] = counted(NEW)
    assert [watch(at).ordered for at in LOOKS] == orders


@pytest.fixture
def limited(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file by which two windows of any signal retrain, at once again; sources must have changed in 36 hours."""
    exceeded, of = getattr(request, "param", (2, 3))
    load = load_spec
    limits = {
        "deployment.key_input": True,
        "monitoring.max_source_age_hours": 36,
        "monitoring.cooldown_hours": 0,
        "monitoring.policy.windows": {"exceeded": exceeded, "of": of},
        "monitoring.policy.actions": dict.fromkeys(SIGNAL_KINDS, "retrain"),
    }
    for module in (measurement, decision):
        monkeypatch.setattr(module, "load_spec", lambda model: load(model).with_overrides(limits))


def test_what_is_well_is_ok(cloud: FakeCloud, watch: Any, limited: None) -> None:
    """Every kind is there, and what could be judged is ok."""
    cloud.serving_metrics.answers[AS_OF] = {CHAMPION_ID: Answered(requests=300, errors=0, p99_ms=9.0)}
    signals, _, ordered, _ = watch()
    assert {item.kind for item in signals.signals} == {
        *("traffic", "errors", "latency", "source", "age", "skew", "drift", "prediction_drift"),
        *("performance", "estimate"),
    }
    assert not [item for item in signals.signals if item.state == "exceeded"]
    assert (signals.requests, signals.bytes_read, ordered) == (300, 14, False)
    assert {item.subject for item in signals.signals if item.kind == "errors"} == {"version 2"}
    assert next(item.value for item in signals.signals if item.kind == "source") == 3


def test_what_is_too_expensive_is_not_read(cloud: FakeCloud, watch: Any) -> None:
    """The bytes are asked for first, which costs nothing."""
    too_expensive(cloud)
    signals = watch().signals
    assert signals.bytes_read == 0
    assert {item.kind for item in signals.signals if item.reason == "too_expensive"} == {
        "skew",
        "drift",
        "prediction_drift",
        "performance",
        "estimate",
    }
    assert not [name for name in cloud.warehouse.asked if "__requests__" in name]


def test_bigquery_is_told_what_may_be_read(cloud: FakeCloud, watch: Any) -> None:
    """A table that grows after the dry run is refused by BigQuery; it bills no less than 10 MB."""
    cloud.warehouse.rows["requests"] = counted(NEW)
    watch()
    assert {where: cloud.warehouse.limits[where] for where in ("requests", "performance")} == {
        "requests": 10**10,
        "performance": 10**10,
    }
    free = ByteLimit(0.0)
    free.run(cloud.warehouse, Query(sql="SELECT 1"), "job", "free")
    assert cloud.warehouse.limits["free"] == 10**7
    assert free.reason_to_refuse(cloud.warehouse, {"one": Query(sql="SELECT 1"), "two": Query(sql="SELECT 2")})

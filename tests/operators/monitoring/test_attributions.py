"""The watcher of attributions: what the endpoint is asked, how often, and what comes of it whatever it does."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from google.api_core.exceptions import Forbidden

from retraining.core.data.sql import Query
from retraining.core.documents import (
    AttributionBaseline,
    AttributionRequest,
    RequestAttributions,
    Signal,
    Signals,
)
from retraining.core.monitoring.signals import Answered
from retraining.core.naming import storage
from retraining.core.naming.vertex import deployed_model_id
from retraining.hooks.predictions import Answer, Unanswered
from retraining.operators.monitoring import measurement
from retraining.operators.monitoring.attributions import DEADLINE_S, watch_attributions
from retraining.operators.monitoring.measurement import MeasureSignalsOperator, watch_requests
from retraining.operators.monitoring.watch import Seen
from retraining.operators.record.own_requests import own_requests
from tests.support.fakes.clock import START
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.request_log import counted
from tests.support.small_model import make_plan, make_snapshot, make_spec, make_statistics

AS_OF = START - timedelta(hours=30)
LATE = timedelta(hours=2)
"""So long after the run's time the endpoint is asked."""
SPEC = make_spec(monitoring={"attributions": {}})
PLAN = make_plan(SPEC)
TABLE = "local-project.retraining.requests_late"
ROWS = 100
FIRST_CALLS, LATER_CALLS = 6, 3
"""A hundred rows of two features are three hundred predictions, and the first time the test examples' as many."""


def score(carrier: float, distance: float) -> Callable[[Any], Any]:
    """A model in which the features matter so much."""

    def answer(instance: Any) -> Any:
        total = carrier * (instance["carrier"] == "AA") + distance * (instance["distance"] - 10) / 6
        return [1 / (1 + math.exp(-total))]

    return answer


def instances(seed: int, *, lost: bool = False) -> list[dict[str, Any]]:
    """Rows as requests have them; in those that lost it, every carrier is the most frequent one."""
    chance = random.Random(seed)
    return [
        {"carrier": "UA" if lost else chance.choice(["UA", "AA"]), "distance": chance.uniform(0, 20)}
        for _ in range(ROWS)
    ]


def logged(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the sample of requests."""
    return [{"request_id": at, "place": 0, "instance": json.dumps(one)} for at, one in enumerate(found)]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> FakeCloud:
    """A champion alone on an endpoint that logs, its run's table still there; requests are like its test examples."""
    monkeypatch.setattr(measurement, "load_spec", lambda _: SPEC)
    monkeypatch.setattr(measurement, "WATCHERS", (watch_attributions,))
    fake = FakeCloud()
    fake.registry.model = "late"
    champion = fake.registry.add(PLAN.run_key, "champion")
    folder, snapshot = storage.run_uri(fake.settings.bucket, "late", PLAN.run_key), make_snapshot(PLAN)
    for document in (PLAN, snapshot, make_statistics(PLAN)):
        fake.artifacts.objects[f"{folder}/{document.kind_name()}.json"] = document.to_bytes()
    fake.warehouse.schemas |= {TABLE: [], snapshot.table: []}
    fake.warehouse.rows |= {
        "attributions": logged(instances(1)),
        "attribution_test_rows": [{"example_key": f"k{at}", **one} for at, one in enumerate(instances(2))],
    }
    endpoint = fake.endpoints.ensure("late", TABLE, {})
    own = deployed_model_id(PLAN.run_key)
    fake.endpoints._change(endpoint.name, deployed={own: champion.version_name}, traffic={own: 100})
    fake.endpoints.model = score(carrier=4, distance=2)
    return fake


@pytest.fixture
def measure(cloud: FakeCloud, make_run: Any) -> Callable[..., Signal]:
    """One try of the task, so many hours later; gives the signal that is stored."""

    def do(hours: float = 0, asked: Any = None, late: timedelta = LATE) -> Signal:
        at = AS_OF + timedelta(hours=hours)
        cloud.clock.time = at + late
        run = make_run(
            dag_id="monitor__late",
            run_id=f"scheduled__{hours:g}",
            logical_date=at,
            params={"as_of": None, "retrain_as_of": None, "window_hours": 24},
        )
        task = MeasureSignalsOperator(task_id="measure", model="late", cloud=(asked or cloud).connect)
        folder = run.execute(task)["monitor_uri"]
        (found,) = Signals.parse(cloud.artifacts.objects[f"{folder}/signals.json"]).signals
        return found

    return do


def stored(cloud: FakeCloud, kind: Any) -> list[Any]:
    """All documents of a kind."""
    end = f"/{kind.kind_name()}.json"
    return [kind.parse(data) for uri, data in sorted(cloud.artifacts.objects.items()) if uri.endswith(end)]


def test_a_model_of_which_nothing_changed_is_quiet(cloud: FakeCloud, measure: Any) -> None:
    """The first time the test examples are asked too; what is asked stands in the documents, by ids alone."""
    found = measure()
    assert (found.kind, found.state, found.examples) == ("attributions", "ok", ROWS)
    assert cloud.endpoints.asked == FIRST_CALLS
    (request,), (baseline,) = stored(cloud, AttributionRequest), stored(cloud, AttributionBaseline)
    (answered,) = stored(cloud, RequestAttributions)
    assert request.predictions == 100 * FIRST_CALLS
    assert request.baselines == {"carrier": "UA", "distance": 10.0}
    assert [each.request_id for each in request.requests[:2]] == ["0", "1"]
    assert request.test_rows[:2] == ("k0", "k1")
    assert (len(baseline.rows), len(answered.rows), answered.calls) == (ROWS, ROWS, FIRST_CALLS)


def test_a_feature_that_lost_its_meaning_alarms(cloud: FakeCloud, measure: Any) -> None:
    cloud.warehouse.rows["attributions"] = logged(instances(1, lost=True))
    found = measure()
    assert (found.state, found.reason) == ("exceeded", None)
    assert "carrier" in found.message


def test_a_loss_that_the_model_does_not_mind_is_quiet(cloud: FakeCloud, measure: Any) -> None:
    cloud.endpoints.model = score(carrier=0.01, distance=2)
    cloud.warehouse.rows["attributions"] = logged(instances(1, lost=True))
    assert measure().state == "ok"


def test_between_two_times_the_last_one_is_repeated(cloud: FakeCloud, measure: Any) -> None:
    """And a day later the requests are asked again, the test examples not."""
    first = measure()
    for hours in (1, 23):
        assert measure(hours) == first
    assert cloud.endpoints.asked == FIRST_CALLS
    cloud.warehouse.rows["attributions"] = logged(instances(3, lost=True))
    assert measure(24).state == "exceeded"
    assert cloud.endpoints.asked == FIRST_CALLS + LATER_CALLS
    assert len(stored(cloud, AttributionBaseline)) == 1


def test_another_champion_is_asked_at_once(cloud: FakeCloud, measure: Any) -> None:
    measure()
    plan = make_plan(SPEC, overrides={"training.epochs": 9})
    assert plan.run_key != PLAN.run_key
    champion = cloud.registry.add(plan.run_key, "champion")
    cloud.registry.merge_aliases(champion, ["champion"])
    folder = storage.run_uri(cloud.settings.bucket, "late", plan.run_key)
    for document in (plan, make_snapshot(plan), make_statistics(plan)):
        cloud.artifacts.objects[f"{folder}/{document.kind_name()}.json"] = document.to_bytes()
    cloud.warehouse.schemas[make_snapshot(plan).table] = []
    own = deployed_model_id(plan.run_key)
    cloud.endpoints._change(cloud.endpoints.endpoint.name, deployed={own: champion.version_name}, traffic={own: 100})
    assert measure(1).state == "ok"
    assert cloud.endpoints.asked == 2 * FIRST_CALLS


def test_what_the_monitor_asked_is_left_out_of_the_request_log(cloud: FakeCloud, measure: Any) -> None:
    """Of the next monitor run's queries, by who answered, how many instances and when; written down before."""
    measure()
    (request,) = stored(cloud, AttributionRequest)
    bucket = cloud.settings.bucket
    (own,) = own_requests(cloud.artifacts, bucket, "late", AS_OF, START)
    assert own == request.asked
    assert (own.instances, own.start) == (100, AS_OF + LATE)
    assert own.end >= own.start + timedelta(seconds=DEADLINE_S)
    assert not own_requests(cloud.artifacts, bucket, "late", own.end, own.end + timedelta(days=9))

    asked: list[Query] = []
    cloud.warehouse.effects["attributions"] = lambda query: asked.append(query) or logged(instances(1))
    measure(24)
    values = {each.name: each.value for each in asked[0].parameters}
    assert (values["smoke_0_model"], values["smoke_0_instances"]) == (deployed_model_id(PLAN.run_key), 100)


def test_skew_does_not_count_what_the_monitor_asked(
    cloud: FakeCloud, measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure()
    asked: list[Query] = []
    cloud.warehouse.effects["requests"] = lambda query: asked.append(query) or counted({"carrier": {"UA": 300}})
    monkeypatch.setattr(measurement, "WATCHERS", (lambda watch: Seen(signals=watch_requests(watch).signals[:1]),))
    measure(3)
    values = {each.name: each.value for each in asked[0].parameters}
    assert values["smoke_0_instances"] == 100


def test_requests_of_the_monitor_alone_are_no_lost_log(
    cloud: FakeCloud, measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cloud Monitoring counts them, and the log is read without them: its times are right all the same."""
    spec = make_spec(monitoring={"attributions": {}, "min_requests": FIRST_CALLS})
    monkeypatch.setattr(measurement, "load_spec", lambda _: spec)
    measure()
    own = deployed_model_id(PLAN.run_key)
    log: list[Signal] = []

    def look(watch: Any) -> Seen:
        log.extend(each for each in watch_requests(watch).signals if each.measure == "instances")
        return Seen(signals=tuple(log[-1:]))

    monkeypatch.setattr(measurement, "WATCHERS", (look,))
    for requests, reason in ((FIRST_CALLS, "no_traffic"), (2 * FIRST_CALLS, "clock_skew")):
        counts = {own: Answered(requests=requests, errors=0)}
        monkeypatch.setattr(cloud.serving_metrics, "answered", lambda *_, counts=counts: counts)
        measure(3 + requests / 100)
        assert log[-1].reason == reason


def failing(error: Exception) -> Callable[..., Any]:
    def predict_once(*_: Any) -> Any:
        raise error

    return predict_once


def slow(cloud: FakeCloud) -> Callable[..., Any]:
    """An endpoint whose every answer takes a minute."""
    answer = cloud.endpoints.predict_once

    def predict_once(endpoint: Any, asked: Any, timeout_s: float) -> Any:
        cloud.clock.sleep(min(60.0, timeout_s))
        return answer(endpoint, asked, timeout_s)

    return predict_once


def answering(predictions: Any, model: str = deployed_model_id(PLAN.run_key)) -> Callable[..., Any]:
    return lambda *_: Answer(predictions=predictions, deployed_model_id=model)


@pytest.mark.parametrize(
    ("predict_once", "reason", "words"),
    [
        (failing(Forbidden("no")), "endpoint_failed", "Forbidden"),
        (failing(RuntimeError("?")), "endpoint_failed", "RuntimeError"),
        (lambda *_: Unanswered(kind="ServiceUnavailable"), "endpoint_failed", "ServiceUnavailable"),
        (answering([[0.1]] * 99), "endpoint_failed", "99 answers to 100 instances"),
        (answering([["late"]] * 100), "endpoint_failed", "other things than numbers"),
        (answering([[math.nan]] * 100), "endpoint_failed", "other things than numbers"),
        (answering([[0.1]] * 100, "77"), "not_asked", "answers by 77"),
    ],
    ids=["forbidden", "error", "unanswered", "short", "texts", "nan", "another version"],
)
def test_whatever_the_endpoint_does_the_monitor_goes_on(
    cloud: FakeCloud, measure: Any, monkeypatch: pytest.MonkeyPatch, predict_once: Any, reason: str, words: str
) -> None:
    """It is not judged by name, and not asked again before its time."""
    monkeypatch.setattr(cloud.endpoints, "predict_once", predict_once)
    found = measure()
    assert (found.state, found.reason) == ("not_judged", reason)
    assert words in found.message
    monkeypatch.delattr(cloud.endpoints, "predict_once")
    assert measure(1) == found
    assert cloud.endpoints.asked == 0
    assert measure(24).state == "ok"


def test_a_slow_endpoint_is_asked_until_the_deadline(
    cloud: FakeCloud, measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud.endpoints, "predict_once", slow(cloud))
    found = measure()
    assert (found.state, found.reason) == ("not_judged", "endpoint_failed")
    assert cloud.endpoints.asked == 2
    assert "2 of 6 requests in 120 s" in found.message


def others_serve(cloud: FakeCloud) -> None:
    own = deployed_model_id(PLAN.run_key)
    cloud.endpoints._change(cloud.endpoints.endpoint.name, traffic={own: 90, "8": 10})


def few(cloud: FakeCloud) -> None:
    cloud.warehouse.rows["attributions"] = logged(instances(1))[:29]


def garbage(cloud: FakeCloud) -> None:
    cloud.warehouse.rows["attributions"] = [{"request_id": 1, "place": at, "instance": "?"} for at in range(40)]


def few_test_rows(cloud: FakeCloud) -> None:
    cloud.warehouse.rows["attribution_test_rows"] = cloud.warehouse.rows["attribution_test_rows"][:29]


def expired(cloud: FakeCloud) -> None:
    cloud.warehouse.schemas.pop(make_snapshot(PLAN).table)


def large(cloud: FakeCloud) -> None:
    cloud.warehouse.bytes["attributions"] = 10**11


def no_log(cloud: FakeCloud) -> None:
    cloud.warehouse.schemas.pop(TABLE)


def no_endpoint(cloud: FakeCloud) -> None:
    cloud.endpoints.by_name.clear()


def nobody(cloud: FakeCloud) -> None:
    cloud.registry.versions.clear()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (others_serve, "not_asked"),
        (few, "too_few"),
        (garbage, "garbage"),
        (few_test_rows, "too_few"),
        (expired, "no_reference"),
        (large, "too_expensive"),
        (no_log, "no_traffic"),
        (no_endpoint, "no_endpoint"),
        (nobody, "no_champion"),
    ],
)
def test_where_there_is_nothing_to_ask_nothing_is_asked(
    cloud: FakeCloud, measure: Any, spoil: Callable[[FakeCloud], None], reason: str
) -> None:
    """Nor is anything written, so that the next monitor run may ask."""
    spoil(cloud)
    found = measure()
    assert (found.state, found.reason) == ("not_judged", reason)
    assert cloud.endpoints.asked == 0
    assert not stored(cloud, AttributionRequest)


def test_a_run_as_of_long_ago_asks_nothing(cloud: FakeCloud, measure: Any) -> None:
    assert measure(late=timedelta(hours=25)).reason == "not_asked"
    assert cloud.endpoints.asked == 0


def test_predictions_are_never_more_than_the_file_allows(
    cloud: FakeCloud, measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_spec(monitoring={"attributions": {"requests": 5000, "max_predictions": 1000}})
    monkeypatch.setattr(measurement, "load_spec", lambda _: spec)
    asked: list[Query] = []
    cloud.warehouse.effects["attributions"] = lambda query: asked.append(query) or logged(instances(1))
    measure()
    assert {each.name: each.value for each in asked[0].parameters}["most"] == 166


def test_without_the_key_nothing_is_asked(cloud: FakeCloud, measure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "load_spec", lambda _: make_spec())
    with pytest.raises(ValueError, match="not enough values"):
        measure()
    assert cloud.endpoints.asked == 0


def calls_of_a_run(cloud: FakeCloud, measure: Any) -> int:
    """How many calls of the cloud a run makes that asks."""
    counter = DyingCloud(cloud)
    measure(asked=counter)
    return len(counter.calls)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_call_asks_nothing_twice(cloud: FakeCloud, measure: Any, after: bool) -> None:
    """The second try ends, by what was answered or by name; the endpoint gets no more than one was to send."""
    calls = calls_of_a_run(cloud, measure)
    begun = {uri: data for uri, data in cloud.artifacts.objects.items() if "/monitor/" in uri}
    for at in range(1, calls + 1):
        for uri in [*begun, *(uri for uri in cloud.artifacts.objects if uri.endswith("attribution_baseline.json"))]:
            cloud.artifacts.objects.pop(uri, None)
        cloud.endpoints.asked = 0
        with pytest.raises(Death):
            measure(asked=DyingCloud(cloud, at, after=after))
        found = measure()
        assert cloud.endpoints.asked <= FIRST_CALLS, at
        assert found.state == "ok" or found.reason == "not_asked", at


def test_a_second_worker_asks_nothing_beside_the_first(cloud: FakeCloud, measure: Any) -> None:
    """At whatever call of the first it comes: both end with the same signals, and the endpoint is asked once."""
    calls = calls_of_a_run(cloud, measure)
    begun = [uri for uri in cloud.artifacts.objects if "/monitor/" in uri or uri.endswith("attribution_baseline.json")]
    for at in range(1, calls + 1):
        for uri in begun:
            cloud.artifacts.objects.pop(uri, None)
        cloud.endpoints.asked = 0
        found: list[Signal] = []
        last = measure(asked=DyingCloud(cloud, at, instead=lambda found=found: found.append(measure())))
        assert cloud.endpoints.asked == FIRST_CALLS, at
        assert found == [last], at

"""Requests of the last day, sent to a version on the endpoint for tries: what is wrong is found before a user is."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from google.api_core.exceptions import InvalidArgument

from retraining.core.documents import Served, ShadowTraffic, Signature
from retraining.core.promotion import shadow
from retraining.core.promotion.latencies import Measured
from retraining.core.spec.deployment import Canary, Shadow
from tests.operators.deployment.test_staging import STAGING, require_left
from tests.support.fakes.clock import START
from tests.support.scenes.dying_run import DyingRun, deaths, promoted_run, require_as_before, require_served

LOG = "local-project.retraining.requests_flight_delays"
NUMBER = 150
LOGGED, SECRET = 0.123, "passenger-4711"
SIGNATURE = Signature(inputs={"carrier": "string", "distance": "float32", "wind_speed": "float32"}, outputs={})


def row(at: Any, asked: Any, number: int, **instance: Any) -> dict[str, Any]:
    """A request as the service logs it."""
    whole = {"carrier": SECRET, "distance": number, "wind_speed": 1.5} | instance
    payload = json.dumps({name: value for name, value in whole.items() if value is not None})
    return {
        "logging_time": at,
        "deployed_model_id": asked,
        "request_payload": [payload],
        "response_payload": [str(LOGGED)],
    }


@pytest.fixture
def night(make_run: Any) -> Callable[..., DyingRun]:
    """Makes a promoted run after a champion, whose log has requests that differ, a second apart."""

    def make(values: int = NUMBER, number: int = NUMBER, **section: Any) -> DyingRun:
        it = promoted_run(make_run, staging=True, shadow=section)
        scene = it.scene
        scene.cloud.warehouse.schemas[LOG] = [{"name": "logging_time"}]
        start = scene.cloud.clock.now() - timedelta(hours=1)
        (old,) = scene.endpoint.deployed
        scene.cloud.warehouse.rows["shadow"] = [
            row(start + timedelta(seconds=index), old, index % values) for index in range(number)
        ]
        for deployed_id in (old, scene.mine):
            scene.cloud.serving_metrics.by_id[deployed_id] = Served(requests=200, errors=0, latency_ms=10.0)
        return it

    return make


def counting(
    it: DyingRun, answer: float = LOGGED, *, fails: bool = False, takes_s: float = 0.0
) -> list[tuple[Any, float]]:
    """The logged requests that the endpoint for tries was sent, with their times."""
    endpoints: Any = it.scene.cloud.endpoints
    sent: list[tuple[Any, float]] = []
    real = endpoints.predict_once

    def predict_once(endpoint: Any, instances: Any, timeout_s: float) -> Any:
        assert endpoint.name == STAGING
        sent.append((it.scene.cloud.clock.now(), instances[0]["distance"]))
        it.scene.cloud.clock.sleep(min(takes_s, timeout_s))
        kept, endpoints.predictions, asked = endpoints.predictions, [answer], endpoints.predict
        if fails:
            endpoints.predict = refuse
        try:
            return real(endpoint, instances, timeout_s)
        finally:
            endpoints.predictions, endpoints.predict = kept, asked

    def refuse(_endpoint: Any, instances: Any) -> Any:
        raise InvalidArgument(f"could not parse {json.dumps(list(instances))}")

    endpoints.predict_once = predict_once
    return sent


def replay(it: DyingRun) -> dict[str, Any]:
    """What stands of it in the run's document."""
    found: dict[str, Any] = it.scene.read("deployment")["staging"]["shadow"]
    return found


def outcomes(it: DyingRun) -> dict[str, Any]:
    """By gate."""
    return {gate["name"]: gate["passed"] for gate in replay(it)["gates"]}


def test_the_log_is_sent_in_order_at_its_pace_and_once(night) -> None:
    """To the endpoint for tries alone; then the version serves."""
    it = night()
    sent = counting(it)
    assert it.deploy() == "deployed"
    require_served("", it, "3", "2")
    require_left("", it)
    assert [distance for _, distance in sent] == list(range(NUMBER))
    lasted = [later[0] - earlier[0] for earlier, later in itertools.pairwise(sent)]
    assert min(lasted) >= timedelta(seconds=1)
    found = replay(it)
    assert (found["sent"], found["answered"], found["errors"], found["pace"]) == (NUMBER, NUMBER, 0, 1.0)
    assert outcomes(it)["requests"] is True
    assert outcomes(it)["answers"] is True
    assert False not in outcomes(it).values()
    again = shadow.judge_shadow(Canary(), ShadowTraffic.model_validate_json(json.dumps(found)))
    assert tuple(found["gates"]) == tuple(gate.model_dump(mode="json", by_alias=True) for gate in again)


def test_a_version_that_answers_otherwise_never_meets_a_user(night) -> None:
    """Its smoke requests were right, and each request is answered; what serves was not touched."""
    it = night()
    counting(it, answer=0.999)
    assert it.deploy() == "refused"
    require_as_before("", it, first=False)
    require_left("", it)
    assert outcomes(it)["answers"] is False
    assert it.scene.read("deployment")["staging"]["passed"] is False


@pytest.mark.parametrize("is_measured", [True, False], ids=["measured", "nothing measured"])
def test_a_version_that_breaks_at_real_requests_never_meets_a_user(night, caplog, is_measured: bool) -> None:
    """And what services repeat of a request in their messages is written down nowhere.

    That the version before answered them stands in the log, whatever Cloud Monitoring has of it.
    """
    caplog.set_level(logging.DEBUG)
    it = night()
    if not is_measured:
        it.scene.cloud.serving_metrics.by_id.clear()
    counting(it, fails=True)
    assert it.deploy() == "refused"
    require_as_before("", it, first=False)
    require_left("", it)
    assert (
        "requests of the last day, sent to it without a user, errors: 100.00%" in it.scene.read("deployment")["words"]
    )
    assert outcomes(it)["errors"] is False
    assert f"{NUMBER} of {NUMBER} requests sent" in caplog.text
    assert "InvalidArgument" in caplog.text
    assert SECRET not in caplog.text
    assert not [uri for uri, data in it.scene.cloud.artifacts.objects.items() if SECRET.encode() in data]


@pytest.mark.parametrize(
    ("values", "number", "words"),
    [
        (1, NUMBER, "one request alone, 150 times"),
        (1, 1, "one request alone, 1 times"),
        (5, 0, "no answered request of the version before"),
    ],
)
def test_a_log_of_one_value_or_none_is_named_and_sends_nothing(night, values: int, number: int, words: str) -> None:
    """The ramp comes after it."""
    it = night(values, number)
    sent = counting(it)
    assert it.deploy() == "deployed"
    assert sent == []
    (gate,) = replay(it)["gates"]
    assert (gate["name"], gate["passed"]) == ("requests", None)
    assert words in gate["words"]


def test_without_a_log_or_a_version_before_a_deployment_is_possible_and_says_what_is_missing(night, make_run) -> None:
    it = night()
    del it.scene.cloud.warehouse.schemas[LOG]
    assert it.deploy() == "deployed"
    assert f"there is no request log ({LOG})" in replay(it)["gates"][0]["words"]
    assert not [job_id for job_id in it.scene.cloud.warehouse.asked if "answers" in job_id]
    first = promoted_run(make_run, first=True, staging=True, shadow={})
    assert first.deploy() == "deployed"
    assert shadow.NOBODY_SERVES in replay(first)["gates"][0]["words"]


def test_a_log_that_is_deleted_meanwhile_is_sent_to_its_end(night) -> None:
    """It was read by a job, whose result stays."""
    it = night()
    schemas, asked, read = it.scene.cloud.warehouse.schemas, list[Any](), it.scene.cloud.warehouse.run_query
    sent = counting(it)

    def run_query(*args: Any, **kwargs: Any) -> Any:
        asked.append(args[1])
        schemas.pop(LOG, None)
        return read(*args, **kwargs)

    it.scene.cloud.warehouse.run_query = run_query
    assert it.deploy() == "deployed"
    assert len(sent) == replay(it)["answered"] == NUMBER
    assert len({job_id for job_id in asked if "answers" in job_id}) == 1


@pytest.mark.parametrize("later", [0, 1, 2], ids=["looked", "noted", "judged"])
def test_a_death_with_no_log_asks_for_no_rows_of_it_later(night, later: int) -> None:
    """That there is none stands in the rollout."""

    def make() -> DyingRun:
        it = night()
        del it.scene.cloud.warehouse.schemas[LOG]
        return it

    whole = make()
    assert whole.deploy() == "deployed"
    looked = whole.calls.index("table_schema") + 1
    it = make()
    assert it.deploy(looked + later, after=True) == "deployed"
    assert it.died
    assert "there is no request log" in replay(it)["gates"][0]["words"]
    assert not [job_id for job_id in it.scene.cloud.warehouse.asked if "answers" in job_id]


def test_requests_of_a_feature_that_went_are_named_and_do_not_stop_the_version(night) -> None:
    """A person accepted the new signature: whoever still asks by the old one is no proof against the version."""
    it = night()
    rows = it.scene.cloud.warehouse.rows["shadow"]
    payloads = [{"distance": 1.0, "carrier": "AA"}, {"carrier": 7}, {"gone": 1.0}]
    for item, changes in zip(rows, payloads, strict=False):
        whole = json.loads(item["request_payload"][0]) | changes
        item["request_payload"] = [json.dumps(whole)]
    del rows[3:]
    sent = counting(it)
    assert it.deploy() == "deployed"
    assert sent == []
    found = replay(it)
    assert (found["requests"], found["unread"], found["inputs"]) == (1, 2, ["carrier"])


def test_an_answer_that_takes_long_ends_no_later_than_is_written_down(night) -> None:
    """No poke is longer than its bound and one request; what was not sent is named, and the rest is judged."""
    it = night(max_minutes=1)
    sent = counting(it, takes_s=60.0)
    assert it.deploy() == "deployed"
    found = replay(it)
    assert 0 < found["sent"] == len(sent) < NUMBER
    assert sent[-1][0] - sent[0][0] < shadow.LONGEST * timedelta(minutes=1) + shadow.LONGEST_CHUNK
    assert "for the rest there was no time" in found["gates"][0]["words"]


@pytest.mark.long
def test_a_death_anywhere_sends_no_request_twice_and_reads_the_log_once(night) -> None:
    """What the dead process had sent is lost, and named."""
    seen: list[list[Any]] = []

    def make() -> DyingRun:
        it = night(number=30, max_minutes=1)
        seen.append(counting(it))
        return it

    for where, it in deaths(make, lambda it, at, after: it.deploy(at, after=after), ("start_deploy", 2)):
        require_served(where, it, "3", "2")
        require_left(where, it)
        sent = [distance for _, distance in seen[-1]]
        assert len(sent) == len(set(sent)), where
        assert replay(it)["sent"] == 30, where
        assert len({job_id for job_id in it.scene.cloud.warehouse.asked if "answers" in job_id}) == 1, where


def test_gaps_are_shortened_where_the_log_is_longer_than_its_minutes() -> None:
    """All alike, so that bursts stay bursts."""
    requests = tuple(
        shadow.LoggedRequest(at=START + timedelta(minutes=minutes), instances=({"i": minutes},), answers=("1",))
        for minutes in (0, 1, 60)
    )
    until = START + timedelta(hours=2)
    done = shadow.begun(
        Shadow(max_minutes=6), ShadowTraffic(until=until, last_sent=until), shadow.Log(requests=requests)
    )
    assert done.pace == 10.0
    chunk = shadow.next_chunk(done, requests)
    assert [after for after, _ in chunk] == [timedelta(), timedelta(seconds=6)]
    rest = shadow.next_chunk(done.model_copy(update={"sent": 2}), requests)
    assert [after for after, _ in rest] == [timedelta()]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (["[1, 2]"], ["0.1"]),
        (["not JSON"], ["0.1"]),
        ([json.dumps({"carrier": "UA"})], ['{"error": "no such input"}']),
        ([json.dumps({"carrier": "UA"})], []),
    ],
    ids=["no object", "no JSON", "refused", "not answered"],
)
def test_what_is_no_instance_or_had_no_answer_is_not_sent(asked: list[str], answered: list[str]) -> None:
    """What the version before refused says nothing about another."""
    rows = [row(START, "1", 1), {**row(START, "1", 2), "request_payload": asked, "response_payload": answered}]
    found = shadow.read_log(rows, (), SIGNATURE)
    assert [request.instances[0]["distance"] for request in found.requests] == [1]
    assert found.unread == 0


@pytest.mark.parametrize(
    ("instance", "inputs"),
    [
        ({"wind_speed": "NaN"}, None),
        ({"wind_speed": 3}, None),
        ({"carrier": {"b64": "VUE="}}, None),
        ({"wind_speed": None}, ("wind_speed",)),
        ({"wind_speed": "3"}, ("wind_speed",)),
        ({"carrier": 3}, ("carrier",)),
        ({"more": 3}, ()),
    ],
    ids=str,
)
def test_a_request_is_read_by_the_names_and_types_of_the_version(instance: dict[str, Any], inputs: Any) -> None:
    """Another container may take what it likes."""
    rows = [row(START, "1", 1, **instance)]
    found = shadow.read_log(rows, (), SIGNATURE)
    assert (len(found.requests), found.unread) == ((1, 0) if inputs is None else (0, 1))
    assert found.inputs == (inputs or ())
    assert len(shadow.read_log(rows, (), None).requests) == 1


@pytest.mark.parametrize(
    ("sent", "answered", "passed", "words"),
    [
        (5, 5, True, "5 of 5 logged requests sent again, 5 answered"),
        (5, 0, None, "not judged: 5 of 5 logged requests sent again, 0 answered; 5 were lost with the process"),
        (0, 0, None, "not judged: 0 of 5 logged requests sent again, 0 answered; for the rest there was no time"),
    ],
)
def test_requests_that_were_lost_prove_nothing(sent: int, answered: int, passed: bool | None, words: str) -> None:
    """Nor do those that there was no time for."""
    done = ShadowTraffic(until=START, last_sent=START, requests=5, values=5, sent=sent, answered=answered)
    done = shadow.looked_at(Canary(), done, START + timedelta(minutes=1), Measured(), Measured())
    found = {gate.name: gate for gate in shadow.judge_shadow(Canary(), done)}
    assert found["requests"].passed is passed
    assert found["requests"].message.startswith(words)
    assert {found[name].passed for name in ("errors", "latency", "answers")} == {None}


@pytest.mark.parametrize(
    "values", [{"sent": 9}, {"sent": 3, "answered": 4}, {"pace": 0.5}, {"answers": (float("nan"),)}]
)
def test_a_replay_that_somebody_wrote_by_hand_is_refused(values: dict[str, Any]) -> None:
    """Its numbers cannot be."""
    with pytest.raises(ValueError, match=r"sent|pace|finite"):
        ShadowTraffic(**({"until": START, "last_sent": START, "requests": 5, "values": 5} | values))

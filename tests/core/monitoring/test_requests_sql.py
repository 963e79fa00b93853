"""The query of the request log, run by the local BigQuery through Google's client."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retraining.core import documents as d
from retraining.core.data.sql import Query
from retraining.core.monitoring.distributions import UNSEEN, AnswerBaseline
from retraining.core.monitoring.request_log import LogWindows, RequestLog, read_requests, render_requests_sql
from retraining.core.spec.model import ModelSpec
from tests.support.request_log import CHAMPION_ID, SCHEMA, logged
from tests.support.small_model import AS_OF, make_plan, make_spec, make_statistics, spec_values

DATASET = "monitoring_sql"
SPEC = make_spec(monitoring={"min_requests": 20})
STATISTICS = make_statistics(make_plan(SPEC))
WINDOWS = LogWindows.before(SPEC, AS_OF)
SCORES = AnswerBaseline(name="late", output="score", edges=(0.0, 0.5))
HOUR_AGO, WEEK_AGO = AS_OF - timedelta(hours=1), AS_OF - timedelta(hours=1, days=7)
ONE = {"carrier": "UA", "distance": 7.5}


@pytest.fixture(scope="module")
def client(local_cloud: Any) -> Any:
    """The local BigQuery with a dataset."""
    from google.cloud import bigquery

    made = bigquery.Client()
    made.create_dataset(DATASET, exists_ok=True)
    return made


@pytest.fixture
def count(client: Any, unique: str) -> Callable[..., RequestLog]:
    """Logs requests, and counts them."""
    from google.cloud import bigquery

    table = f"{client.project}.{DATASET}.{unique}"

    def do(
        *rows: dict[str, Any], answers: tuple[AnswerBaseline, ...] = (SCORES,), spec: ModelSpec = SPEC, **given: Any
    ) -> RequestLog:
        fields = [bigquery.SchemaField(*item.split(":")) for item in SCHEMA.split()]
        definition = bigquery.Table(table, schema=fields)
        definition.time_partitioning = bigquery.TimePartitioning(field="logging_time")
        client.delete_table(table, not_found_ok=True)
        client.create_table(definition)
        data = io.BytesIO("\n".join(json.dumps(row) for row in rows).encode())
        config = bigquery.LoadJobConfig(schema=fields, source_format="NEWLINE_DELIMITED_JSON")
        client.load_table_from_file(data, table, job_config=config).result()
        query: Query = render_requests_sql(spec, table, STATISTICS, WINDOWS, answers=answers, **given)
        asked = bigquery.QueryJobConfig.from_api_repr({"query": query.to_api()})
        found = [dict(row) for row in client.query(query.sql, job_config=asked).result()]
        return read_requests(found, [item.name for item in answers])

    return do


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A table's name for this test."""
    return "".join(letter if letter.isalnum() else "_" for letter in request.node.name)


def test_requests_are_counted_in_their_window_per_feature(count: Any) -> None:
    """The first moment of a window is in it, its end is not; a week earlier is the other one."""
    missing = [{"carrier": "", "distance": "NaN"}, {"distance": -1e38}]
    new = {"carrier": "ZZ", "distance": 1000.0}
    found = count(
        logged(HOUR_AGO, [ONE, new, *missing]),
        logged(WINDOWS.start, [new]),
        logged(WINDOWS.end, [ONE]),
        logged(WINDOWS.start - timedelta(seconds=1), [ONE]),
        logged(WEEK_AGO, [ONE, ONE]),
        logged(WINDOWS.earlier_start - timedelta(hours=1), [ONE]),
    )
    assert found.now.values["carrier"] == {"UA": 1, None: 2, UNSEEN: 2}
    assert found.now.values["distance"] == {"8": 1, "21": 2, None: 2}
    assert (found.now.all.instances, found.now.all.requests, found.now.judged) == (5, 2, 5)
    assert found.earlier.values["carrier"] == {"UA": 2}
    assert found.future == 0


def test_a_thousand_values_that_training_had_not_are_one_bucket(count: Any) -> None:
    """So that nobody's inventions fill a worker's memory."""
    invented = [{"carrier": f"value {number}", "distance": 1.0} for number in range(1000)]
    found = count(*[logged(HOUR_AGO, invented[start : start + 40]) for start in range(0, 1000, 40)])
    assert found.now.values["carrier"] == {UNSEEN: 1000}


def test_garbage_is_counted_and_left_out(count: Any) -> None:
    """Broken JSON, no JSON, no object, and nothing; the rest is judged."""
    found = count(logged(HOUR_AGO, ['{"carrier":', "oops", "[1,2]", "null", "", ONE], ["oops"] * 5 + ["0.75"]))
    assert (found.now.all.garbage, found.now.all.instances, found.now.judged) == (5, 6, 1)
    assert found.now.values["carrier"] == {"UA": 1}
    assert found.now.answers["late", CHAMPION_ID] == {"2": 1}


def test_one_giant_batch_is_left_out_of_what_is_judged(count: Any) -> None:
    """Its instances stay in the traffic."""
    found = count(logged(HOUR_AGO, [{"carrier": "ZZ", "distance": 1.0}] * 60), *[logged(HOUR_AGO, [ONE])] * 25)
    assert (found.now.giant, found.now.all.instances, found.now.judged) == (60, 85, 25)
    assert found.now.values["carrier"] == {"UA": 25}


def test_smoke_tests_are_not_counted(count: Any) -> None:
    """Neither is another model's answer, another number of instances, or another time taken for one."""
    window = {"instances": 5, "start": HOUR_AGO - timedelta(seconds=10), "end": HOUR_AGO + timedelta(seconds=10)}
    asked = [d.SmokeRequest(deployed_model_id=model, **window) for model in (CHAMPION_ID, "3")]
    long_ago = window | {"start": AS_OF - timedelta(days=99), "end": AS_OF - timedelta(days=98)}
    found = count(
        logged(HOUR_AGO, [ONE] * 5),
        logged(HOUR_AGO, [ONE] * 4),
        logged(HOUR_AGO - timedelta(hours=1), [ONE] * 5),
        smoke_requests=[*asked, d.SmokeRequest(deployed_model_id=CHAMPION_ID, **long_ago)],
    )
    assert found.now.all.instances == 9


def test_a_request_from_the_future_is_named(count: Any) -> None:
    """By BigQuery's own clock."""
    found = count(logged(datetime.now(tz=UTC) + timedelta(days=2), [ONE]), logged(HOUR_AGO, [ONE]))
    assert (found.future, found.now.all.instances) == (1, 1)


def test_each_deployed_model_has_answers_and_traffic_of_its_own(count: Any) -> None:
    """An answer may be a number or an object."""
    found = count(
        logged(HOUR_AGO, [ONE] * 3, [0.1, {"score": 0.7}, {"score": 0.9, "key": "a"}]),
        logged(HOUR_AGO, [ONE], [0.1], model="7"),
        logged(HOUR_AGO, [ONE] * 2, [0.1], model="7"),  # an answer went missing
    )
    assert found.now.answers == {("late", CHAMPION_ID): {"1": 1, "2": 2}, ("late", "7"): {"1": 2, None: 1}}
    assert {key: item.instances for key, item in found.now.traffic.items()} == {CHAMPION_ID: 3, "7": 3}


def test_answers_of_other_kinds_are_counted_by_bin_or_class(count: Any) -> None:
    """Classes by the likeliest, the first of equal ones; quantiles by the median; further outputs by their name."""
    answers = (
        AnswerBaseline(name="gate", output="scores", classes=3),
        AnswerBaseline(name="delay", output="delay", is_main=False, edges=(0.0, 10.0), place=1),
    )
    found = count(
        logged(
            HOUR_AGO,
            [ONE] * 5,
            [
                "[0.1,0.7,0.2]",
                '{"scores":[0.4,0.2,0.4],"delay":3}',
                '{"scores":[1e-05,0.1,0.9],"delay":[1,12,20]}',
                '{"scores":"oops","delay":"oops"}',
                "oops",
            ],
        ),
        answers=answers,
    )
    assert found.now.answers["gate", CHAMPION_ID] == {"0": 1, "1": 1, "2": 1, None: 2}
    assert found.now.answers["delay", CHAMPION_ID] == {"1": 1, "2": 1, None: 3}


@pytest.mark.parametrize("kept", ["carrier", "distance"])
def test_features_may_be_of_one_kind(count: Any, kept: str) -> None:
    """Of the only feature a value may come bare; what is no JSON is garbage still."""
    features = [item for item in spec_values()["features"] if item["name"] == kept]
    evaluation = {"metric": "auc", "min_value": 0.6}
    spec = make_spec(features=features, evaluation=evaluation, data={**spec_values()["data"], "checks": {}})
    found = count(logged(HOUR_AGO, [ONE, ONE, 7.5, "oops"]), spec=spec, answers=())
    assert found.now.values[kept] == {"UA" if kept == "carrier" else "8": 2, None: 1}
    assert (found.now.all.garbage, list(found.now.values)) == (1, [kept])


def test_an_empty_log_is_counted_too(count: Any) -> None:
    """As nothing."""
    found = count(logged(AS_OF - timedelta(days=30), [ONE]))
    assert (found.now.all.instances, found.now.giant, found.earlier.all.instances) == (0, 0, 0)

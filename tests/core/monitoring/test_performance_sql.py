"""The question for answers and labels, run by the local BigQuery: each kind of label, duplicates, keys of a table."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from retraining.core.data.class_names import class_parameters, with_class_numbers
from retraining.core.data.sql import Parameter
from retraining.core.documents.answers import Answers
from retraining.core.monitoring.performance import measure
from retraining.core.monitoring.request_log import (
    AnswerWindow,
    KeyTable,
    Labels,
    read_labelled_answers,
    render_performance_sql,
)
from retraining.core.spec.features import cost_matrix
from tests.support.small_model import make_spec, spec_values
from tests.support.warehouse import Warehouse
from trainer.objective.class_metrics import measure_scores

DATASET = "core_sql"
NOW = datetime(2013, 11, 20, 3, tzinfo=UTC)
MINE, OTHER = "1000000001", "1000000002"
LOG = (
    "endpoint:STRING deployed_model_id:STRING logging_time:TIMESTAMP request_id:NUMERIC "
    "request_payload:STRING:REPEATED response_payload:STRING:REPEATED"
)
SCORES = [0.1, 0.35, 0.4, 0.8, 0.7, 0.3, 0.9, 0.2]
TRUTH = [0, 0, 1, 1, 1, 0, 1, 1]


@pytest.fixture(scope="module")
def warehouse(local_cloud):
    """The local BigQuery, with a data set."""
    return Warehouse(local_cloud, DATASET)


def table(local_cloud: Any, name: str) -> str:
    return f"{local_cloud.project}.{DATASET}.{name}"


def row(
    number: int, hours: float, instances: list[dict[str, Any]], answers: list[Any], by: str = MINE
) -> dict[str, Any]:
    """A logged request."""
    return {
        "endpoint": "1",
        "deployed_model_id": by,
        "logging_time": (NOW - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "request_id": number,
        "request_payload": [json.dumps(instance) for instance in instances],
        "response_payload": [json.dumps(answer) for answer in answers],
    }


def labels(sql: str, *columns: str) -> Labels:
    as_of = Parameter(name="as_of", type="TIMESTAMP", value="2013-11-20T03:00:00Z")
    settled = NOW - timedelta(days=1)
    return Labels(sql=sql, parameters=(as_of,), columns=frozenset(("id", "late", *columns)), settled=settled)


def window(log_table: str) -> AnswerWindow:
    return AnswerWindow(log_table=log_table, start=NOW - timedelta(days=7), end=NOW)


def test_binary_answers_meet_their_labels(warehouse, local_cloud) -> None:
    """Of two answers to one key the last counts; others wait, are not found, have no key; another version is apart."""
    log, truth = table(local_cloud, "perf_log"), table(local_cloud, "perf_truth")
    asked = [{"id": f"k{index}", "carrier": "UA"} for index in range(8)]
    warehouse.load(
        log,
        [
            row(1, 90, asked[:1], [{"id": "k0", "score": 0.99}]),  # asked again later
            row(2, 80, asked, [{"id": one["id"], "score": score} for one, score in zip(asked, SCORES, strict=True)]),
            row(3, 70, [{"id": "gone"}], [{"id": "gone", "score": 0.5}]),
            row(4, 1, [{"id": "soon"}], [0.5]),
            row(5, 60, [{"carrier": "UA"}], [0.5]),
            row(6, 60, asked[:2], [0.2, "garbage"], by=OTHER),
            row(7, 7 * 24 + 1, asked[:1], [0.5]),
        ],
        LOG,
    )
    rows = [
        {"id": f"k{index}", "late": label, "carrier": "UA" if index < 4 else "AA", "at": f"2013-11-1{index}T00:00:00Z"}
        for index, label in enumerate(TRUTH)
    ]
    rows += [{**rows[0], "late": 1, "at": "2013-11-01T00:00:00Z"}, {**rows[1], "id": "unknown", "late": None}]
    warehouse.load(truth, rows, "id:STRING late:INT64 carrier:STRING at:TIMESTAMP")
    sql = f"SELECT id, late, carrier, at FROM `{truth}` WHERE at < @as_of"
    spec = make_spec(label={"name": "late", "kind": "binary", "costs": {"false_positive": 2, "false_negative": 3}})
    query = render_performance_sql(spec, window(log), labels(sql, "carrier", "at"), None, None)
    found = read_labelled_answers(warehouse.run(query))
    own = found[MINE]
    assert dict(own.counts) == {
        "asked": 12, "without_key": 1, "keys": 10, "doubled": 1, "labelled": 8, "waiting": 1,
    }  # fmt: skip
    assert sum(each.examples for each in own.answers.values()) == 12
    cut = own.cuts["", ""]
    pairs = [
        (a, b) for a, la in zip(SCORES, TRUTH, strict=True) for b, lb in zip(SCORES, TRUTH, strict=True) if la > lb
    ]
    exact = sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)
    assert measure(cut, "auc", 0.95).value == pytest.approx(exact)
    loss = -sum(math.log(s if t else 1 - s) for s, t in zip(SCORES, TRUTH, strict=True)) / 8
    assert measure(cut, "log_loss", 0.95).value == pytest.approx(loss)
    brier = sum((s - t) ** 2 for s, t in zip(SCORES, TRUTH, strict=True)) / 8
    assert measure(cut, "brier", 0.95).value == pytest.approx(brier)
    assert measure(cut, "accuracy", 0.95).value == pytest.approx(6 / 8)
    costs = np.array([[0.0, 2.0], [3.0, 0.0]])  # yes from 0.4 on
    expected = measure_scores(np.array(TRUTH), np.array(SCORES), costs=costs).cost
    assert measure(cut, "cost", 0.95).value == pytest.approx(expected) == pytest.approx(3 / 8)
    assert {name: each.examples for name, each in own.cuts.items()} == {
        ("", ""): 8, ("carrier", "UA"): 4, ("carrier", "AA"): 4,
    }  # fmt: skip
    assert found[OTHER].counts["labelled"] == 2
    assert found[OTHER].counts["unreadable"] == 1
    assert found[OTHER].cuts["", ""].examples == 1


def test_a_label_that_is_none_of_two_ends_no_question(warehouse, local_cloud) -> None:
    """It is a no, as for the other metrics: whoever fills the table of labels may write 2 or -1."""
    log = table(local_cloud, "perf_odd_labels")
    warehouse.load(log, [row(1, 50, [{"id": "a"}, {"id": "b"}, {"id": "c"}], [0.9, 0.9, 0.1])], LOG)
    spec = make_spec(label={"name": "late", "kind": "binary", "costs": {"false_positive": 2, "false_negative": 3}})
    sql = "SELECT 'a' AS id, 2 AS late UNION ALL SELECT 'b', -1 UNION ALL SELECT 'c', 1"
    own = read_labelled_answers(warehouse.run(render_performance_sql(spec, window(log), labels(sql), None, None)))[MINE]
    assert measure(own.cuts["", ""], "cost", 0.95).value == pytest.approx((2 + 2 + 3) / 3)


@pytest.mark.parametrize("with_instance", [True, False])
def test_keys_of_a_table_are_joined_by_request_and_place(warehouse, local_cloud, with_instance: bool) -> None:
    """Without the column `instance` a key is of the first one; whole numbers are keys too."""
    log, keys = table(local_cloud, "perf_keyless"), table(local_cloud, "perf_keys")
    warehouse.load(log, [row(41, 50, [{"carrier": "UA"}] * 2, [0.9, 0.1])], LOG)
    given = [{"request_id": "41", "key": 7}, {"request_id": "41", "key": 8, "instance": 1}]
    if not with_instance:
        given = given[:1]
    warehouse.load(keys, given, "request_id:STRING key:INT64" + (" instance:INT64" if with_instance else ""))
    sql = "SELECT 7 AS id, TRUE AS late UNION ALL SELECT 8, FALSE"
    query = render_performance_sql(
        make_spec(), window(log), labels(sql), KeyTable(table=keys, has_instance=with_instance), None
    )
    own = read_labelled_answers(warehouse.run(query))[MINE]
    assert own.counts["labelled"] == (2 if with_instance else 1)
    assert own.counts.get("without_key", 0) == (0 if with_instance else 1)
    assert measure(own.cuts["", ""], "accuracy", 0.95).value == 1


def test_a_key_that_is_a_number_comes_as_one(warehouse, local_cloud) -> None:
    """The service's numbers may have a fraction."""
    log = table(local_cloud, "perf_numbers")
    warehouse.load(log, [row(1, 50, [{"id": 7.0}, {"id": 8}], [0.9, 0.1])], LOG)
    query = render_performance_sql(
        make_spec(), window(log), labels("SELECT 7 AS id, 1 AS late UNION ALL SELECT 8, 0"), None, None
    )
    assert read_labelled_answers(warehouse.run(query))[MINE].counts["labelled"] == 2


def test_classes_are_measured_from_their_lists(warehouse, local_cloud) -> None:
    """Likeliest class, confusion, places of the true class, each class against the rest."""
    log = table(local_cloud, "perf_classes")
    scores = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]
    truth = [0, 1, 2, 1]
    warehouse.load(
        log,
        [
            row(1, 50, [{"id": "a"}, {"id": "b"}], scores[:2]),
            row(
                2,
                50,
                [{"id": "c"}, {"id": "d"}],
                [{"id": key, "scores": each} for key, each in zip("cd", scores[2:], strict=True)],
            ),
        ],
        LOG,
    )
    spec = make_spec(
        label={"name": "late", "kind": "multiclass", "classes": 3, "costs": {"0": {"1": 2}, "2": {"0": 7, "1": 9}}},
        data=spec_values()["data"] | {"checks": {}},
        evaluation={"metric": "auc", "min_value": 0.5},
    )
    sql = " UNION ALL ".join(f"SELECT '{key}' AS id, {label} AS late" for key, label in zip("abcd", truth, strict=True))
    own = read_labelled_answers(warehouse.run(render_performance_sql(spec, window(log), labels(sql), None, None)))[MINE]
    cut = own.cuts["", ""]
    assert cut.confusion == {(0, 0): 1, (1, 1): 1, (2, 1): 1, (1, 2): 1}
    assert measure(cut, "accuracy", 0.95).value == 0.5
    matrix = np.array(cost_matrix(spec.label))
    expected = measure_scores(np.array(truth), np.array(scores), costs=matrix).cost
    assert measure(cut, "cost", 0.95).value == pytest.approx(expected)
    likeliest = matrix[truth, np.argmax(scores, axis=1)].mean()
    assert expected < likeliest  # a lynx that is said to be none is too dear
    assert measure(cut, "balanced_accuracy", 0.95).value == pytest.approx((1 + 0.5 + 0) / 3)
    assert measure(cut, "top2_accuracy", 0.95).value == 0.75
    loss = -sum(math.log(each[label]) for each, label in zip(scores, truth, strict=True)) / 4
    assert measure(cut, "log_loss", 0.95).value == pytest.approx(loss)
    brier = (
        sum(sum((p - (c == label)) ** 2 for c, p in enumerate(each)) for each, label in zip(scores, truth, strict=True))
        / 4
    )
    assert measure(cut, "brier", 0.95).value == pytest.approx(brier)
    of_0 = 3 / 3
    of_1 = (1 + 1 + 1 + 0.0) / 4
    of_2 = (0.5 + 1 + 0) / 3
    assert measure(cut, "auc", 0.95).value == pytest.approx((of_0 + of_1 + of_2) / 3)
    assert {bucket: each.positives for bucket, each in cut.histograms[""].items()} == {
        1400: 1,
        1200: 1,
        1000: 0,
        800: 0,
    }


def test_texts_are_measured_as_the_classes_that_they_name(warehouse, local_cloud) -> None:
    """A text that is no class is a label that nobody knows yet; answers bring the name of their class along."""
    log = table(local_cloud, "perf_names")
    answers = [("a", 0.9, "yes"), ("b", 0.2, "no"), ("c", 0.6, "yes"), ("d", 0.7, "yes")]
    logged = [{"id": key, "score": score, "class": name} for key, score, name in answers]
    warehouse.load(log, [row(1, 50, [{"id": key} for key, _, _ in answers], logged)], LOG)
    spec = make_spec(label={"name": "late", "kind": "binary", "classes": ["no", "yes"]})
    truth = {"a": "yes", "b": "no", "c": "no", "d": "Yes"}
    sql = " UNION ALL ".join(f"SELECT '{key}' AS id, '{text}' AS late" for key, text in truth.items())
    known = labels(with_class_numbers(sql, spec, checked=False))
    known = replace(known, parameters=(*known.parameters, *class_parameters(spec)))
    own = read_labelled_answers(warehouse.run(render_performance_sql(spec, window(log), known, None, None)))[MINE]
    cut = own.cuts["", ""]
    assert (cut.examples, measure(cut, "accuracy", 0.95).value) == (3, pytest.approx(2 / 3))
    assert measure(cut, "brier", 0.95).value == pytest.approx((0.1**2 + 0.2**2 + 0.6**2) / 3)


@pytest.mark.parametrize("metric", ["mae", "medae", "r2"])
def test_numbers_are_measured(warehouse, local_cloud, metric: str) -> None:
    """By sums of errors."""
    log = table(local_cloud, f"perf_number_{metric}")
    answers, truth = [1.0, 2.0, 4.0, 8.0], [1.5, 2.0, 3.0, 10.0]
    payload = [{"prediction": one, "id": key} for one, key in zip(answers, "abcd", strict=True)]
    warehouse.load(log, [row(1, 50, [{"id": key} for key in "abcd"], payload)], LOG)
    bound = {"min_value": 0.1} if metric == "r2" else {"max_value": 5}
    spec = make_spec(
        label={"name": "late", "kind": "regression"},
        data=spec_values()["data"] | {"checks": {}},
        evaluation={"metric": metric, **bound},
    )
    edges = Answers.model_validate_json(
        json.dumps(
            {
                "quantiles": [float(number) for number in range(21)],
                "residuals": {"edges": [0, 1], "counts": [1]},
                "bins": [{"rows": 1, "answer": mean, "label": 1, "low": 0, "high": 2} for mean in (1.0, 5.0)],
            }
        )
    )
    sql = " UNION ALL ".join(f"SELECT '{key}' AS id, {label} AS late" for key, label in zip("abcd", truth, strict=True))
    own = read_labelled_answers(warehouse.run(render_performance_sql(spec, window(log), labels(sql), None, edges)))[
        MINE
    ]
    cut = own.cuts["", ""]
    assert {bucket: each.examples for bucket, each in cut.histograms[""].items()} == {0: 2, 1: 2}
    assert measure(cut, "mae", 0.95).value == pytest.approx((0.5 + 0 + 1 + 2) / 4)
    assert measure(cut, "rmse", 0.95).value == pytest.approx(math.sqrt((0.25 + 1 + 4) / 4))
    middle = sum(truth) / 4
    assert measure(cut, "r2", 0.95).value == pytest.approx(1 - 5.25 / sum((one - middle) ** 2 for one in truth))
    smape = sum(2 * abs(a - b) / (abs(a) + abs(b)) for a, b in zip(answers, truth, strict=True)) / 4
    assert measure(cut, "smape", 0.95).value == pytest.approx(smape)
    if metric == "medae":
        assert 0.5 <= measure(cut, "medae", 0.95).value <= 1


def test_quantiles_have_a_pinball_loss(warehouse, local_cloud) -> None:
    """Of their median the errors."""
    log = table(local_cloud, "perf_quantiles")
    warehouse.load(log, [row(1, 50, [{"id": "a"}, {"id": "b"}], [[1, 2, 3], {"id": "b", "quantiles": [2, 4, 6]}])], LOG)
    spec = make_spec(
        label={"name": "late", "kind": "regression", "loss": "quantile", "quantiles": [0.1, 0.5, 0.9]},
        data=spec_values()["data"] | {"checks": {}},
        evaluation={"metric": "pinball", "max_value": 5},
    )
    sql = "SELECT 'a' AS id, 2.5 AS late UNION ALL SELECT 'b', 1"
    cut = read_labelled_answers(warehouse.run(render_performance_sql(spec, window(log), labels(sql), None, None)))[
        MINE
    ].cuts["", ""]
    first = (0.1 * 1.5 + 0.5 * 0.5 + 0.1 * 0.5) / 3
    second = (0.9 * 1 + 0.5 * 3 + 0.1 * 5) / 3
    assert measure(cut, "pinball", 0.95).value == pytest.approx((first + second) / 2)
    assert measure(cut, "mae", 0.95).value == pytest.approx((0.5 + 3) / 2)


def test_without_labels_the_answers_alone_are_counted(warehouse, local_cloud) -> None:
    """For the estimate."""
    log = table(local_cloud, "perf_unlabelled")
    warehouse.load(log, [row(1, 50, [{"id": "a"}] * 3, [0.25, {"score": 0.25}, "garbage"])], LOG)
    own = read_labelled_answers(warehouse.run(render_performance_sql(make_spec(), window(log), None, None, None)))[MINE]
    assert {bucket: each.examples for bucket, each in own.answers.items()} == {500: 2}
    assert not own.cuts

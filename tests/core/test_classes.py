"""A model of images with several classes, through the core: spec, statistics, checks, gates, drift, page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from retraining.core import documents
from retraining.core.checks import dataset
from retraining.core.data import statistics
from retraining.core.errors import ContractError
from retraining.core.jobs import requests
from retraining.core.monitoring.distributions import answer_baselines
from retraining.core.monitoring.drift import judge_shifts
from retraining.core.monitoring.request_log import read_requests
from retraining.core.promotion import gates, smoke_tests
from retraining.core.report.classes import answers as answers_table
from retraining.core.report.classes import class_rows
from retraining.core.report.page import render
from tests.support.contracts import EXAMPLES
from tests.support.request_log import CHAMPION_ID, counted
from tests.support.small_model import day_rows, fact, make_plan, make_snapshot, make_spec

IMAGE = {"name": "image", "kind": "image", "height": 8, "width": 8, "channels": 1}
LABEL = {"name": "digit", "kind": "multiclass", "classes": 3}
DATA = {"query": "digits/examples.sql", "key": "id", "event_time": "at", "window_days": 10, "test_days": 2}
SCHEMA = [
    {"name": "id", "type": "STRING", "mode": "NULLABLE"},
    {"name": "at", "type": "TIMESTAMP", "mode": "NULLABLE"},
    {"name": "image", "type": "BYTES", "mode": "NULLABLE"},
    {"name": "digit", "type": "INTEGER", "mode": "NULLABLE"},
]


def make_digits(**changes: Any):
    values = {
        "name": "digits",
        "data": {**DATA, "checks": {"min_rows": 10, "max_null_fraction": {"image": 0.1}}},
        "features": [IMAGE],
        "label": LABEL,
        "training": {"model": "cnn"},
        "evaluation": {"metric": "accuracy", "min_value": 0.9, "promote": {"min_examples": 10}},
    }
    return make_spec(**{**values, **changes})


@pytest.fixture
def plan():
    """A run of the images' model."""
    return make_plan(make_digits())


def taken(plan):
    return make_snapshot(plan, schema=SCHEMA)


def rows(classes: dict[str | None, int], *, nulls: int = 0, sizes: tuple[int, int] | None = (80, 150)):
    """Rows of the statistics query, the same for each split."""
    total = sum(classes.values())
    known = {value: count for value, count in classes.items() if value is not None}
    found = [fact("keys", row_count=3 * total, distinct_count=3 * total, nulls=0, outside=0, also_tested=0)]
    for split, day in (("train", "2013-11-10"), ("validation", "2013-11-10"), ("test", "2013-11-17")):
        low, high = sizes or (None, None)
        found += [
            day_rows(split, day, total)[0],
            fact("size", split, "image", row_count=total, nulls=nulls, low=low, high=high, mean=low and 120.5),
        ]
        for value, count in classes.items():
            outside = {} if value is not None else {"low": -1.0, "high": 17.0}
            found.append(fact("label", split, value=value, row_count=count, **outside))
    for day, splits in (("2013-11-10", 2), ("2013-11-17", 1)):
        labelled, most = sum(known.values()), max(known.values(), default=0)
        found += [
            fact(
                "day_label",
                day=day,
                row_count=splits * labelled,
                mean=most / labelled if labelled else None,
                outside=splits * classes.get(None, 0),
            ),
            fact("watched", feature="image", day=day, row_count=splits * total, nulls=splits * nulls, outside=0),
        ]
    return found


def judge(plan, *args: Any, **kwargs: Any):
    snapshot = taken(plan)
    found = statistics.build_statistics(plan, snapshot, rows(*args, **kwargs))
    return found, dataset.check_data(plan, snapshot, found)


EVEN = {"0": 40, "1": 30, "2": 30}


def test_statistics_count_classes_and_sizes(plan):
    found, judged = judge(plan, EVEN)
    train = found.splits["train"]
    assert train.label == documents.LabelStatistics(mean=None, nulls=0, counts=(40, 30, 30))
    assert train.features["image"] == documents.ImageStatistics(
        kind="image", nulls=0, min_bytes=80, max_bytes=150, mean_bytes=120.5
    )
    assert judged.findings == ()


def test_the_query_asks_for_them(plan):
    query = statistics.render_statistics_sql(plan, taken(plan))
    assert "BYTE_LENGTH(`image`)" in query.sql
    assert {parameter.name: parameter.value for parameter in query.parameters}["classes"] == 3


@pytest.mark.parametrize(
    ("classes", "more", "check", "words"),
    [
        pytest.param({**EVEN, None: 2}, {}, "label_range", "2 labels of train are no class", id="outside"),
        pytest.param({"0": 50, "1": 50}, {}, "absent_class", "no training example is of class 2", id="absent"),
        pytest.param({"0": 2000, "1": 1, "2": 1}, {}, "label_rate", "0.999 of the labels of train are 0", id="one"),
        pytest.param(EVEN, {"nulls": 20}, "max_null_fraction", "20.0% of image is missing", id="missing"),
        pytest.param(EVEN, {"nulls": 100, "sizes": None}, "all_null", "image is missing in every", id="all-missing"),
        pytest.param(EVEN, {"sizes": (0, 150)}, "empty_image", "files without a byte", id="empty"),
    ],
)
def test_what_is_wrong_with_classes_and_images_is_found(plan, classes, more, check, words):
    _, judged = judge(plan, classes, **more)
    finding = next(finding for finding in judged.findings if finding.check == check)
    assert words in finding.message
    assert judged.passed == (check == "absent_class")


def test_labels_that_are_no_class_are_named_with_their_range(plan):
    _, judged = judge(plan, {**EVEN, None: 2})
    assert judged.findings[0].found.startswith("2 labels between -1 and 17")
    assert judged.findings[0].expected == "whole numbers from 0 to 2"


@pytest.mark.parametrize(
    ("column", "type_"), [("image", "STRING"), ("digit", "FLOAT"), ("digit", "BOOLEAN")], ids=lambda value: str(value)
)
def test_types_are_checked(plan, column, type_):
    schema = [{**item, "type": type_} if item["name"] == column else item for item in SCHEMA]
    snapshot = make_snapshot(plan, schema=schema)
    judged = dataset.check_data(plan, snapshot, statistics.build_statistics(plan, snapshot, rows(EVEN)))
    assert [(finding.check, finding.feature) for finding in judged.findings] == [("types", column)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(
            {"evaluation": {"metric": "accuracy", "min_value": 0.9, "slices": ["image"]}},
            "evaluation.slices names 'image', which is an image",
            id="slices",
        ),
        pytest.param(
            {"evaluation": {"metric": "top3_accuracy", "min_value": 0.9}},
            "names 'top3_accuracy'; expected one of: auc, log_loss, accuracy, brier, mcc, balanced_accuracy, macro_f1",
            id="three classes have no top three",
        ),
        pytest.param(
            {"monitoring": {"drift": {"features": {"image": 0.5}}}},
            "monitoring.drift.features names 'image', which is an image",
            id="drift",
        ),
        pytest.param(
            {"training": {"model": "cnn", "input": "csv"}}, "training.input csv cannot hold 'image'", id="csv"
        ),
        pytest.param(
            {"training": {"model": "cnn", "input": "bigquery"}}, "training.input bigquery cannot hold", id="bigquery"
        ),
    ],
)
def test_what_images_cannot_do_is_refused_in_the_spec(changes, words):
    with pytest.raises(ValidationError, match=words):
        make_digits(**changes)


# --- the duel --------------------------------------------------------------------------------------------------------

CHAMPION = gates.champion_of(
    version_name="projects/p/locations/r/models/digits@3",
    version_id="3",
    model_uri="gs://my-retraining/digits/runs/20131119t030000z-0123456789ab/training/model",
    run_key="20131119t030000z-0123456789ab",
)


def example(name: str) -> dict[str, Any]:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def evaluation(plan, **changes: Any) -> documents.Evaluation:
    values = {**example("evaluation__classes"), "model": plan.model, "run_key": plan.run_key, **changes}
    return documents.Evaluation.parse(json.dumps(values))


def decide(plan, judged):
    request = requests.evaluation_job(plan, CHAMPION).request
    assert isinstance(request, documents.EvaluateRequest)
    return gates.decide(plan, request, judged, {"plan": "a" * 64, "evaluation": "b" * 64, "evaluate_request": "c" * 64})


SKIPPED = "champion version 3 reads 'ink', which these examples do not have"


def test_a_champion_that_cannot_be_scored_leaves_the_floor_to_decide(plan):
    decision = decide(plan, evaluation(plan, champion=None, difference=None, champion_skipped=SKIPPED))
    assert decision.verdict == "promote"
    assert decision.message == (
        "Promoted: accuracy 0.960 reaches the floor (at least 0.9) and beats predicting the base rate; "
        f"{SKIPPED}, so it cannot be judged any more and the floor alone decides."
    )
    assert decision.champion is not None
    assert {gate.gate: gate.found for gate in decision.gates}["gain"] == "no comparison"


def test_then_a_challenger_below_the_floor_is_rejected(plan):
    weak = {"confusion": None, "slices": [], "metrics": {"accuracy": 0.8, "auc": 0.9, "brier": 1.2, "log_loss": 0.3}}
    judged = evaluation(plan, challenger=weak, champion=None, difference=None, champion_skipped=SKIPPED)
    assert decide(plan, judged).message.startswith("Rejected: accuracy 0.800")


def test_without_words_a_missing_champion_is_an_error(plan):
    with pytest.raises(ContractError, match="no champion"):
        decide(plan, evaluation(plan, champion=None, difference=None))


def test_classes_come_least_found_first(plan):
    found = class_rows(evaluation(plan), plan.spec.label)
    assert [row.label for row in found] == ["2", "0", "1"]
    worst = found[0]
    assert (worst.rows, worst.mixed_up, worst.mixed_up_rows) == (12, "0", 1)
    assert worst.recall == pytest.approx(11 / 12)
    assert worst.precision == 1
    assert worst.gain == 0
    assert [[cell.rows for cell in row] for row in answers_table(evaluation(plan))] == [
        [19, 1, 0],
        [0, 18, 0],
        [1, 0, 11],
    ]
    plain = evaluation(plan, challenger={**example("evaluation__duel")["challenger"]})
    assert class_rows(plain, plan.spec.label) == []


def test_the_page_shows_classes_and_names_images(plan):
    found, judged = judge(plan, EVEN)
    golden = {
        "rows": 7,
        "shards": example("evaluation__classes")["shards"],
        "challenger": {"accuracy": 0.875, "auc": 0.9, "brier": 0.2, "log_loss": 0.3},
        "champion": None,
    }
    page = render(
        {
            "plan": plan.to_json(),
            "snapshot": taken(plan).to_json(),
            "statistics": found.to_json(),
            "checks": judged.to_json(),
            "manifest": example("manifest__three_spans"),
            "evaluation": evaluation(plan, golden=golden).to_json(),
        }
    )
    for words in ("3 of 3", "files of 120 bytes, from 80 to 150", "50 examples of 3 classes", "answered 2"):
        assert words in page
    assert "7 examples" in page
    assert "accuracy 0.8750" in page
    assert "share of each class" in page
    assert "positive" not in page


def test_the_page_names_classes_and_escapes_their_names():
    """In the tables of classes, of answers and of the largest errors."""
    names = ("<b>&'", 'the "one"', "deux")
    plan = make_plan(make_digits(label={**LABEL, "classes": names}))
    found, judged = judge(plan, EVEN)
    shown = evaluation(plan)
    assert [row.label for row in class_rows(shown, plan.spec.label)] == ["deux", "<b>&'", 'the "one"']
    page = render(
        {
            "plan": plan.to_json(),
            "snapshot": taken(plan).to_json(),
            "statistics": found.to_json(),
            "checks": judged.to_json(),
            "evaluation": shown.to_json(),
        }
    )
    assert "<b>&'" not in page
    assert page.count("&lt;b&gt;&amp;&#39;") >= 3
    assert "answered the &#34;one&#34;" in page
    assert "answered 1" not in page


def test_images_do_not_drift_by_value(plan):
    (found,) = measured(plan, {"0": 130, "1": 80, "2": 90})
    assert (found.subject, found.measure, found.state) == ("digit", "l_infinity", "ok")
    assert found.value == pytest.approx(1 / 30)


def test_answers_drift_when_one_class_takes_over(plan):
    (found,) = measured(plan, {"0": 10, "1": 280, None: 10})
    assert found.value == pytest.approx(280 / 300 - 0.3)
    assert found.state == "exceeded"
    tolerant = make_digits(monitoring={"drift": {"features": {"digit": 1.0}}})
    assert measured(make_plan(tolerant), {"1": 300})[0].state == "ok"


def test_the_classes_of_the_test_days_go_before_the_labels(plan):
    """What the champion answered there: the columns of its confusion."""
    found, _ = judge(plan, EVEN)
    (baseline,) = answer_baselines(plan.spec, found.splits["train"], evaluation(plan))
    assert (baseline.classes, baseline.rows) == (3, 50)
    assert baseline.shares == (20 / 50, 19 / 50, 11 / 50)


def measured(plan, answered: dict[str | None, int]):
    """Signals of 300 requests with these answers that are judged, without an evaluation."""
    found, _ = judge(plan, EVEN)
    train = found.splits["train"]
    log = read_requests(counted({}, answers={"digit": answered}), ["digit"])
    signals = judge_shifts(plan.spec, train, log, answer_baselines(plan.spec, train, None), CHAMPION_ID)
    return [item for item in signals if item.value is not None]


# --- golden requests -------------------------------------------------------------------------------------------------


def test_smoke_requests_bring_bytes_in_base64(plan):
    report = documents.Report.parse(Path(EXAMPLES / "report__images.json").read_bytes())
    assert smoke_tests.instances(report.golden, plan.spec.features) == [{"image": {"b64": "iVBORw0KGgo="}}]


@pytest.mark.parametrize(
    ("said", "expected", "far"),
    [
        (0.5, 0.25, 0.25),
        ([0.5], 0.25, 0.25),
        ({"score": 0.5}, 0.25, 0.25),
        ([0.5, 0.5], (0.25, 0.75), 0.25),
        ({"scores": [0.5, 0.5]}, (0.5, 0.5), 0.0),
    ],
)
def test_answers_are_compared_score_by_score(said, expected, far):
    assert smoke_tests.distance(said, expected) == pytest.approx(far)


@pytest.mark.parametrize(
    ("said", "expected"), [("0.5", 0.5), ([0.5, 0.5], 0.5), (0.5, (0.5, 0.5)), ([0.5] * 3, (0.5, 0.5))]
)
def test_an_answer_of_another_form_is_named(said, expected):
    with pytest.raises(ContractError, match="Look at the signature"):
        smoke_tests.distance(said, expected)

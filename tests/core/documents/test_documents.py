"""Reading and writing documents."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from retraining.core import documents
from retraining.core.documents.document import format_time
from retraining.core.errors import ContractError
from tests.support.small_model import make_plan


def test_canonical_json_has_one_spelling_per_value():
    assert documents.canonical_json({"b": [1, "ä"], "a": None}) == '{"a":null,"b":[1,"ä"]}'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        documents.canonical_json(float("nan"))


def test_a_stored_document_is_sorted_indented_and_ends_its_last_line(small_plan):
    data = small_plan.to_bytes()
    assert data.decode() == json.dumps(json.loads(data), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert small_plan.digest() == documents.digest(data)
    assert json.loads(data) == small_plan.to_json()


def test_times_are_utc_whole_seconds(small_plan):
    there = datetime(2013, 11, 20, 5, tzinfo=timezone(timedelta(hours=2)))
    assert format_time(there) == "2013-11-20T03:00:00Z"
    values = small_plan.to_json()
    for wrong in ("2013-11-20T03:00:00", "2013-11-20T03:00:00.5Z", "yesterday"):
        with pytest.raises(ContractError, match="as_of"):
            documents.Plan.parse(json.dumps({**values, "as_of": wrong}))
    found = documents.Plan.parse(json.dumps({**values, "as_of": "2013-11-20T05:00:00+02:00"}))
    assert found.as_of == datetime(2013, 11, 20, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "a JSON list"),
        (b"{}", "kind is None. Expected 'plan'"),
        (b'{"kind": "ledger"}', "kind is 'ledger'. Expected 'plan'"),
        (b'{"kind": "plan", "schema_version": 2}', "schema_version is 2. Expected 1"),
        (b'{"kind": "plan", "schema_version": 1}', "the document has no key 'model'"),
    ],
)
def test_what_is_no_plan_is_refused_with_its_address(data, words):
    with pytest.raises(ContractError) as caught:
        documents.Plan.parse(data, "gs://b/late/plan.json")
    assert str(caught.value).startswith("gs://b/late/plan.json: ")
    assert words in str(caught.value)


def test_nothing_is_converted_on_the_way_in(small_plan):
    values = small_plan.to_json()
    with pytest.raises(ContractError, match="deploy"):
        documents.Plan.parse(json.dumps({**values, "deploy": "yes"}))


def test_documents_are_frozen_and_comparable(small_plan):
    assert small_plan == make_plan()
    with pytest.raises(ValueError, match="frozen"):
        small_plan.model = "other"


def test_a_document_cannot_hold_nan():
    with pytest.raises(ValueError, match="finite"):
        documents.SmokeTest(requests=1, max_abs_error=float("nan"))


def test_a_window_is_in_order():
    day = datetime(2013, 11, 20, tzinfo=UTC).date()
    with pytest.raises(ValueError, match="start < test_start < end"):
        documents.Window(start=day, end=day, test_start=day)

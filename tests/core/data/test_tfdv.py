"""Schema and statistics for TensorFlow Data Validation: what is known of a run, in protobuf's text form."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from retraining.core.data import tfdv
from retraining.core.documents import Plan, Snapshot, Statistics
from tests.support.contracts import EXAMPLES


def read(kind: str, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((EXAMPLES / f"{kind}__{name}.json").read_text())
    return document


@pytest.fixture
def documents() -> dict[str, dict[str, Any]]:
    """Plan, snapshot and statistics of one run."""
    return {
        "plan": read("plan", "scheduled"),
        "snapshot": read("snapshot", "one_changed"),
        "statistics": read("statistics", "two_features"),
    }


def render(documents: dict[str, dict[str, Any]]) -> tuple[str, str]:
    parsed = (
        Plan.parse(json.dumps(documents["plan"])),
        Snapshot.parse(json.dumps(documents["snapshot"])),
        Statistics.parse(json.dumps(documents["statistics"])),
    )
    return tfdv.render_schema(*parsed), tfdv.render_statistics(*parsed)


def feature(schema: str, name: str) -> str:
    """The text of one feature, in a line."""
    (found,) = [each for each in schema.split("feature {") if f'name: "{name}"' in each]
    return " ".join(found.split())


def test_types_presence_and_domains_are_what_is_known(documents) -> None:
    schema, _ = render(documents)
    whole = "presence { min_fraction: 1.0 min_count: 1 } value_count { min: 1 max: 1 }"
    assert feature(schema, "carrier") == (
        f'name: "carrier" type: BYTES {whole} string_domain {{ value: "AA" value: "UA" }} }}'
    )
    assert feature(schema, "distance") == f'name: "distance" type: INT {whole} }}'
    assert "int_domain { min: 0 max: 1 is_categorical: true }" in feature(schema, "late")
    assert "lifecycle_stage: ALPHA" in feature(schema, "id")


def test_a_missing_value_anywhere_is_allowed(documents) -> None:
    documents["statistics"]["splits"]["test"]["features"]["distance"]["nulls"] = 2
    schema, statistics = render(documents)
    assert "presence" not in feature(schema, "distance")
    assert "num_non_missing: 28 num_missing: 2" in " ".join(statistics.split())


def test_categories_that_are_not_all_known_are_no_domain(documents) -> None:
    documents["statistics"]["splits"]["train"]["features"]["carrier"]["distinct"] = 2000
    assert "string_domain" not in feature(render(documents)[0], "carrier")


def test_each_split_is_a_data_set(documents) -> None:
    _, statistics = render(documents)
    splits = documents["statistics"]["splits"]
    found = {name: int(rows) for name, rows in re.findall(r'name: "(\w+)"\s+num_examples: (\d+)', statistics)}
    assert found == {name: split["rows"] for name, split in splits.items()}
    assert statistics.count('step: "late"') == statistics.count('step: "carrier"') == 3


def test_categories_are_ranked_with_their_counts(documents) -> None:
    """TFDV looks for values outside a domain among the ranks alone."""
    top = documents["statistics"]["splits"]["test"]["features"]["carrier"]["top"]
    _, statistics = render(documents)
    (test,) = [each for each in statistics.split("datasets {") if 'name: "test"' in each]
    ranks = re.findall(r'low_rank: (\d+) high_rank: (\d+) label: "(\w+)" sample_count: (\d+)', " ".join(test.split()))
    assert ranks == [(str(rank), str(rank), item["value"], str(item["count"])) for rank, item in enumerate(top)]
    assert ranks


def test_a_value_is_written_so_that_protobuf_reads_it(documents) -> None:
    """Quotes, backslashes and control characters as octal numbers, all else as it is."""
    top = documents["statistics"]["splits"]["train"]["features"]["carrier"]["top"]
    top[0]["value"] = 'Ü "\\\n'
    schema, statistics = render(documents)
    for text in (schema, statistics):
        assert 'value: "Ü \\042\\134\\012"' in text


@pytest.mark.parametrize(
    ("section", "changes"),
    [
        ("training", {"input": "csv"}),
        ("data", {"layout": {"numeric": "vector"}}),
        ("data", {"layout": {"rows_per_record": 8}}),
    ],
    ids=["csv", "vector", "several-rows"],
)
def test_other_shards_have_none(documents, section, changes) -> None:
    assert tfdv.are_plain_examples(Plan.parse(json.dumps(documents["plan"])))
    documents["plan"]["spec"][section] |= changes
    assert not tfdv.are_plain_examples(Plan.parse(json.dumps(documents["plan"])))

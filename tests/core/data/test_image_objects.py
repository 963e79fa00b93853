"""Images as objects: what is listed, what the SQL is made of, and what a spec may say."""

from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from retraining.core.checks import dataset
from retraining.core.data import snapshot, statistics
from retraining.core.data.image_objects import (
    folders_to_list,
    render_objects_table_sql,
    require_addresses,
    stored_bytes,
    with_objects,
    write_listing,
)
from retraining.core.data.shard_format import form_of
from retraining.core.data.span_store import StoredObject
from retraining.core.errors import DataError
from retraining.core.naming import bigquery
from retraining.core.spec.model import ModelSpec
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_snapshot, make_spec

PHOTO = {"name": "photo", "kind": "image", "height": 8, "width": 8, "channels": 3}
TRAINING = {"model": "cnn"}
EVALUATION = {"metric": "auc", "min_value": 0.5}
DATA = {"query": "late/examples.sql", "key": "id", "event_time": "at", "window_days": 10, "test_days": 2}


def spec_of(*folders: str | None, **changes: Any) -> ModelSpec:
    """A model of images, each in a folder."""
    features = [{**PHOTO, "name": f"photo_{index}", "objects": folder} for index, folder in enumerate(folders)]
    return make_spec(**{"features": features, "training": TRAINING, "evaluation": EVALUATION, "data": DATA, **changes})


def stored(name: str, generation: int = 1, content_type: str = "image/png") -> StoredObject:
    """An object as a listing has it."""
    when = datetime(2013, 11, 20, tzinfo=UTC)
    return StoredObject(uri=name, bytes=10, generation=generation, created=when, content_type=content_type)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": [{**PHOTO, "objects": "gs://photos/cats"}]}, "objects"),
        ({"features": [{**PHOTO, "objects": "/photos/cats/"}]}, "objects"),
        ({"features": [{**PHOTO, "objects": "gs://photos/*/"}]}, "objects"),
        ({"features": [{"name": "photo", "kind": "numeric", "objects": "gs://photos/cats/"}]}, "objects"),
        ({"data": {**DATA, "golden_query": "late/golden.sql"}}, "freezes examples, and the images of 'photo_0' are"),
        ({"training": {"model": "cnn", "input": "bigquery"}}, "training.input bigquery cannot hold 'photo_0'"),
        ({"training": {"model": "cnn", "input": "csv"}}, "training.input csv cannot hold 'photo_0'"),
    ],
    ids=["no slash", "no bucket", "wildcard", "no image", "frozen set", "bigquery", "csv"],
)
def test_what_cannot_be_is_refused_in_the_spec(changes, words: str) -> None:
    """As `make check-models` does."""
    assert spec_of("gs://photos/cats/", "gs://photos/").features
    with pytest.raises(ValidationError, match=words):
        spec_of("gs://photos/cats/", **changes)


def test_each_folder_is_listed_once() -> None:
    """One within another is listed with it; a folder whose name only begins alike is not within."""
    assert folders_to_list(spec_of("gs://bbb/a/", "gs://bbb/a/x/", "gs://bbb/ab/", "gs://ccc/", None)) == [
        "gs://bbb/a",
        "gs://bbb/ab",
        "gs://ccc",
    ]
    assert folders_to_list(spec_of(None)) == []


def test_the_listing_is_lines_and_its_digest_is_of_what_they_say() -> None:
    """An overwritten object is another listing, another try of the same one is not."""
    digests = set()
    for generation in (1, 1, 2):
        file = io.BytesIO()
        listed = [stored('gs://bbb/"a\n.png', generation), stored("gs://bbb/ü.png", content_type="")]
        digests.add((generation, write_listing(file, listed, ["gs://bbb"])))
    lines = [json.loads(line) for line in gzip.decompress(file.getvalue()).splitlines()]
    assert lines[0] == {"uri": 'gs://bbb/"a\n.png', "generation": 2, "bytes": 10, "content_type": "image/png"}
    assert lines[1]["uri"] == "gs://bbb/ü.png"
    assert len(digests) == 2
    with refuses(DataError, found="gs://bbb"):
        write_listing(io.BytesIO(), [], ["gs://bbb"])


def test_folders_are_parameters_and_the_rest_of_the_run_is_as_without() -> None:
    """Nothing that a user writes becomes SQL text but checked names."""
    plan, plain = make_plan(spec_of("gs://bbb/a';/")), make_plan(spec_of(None))
    query = snapshot.render_snapshot_sql(plan)
    values = {parameter.name: parameter.value for parameter in query.parameters}
    assert (values["objects_0"], values["most_object_bytes"]) == ("gs://bbb/a';/", 100_000_000)
    assert "a';" not in query.sql
    assert f"LEFT JOIN `{bigquery.objects_table(plan)}`" in query.sql
    assert "BYTE_LENGTH(row_text) + 192" in query.sql
    assert stored_bytes(plan.spec) == 8 * 8 * 3
    assert "INTERVAL 7 DAY" in render_objects_table_sql(plan).sql
    assert bigquery.is_run_table(bigquery.objects_table(plan))
    assert with_objects("SELECT 1", plain) == "SELECT 1"
    assert "BYTE_LENGTH(row_text))" in snapshot.render_snapshot_sql(plain).sql
    assert form_of(plan.spec) == form_of(plain.spec)


@pytest.mark.parametrize(
    ("type_", "mode", "found"),
    [("BYTES", "NULLABLE", "photo_0: BYTES"), ("STRING", "REPEATED", "photo_0: STRING REPEATED")],
)
def test_a_column_that_has_no_addresses_is_refused(type_: str, mode: str, found: str) -> None:
    """A missing column is a finding of its own."""
    spec = spec_of("gs://bbb/")
    require_addresses(spec, [{"name": "photo_0", "type": "STRING", "mode": "NULLABLE"}], "q.sql")
    require_addresses(spec, [{"name": "other", "type": "INT64", "mode": "NULLABLE"}], "q.sql")
    with refuses(
        DataError,
        where=f"column {found.partition(':')[0]}",
        found=found.partition(": ")[2],
        expected="STRING",
        way_out="remove objects",
    ):
        require_addresses(spec, [{"name": "photo_0", "type": type_, "mode": mode}], "q.sql")


SCHEMA = [
    {"name": "id", "type": "STRING", "mode": "NULLABLE"},
    {"name": "at", "type": "TIMESTAMP", "mode": "NULLABLE"},
    {"name": "photo_0", "type": "STRING", "mode": "NULLABLE"},
    {"name": "late", "type": "INTEGER", "mode": "NULLABLE"},
]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("missing: p1 (gs://b)", "3 images of photo_0 in train are not there, such as p1 (gs://b): mend"),
        ("elsewhere: p1 (x)", "are outside the folder that objects names, such as p1 (x)"),
        ("too large: p1 (x)", "are larger than 100 MB, such as p1 (x)"),
        ("text/html; charset=utf-8: p1 (x)", "are text/html; charset=utf-8, such as p1 (x)"),
    ],
)
@pytest.mark.parametrize("severity", ["block", "warn"])
def test_what_the_listing_found_is_a_finding(value: str, words: str, severity: str) -> None:
    """How many, why, and the first of them."""
    plan = make_plan(spec_of("gs://bbb/", data={**DATA, "checks": {"severity": {"objects": severity}}}))
    taken = make_snapshot(plan, schema=SCHEMA)
    empty = dict.fromkeys(("day", "feature", "nulls", "low", "high", "mean", "distinct_count", "value"))
    counted = {"section": "keys", "split": "", **empty, "row_count": 0, "outside": 0, "also_tested": 0}
    found = {**counted, "section": "object", "split": "train", "feature": "photo_0", "row_count": 3, "value": value}
    judged = dataset.check_data(plan, taken, statistics.build_statistics(plan, taken, [counted, found]))
    (finding,) = [item for item in judged.findings if item.check == "objects"]
    assert words in finding.message
    assert (finding.severity, finding.feature) == (severity, "photo_0")

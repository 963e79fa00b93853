"""Labels that are texts: what a spec may say, what SQL makes of them, and how texts that nobody listed are named."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from retraining.core.catalog.trainers import require_trainer
from retraining.core.checks.labels import label_findings
from retraining.core.data.class_names import (
    class_parameters,
    has_unlisted,
    numbered_columns,
    render_unlisted_sql,
    require_texts,
    unlisted_texts,
    with_class_numbers,
    with_unlisted,
)
from retraining.core.data.snapshot import query_parameters, render_snapshot_sql
from retraining.core.data.sql import Parameter, Query
from retraining.core.documents.checks import OutsideLabels
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError, SpecError
from retraining.core.naming.run_keys import frozen_set_key
from retraining.core.spec.model import ModelSpec
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_spec, make_statistics, spec_values
from tests.support.warehouse import Warehouse

STRANGE = ['O\'Brien "x"', "a\nb", "naïve ☃", "<b>&</b>", "a\\b", "@class_0_0", ""]
"""Texts that SQL, JSON or HTML could take for something else."""
DATASET = "core_sql"


def spec_of(classes: Any, kind: str = "multiclass", **changes: Any) -> ModelSpec:
    """A model whose label has these classes."""
    label = {"name": "late", "kind": kind, "classes": classes}
    evaluation = {"metric": "accuracy", "min_value": 0.1}
    data = spec_values()["data"] | {"checks": {}}
    return make_spec(**{"label": label, "data": data, "evaluation": evaluation, **changes})


@pytest.mark.parametrize(
    ("classes", "kind", "message"),
    [
        pytest.param(["a", "b", "a"], "multiclass", "classes has 'a' twice: remove one", id="twice"),
        pytest.param(["a"], "multiclass", "classes lists 1, and a label needs two or more", id="one"),
        pytest.param([], "multiclass", "classes lists 0, and a label needs two or more", id="none"),
        pytest.param(["a", "b", "c"], "binary", "two texts, got 3: set kind: multiclass", id="three-of-binary"),
        pytest.param(["a"], "binary", "two texts, got 1: add the other text", id="one-of-binary"),
        pytest.param([False, True], "binary", "valid string", id="truth-values"),
        pytest.param([1, 2], "multiclass", "valid string", id="numbers"),
        pytest.param(["a", "b" * 201], "multiclass", "at most 200 characters", id="long"),
        pytest.param(2, "binary", "valid tuple", id="count-of-binary"),
    ],
)
def test_classes_that_cannot_be_are_refused_in_the_spec(classes: Any, kind: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        spec_of(classes, kind)


def test_a_label_of_numbers_is_written_as_earlier_releases_did() -> None:
    """So no run of a model without names has another key."""
    assert make_spec().model_dump(mode="json")["label"] == {"name": "late", "kind": "binary"}
    assert spec_of(3).model_dump(mode="json")["label"]["classes"] == 3


@pytest.fixture(scope="module")
def warehouse(local_cloud):
    """The local BigQuery, with a data set."""
    return Warehouse(local_cloud, DATASET)


def asked(warehouse: Warehouse, sql: str, spec: ModelSpec, *others: Parameter) -> list[dict[str, Any]]:
    """The rows of a query with numbers for texts."""
    return warehouse.run(Query(sql=sql, parameters=(*others, *class_parameters(spec))))


def test_texts_become_their_places_whatever_is_in_them(warehouse, local_cloud) -> None:
    """NULL stays, other columns too; what is not listed is -1, or NULL where nothing checks it. Case counts."""
    table = f"{local_cloud.project}.{DATASET}.named_classes"
    texts = [*STRANGE, None, 'O\'BRIEN "X"', "unlisted"]
    rows = [{"id": f"k{index}", "late": text, "size": index} for index, text in enumerate(texts)]
    warehouse.load(table, rows, "id:STRING late:STRING size:INT64")
    spec, query = spec_of(STRANGE), f"SELECT * FROM `{table}`"
    for checked, other in ((True, -1), (False, None)):
        sql = f"SELECT * FROM ({with_class_numbers(query, spec, checked=checked)}) ORDER BY size"
        found = asked(warehouse, sql, spec)
        assert [row["late"] for row in found] == [*range(len(STRANGE)), None, other, other]
        assert [(row["id"], row["size"]) for row in found] == [(row["id"], row["size"]) for row in rows]
    unlisted = unlisted_texts(warehouse.run(render_unlisted_sql(query, spec, (), in_window=False)))
    assert [(item.text, item.rows) for item in unlisted["late"]] == [('O\'BRIEN "X"', 1), ("unlisted", 1)]


def test_auxiliary_labels_have_texts_too(warehouse) -> None:
    """Each has a list of its own, and so have the texts that are in none."""
    auxiliary = [{"name": "cause", "kind": "binary", "classes": ["weather", "crew"]}]
    spec = spec_of(["no", "yes"], "binary", auxiliary_labels=auxiliary, evaluation={"metric": "auc", "min_value": 0.5})
    query = (
        "SELECT 1 AS id, 'yes' AS late, 'weather' AS cause UNION ALL SELECT 2, 'weather', 'yes' UNION ALL "
        "SELECT 3, 'no', 'yes' UNION ALL SELECT 4, 'no', NULL"
    )
    found = asked(warehouse, f"SELECT * FROM ({with_class_numbers(query, spec)}) ORDER BY id", spec)
    assert [(row["late"], row["cause"]) for row in found] == [(1, 0), (-1, -1), (0, -1), (0, None)]
    unlisted = unlisted_texts(warehouse.run(render_unlisted_sql(query, spec, (), in_window=False)))
    assert {name: [(item.text, item.rows) for item in texts] for name, texts in unlisted.items()} == {
        "late": [("weather", 1)],
        "cause": [("yes", 2)],
    }


def test_a_query_without_texts_stays_as_it_is() -> None:
    assert with_class_numbers("SELECT 1", make_spec()) == "SELECT 1"
    plan = make_plan(make_spec())
    assert "class_0" not in render_snapshot_sql(plan).sql
    assert {parameter.name for parameter in query_parameters(plan)} == {"window_start", "window_end", "as_of"}


@pytest.mark.parametrize(
    ("type_", "mode", "found"),
    [("INTEGER", "NULLABLE", "INTEGER"), ("STRING", "REPEATED", "STRING REPEATED"), ("BOOLEAN", "REQUIRED", "BOOLEAN")],
)
def test_a_label_that_is_no_text_is_refused_before_anything_runs(type_: str, mode: str, found: str) -> None:
    schema, where = [{"name": "late", "type": type_, "mode": mode}], "examples.sql, column late"
    with refuses(DataError, where=where, found=found, expected="STRING", way_out="give their count"):
        require_texts(spec_of(["a", "b"]), schema, "late/examples.sql")
    require_texts(spec_of(3), schema, "late/examples.sql")


def test_the_run_table_has_whole_numbers() -> None:
    """What the checks of column types go by, where a dry run of the query says STRING."""
    text = Column(name="late", type="STRING", mode="NULLABLE")
    other = Column(name="name", type="STRING", mode="NULLABLE")
    assert [column.type for column in numbered_columns(spec_of(["a", "b"]), [text, other])] == ["INTEGER", "STRING"]
    assert [column.type for column in numbered_columns(spec_of(2), [text, other])] == ["STRING", "STRING"]


def test_texts_that_nobody_listed_are_named_by_the_finding() -> None:
    """With their rows, whatever split they are in."""
    spec = spec_of(["on time", "late"], "binary", evaluation={"metric": "auc", "min_value": 0.5})
    statistics = make_statistics(make_plan(spec))
    assert not has_unlisted(spec, statistics)
    train = statistics.splits["train"]
    label = train.label.model_copy(update={"outside": OutsideLabels(rows=3, low=-1, high=-1)})
    splits = {**statistics.splits, "train": train.model_copy(update={"label": label})}
    statistics = statistics.model_copy(update={"splits": splits})
    assert has_unlisted(spec, statistics)
    rows = [{"label": "late", "text": "Late", "row_count": 2}, {"label": "late", "text": "late ", "row_count": 1}]
    (finding,) = [
        each
        for each in label_findings(spec, with_unlisted(spec, statistics, unlisted_texts(rows)))
        if each.check == "label_range"
    ]
    assert finding.found == "3 labels in train"
    assert finding.message == (
        "3 labels of train are no class ('Late' (2), 'late ' (1) in all splits): mend them in the query"
    )
    assert finding.expected == "one of 'on time', 'late'"


def test_a_frozen_set_of_other_names_is_another_one() -> None:
    """Its table has numbers, which mean other texts then."""
    data = spec_values()["data"] | {"checks": {}, "golden_query": "late/golden.sql"}
    keys = [
        frozen_set_key(make_plan(spec_of(classes, data=data), frozen_set_sql="SELECT 1"))
        for classes in (2, ["a", "b"], ["b", "a"])
    ]
    assert len(set(keys)) == 3


def test_an_image_that_does_not_know_names_is_refused_by_name(tmp_path) -> None:
    """It would answer without them, or fail when it is paid for."""
    folder = tmp_path / "trainers"
    folder.mkdir()
    described = (
        '{"kind": "trainer", "schema_version": 1, "labels": ["multiclass"], "losses": [], "transforms": [], '
        '"features": ["numeric", "categorical"], "inputs": ["tfrecord"], "hyperparameters": [], '
        '"auxiliary_labels": false, "trials": false, "several_machines": false, "request_digest": true}'
    )
    (folder / "mine.json").write_text(described)
    runtime = {"image": "us-docker.pkg.dev/p/r/mine:1"}
    training = {"model": "own", "runtime": runtime, "hyperparameters": {}}
    named, counted = spec_of(["a", "b"], training=training), spec_of(2, training=training)
    require_trainer(counted, tmp_path)
    with refuses(SpecError, where="label 'late', classes", found="class_names"):
        require_trainer(named, tmp_path)

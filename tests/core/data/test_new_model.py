"""A first YAML and SQL file of a model, from a table's profile."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from retraining.core.catalog import check_models
from retraining.core.data import new_model
from retraining.core.data.table_profile import NewModel, build_profile, render_profile_sql, require_columns
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError, SpecError
from retraining.core.planning.feature_patterns import resolve_patterns
from retraining.core.spec.files import load_spec

MODEL = NewModel(name="late", table="parcels.sent", label="late", key="id", time="at")
COLUMNS = {"id": "STRING", "at": "TIMESTAMP", "late": "INTEGER", "weight": "FLOAT", "carrier": "STRING"}
DISTINCT = {"id": 1000, "at": 990, "late": 2, "weight": 500, "carrier": 9}


def schema(**types):
    return [
        Column(name=name, type=kind.removesuffix("[]"), mode="REPEATED" if kind.endswith("[]") else "NULLABLE")
        for name, kind in types.items()
    ]


def profile(columns=None, *, model=MODEL, distinct=None, **row):
    columns = columns or schema(**COLUMNS)
    distinct = DISTINCT | (distinct or {})
    answer = {
        "row_count": 1000,
        "key_values": 1000,
        "first_event": datetime(2024, 1, 1, 5, tzinfo=UTC),
        "last_event": datetime(2024, 2, 19, 4, tzinfo=UTC),
        "label_low": 0,
        "label_high": 1,
    }
    countable = [column for column in columns if column.mode != "REPEATED" and column.name != "span"]
    for place, column in enumerate(countable):
        answer |= {f"nulls_{place}": 0, f"values_{place}": distinct.get(column.name, 7)}
    return build_profile(model, columns, answer | row)


def valid_spec(tmp_path, files, name="late"):
    """What `make check-models` makes of the files."""
    (tmp_path / "models").mkdir()
    (tmp_path / "sql" / name).mkdir(parents=True)
    path = tmp_path / "models" / f"{name}.yaml"
    path.write_text(files.yaml, encoding="utf-8")
    (tmp_path / "sql" / name / "examples.sql").write_text(files.sql, encoding="utf-8")
    assert check_models.check(path, tmp_path)
    return load_spec(path)


def test_a_model_is_written_that_the_check_takes(tmp_path):
    files = new_model.write_model(MODEL, profile())
    spec = valid_spec(tmp_path, files)
    assert [(each.name, each.kind) for each in spec.features] == [("weight", "numeric"), ("carrier", "categorical")]
    assert (spec.label.name, spec.label.kind, spec.evaluation.metric) == ("late", "binary", "auc")
    assert (spec.data.window_days, spec.data.test_days) == (50, 6)
    assert spec.data.checks.min_rows == 500  # of 20 rows a day over 50 days, half
    assert spec.evaluation.promote.min_examples == 60
    assert files.yaml.count("# guess") >= 8
    assert (
        "source.id,\n  source.at,\n  source.weight,\n  source.carrier,\n  source.late\nFROM `parcels.sent`" in files.sql
    )


def test_whole_numbers_from_0_are_classes(tmp_path):
    spec = valid_spec(tmp_path, new_model.write_model(MODEL, profile(label_high=9, distinct={"late": 10})))
    assert (spec.label.kind, spec.label.classes) == ("multiclass", 10)
    assert (spec.evaluation.metric, spec.evaluation.min_value) == ("accuracy", 0.1)


@pytest.mark.parametrize(
    ("kind", "low", "high", "distinct"),
    [("INTEGER", 1, 2, 2), ("INTEGER", 0, 5000, 900), ("FLOAT", 0, 7.5, 80), ("FLOAT", 0, 1, 80), ("NUMERIC", 1, 9, 5)],
    ids=["not from 0", "too many for classes", "a measure", "a share", "an amount"],
)
def test_other_numbers_are_numbers(tmp_path, kind, low, high, distinct):
    found = profile(schema(**COLUMNS | {"late": kind}), label_low=low, label_high=high, distinct={"late": distinct})
    spec = valid_spec(tmp_path, new_model.write_model(MODEL, found))
    assert (spec.label.kind, spec.evaluation.metric, spec.evaluation.min_value) == ("regression", "r2", 0.0)


@pytest.mark.parametrize(
    ("kind", "low", "distinct"),
    [("INTEGER", 0, 1), ("BOOLEAN", 1, 1), ("FLOAT", None, 0)],
    ids=["one number", "always true", "all NULL"],
)
def test_a_label_that_cannot_be_learnt_is_refused(kind, low, distinct):
    found = profile(schema(**COLUMNS | {"late": kind}), label_low=low, label_high=low, distinct={"late": distinct})
    with pytest.raises(DataError, match=r"LABEL of parcels.sent: 'late' .*Make a view"):
        new_model.write_model(MODEL, found)


def test_what_is_no_feature_is_left_out_and_named(tmp_path):
    odd = {"note": "STRING", "photo": "BYTES", "nothing": "FLOAT", "same": "STRING", "day": "DATE", "tags": "STRING[]"}
    found = profile(schema(**COLUMNS | odd | {"span": "STRING"}), distinct={"note": 900, "nothing": 0, "same": 1})
    files = new_model.write_model(MODEL, found)
    assert valid_spec(tmp_path, files).feature_names == ["weight", "carrier"]
    comments = " ".join(line.strip(" #") for line in files.yaml.splitlines())
    assert (
        "left out: note (nearly a value per row), photo (bytes, an image?), nothing (all NULL), same (one value), "
        "day (DATE), tags (an array), span (a reserved name)"
    ) in comments
    assert "photo" not in files.sql


def test_a_table_without_features_is_refused():
    found = profile(schema(id="STRING", at="TIMESTAMP", late="INTEGER", note="STRING"), distinct={"note": 900})
    with pytest.raises(DataError, match=r"no feature: note \(nearly a value per row\)"):
        new_model.write_model(MODEL, found)


@pytest.mark.parametrize("count", [8, 9, 60, 700])
def test_it_never_has_more_than_30_lines(tmp_path, count):
    many = {f"mean_of_a_measure_{number}": "FLOAT" for number in range(count)}
    odd = {f"tags_{number}": "STRING[]" for number in range(90)}
    files = new_model.write_model(MODEL, profile(schema(**{k: COLUMNS[k] for k in ("id", "at", "late")} | many | odd)))
    assert len(files.yaml.splitlines()) <= new_model.MAX_LINES
    spec = valid_spec(tmp_path, files)
    resolved, _ = resolve_patterns(spec, ["id", "at", *many, "late"])
    assert resolved.feature_names == list(many)
    assert [pattern.names for pattern in spec.patterns] == (["mean_*"] if count > 8 else [])


def test_many_alike_columns_are_one_entry(tmp_path):
    """By their beginning, if all of them are of one kind; each column is a feature once."""
    kinds = {f"v{number}": "FLOAT" for number in range(28)} | {"value": "FLOAT", "mean_a": "FLOAT"}
    kinds |= {f"kind_{number}": "STRING" for number in range(4)} | {f"odd_{number}": "FLOAT" for number in range(3)}
    kinds |= {"odd_name": "STRING"}
    found = profile(schema(**{k: COLUMNS[k] for k in ("id", "at", "late")} | kinds))
    spec = valid_spec(tmp_path, new_model.write_model(MODEL, found))
    assert [pattern.names for pattern in spec.patterns] == ["v*", "kind_*"]
    resolved, _ = resolve_patterns(spec, ["id", "at", *kinds, "late"])
    assert {feature.name: feature.kind for feature in resolved.features} == {
        name: "numeric" if kind == "FLOAT" else "categorical" for name, kind in kinds.items()
    }


def test_a_table_without_a_time_is_split_by_its_keys(tmp_path):
    model = NewModel(name="late", table="parcels.sent", label="late", key="id")
    columns = schema(**{name: kind for name, kind in COLUMNS.items() if name != "at"})
    require_columns(model, columns)
    assert "WHERE" not in render_profile_sql(model, "my-project.parcels.sent", columns).sql
    files = new_model.write_model(model, profile(columns, model=model))
    spec = valid_spec(tmp_path, files)
    assert (spec.data.split, spec.data.event_time, spec.data.test_percent) == ("hash", None, 10)
    assert (spec.data.checks.min_rows, spec.evaluation.promote.min_examples) == (500, 50)
    assert "@" not in files.sql


def test_names_that_yaml_takes_for_other_things_stay_names(tmp_path):
    model = NewModel(name="late", table="parcels.sent", label="y", key="no", time="on")
    columns = schema(no="STRING", on="DATE", y="BOOLEAN", off="FLOAT")
    found = profile(columns, model=model, distinct={"y": 2}, first_event=date(2024, 1, 1), last_event=date(2024, 1, 1))
    files = new_model.write_model(model, found)
    spec = valid_spec(tmp_path, files)
    assert (spec.label.name, spec.data.key, spec.data.event_time, spec.feature_names) == ("y", "no", "on", ["off"])
    assert "source.on >= DATE(@window_start)" in files.sql  # in the column's own type: partitions are pruned by it
    assert (spec.data.window_days, spec.data.test_days) == (2, 1)


def test_a_key_that_is_none_is_said():
    assert "# 40 of 1000 rows have none of their own" in new_model.write_model(MODEL, profile(key_values=960)).yaml


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("", "parcels.sent", "NAME: ''. Expected a small letter"),
        ("Late", "parcels.sent", "NAME: 'Late'. Expected a small letter"),
        ("../late", "parcels.sent", "NAME: '../late'"),
        ("late_", "parcels.sent", "NAME: name is 'late_'"),
        ("late", "sent", "TABLE: 'sent'. Expected dataset.table"),
        ("late", "parcels.sent` WHERE TRUE --", "TABLE: 'parcels.sent` WHERE TRUE --'"),
    ],
)
def test_names_that_cannot_be_are_refused(name, table, message):
    with pytest.raises(SpecError) as refused:
        NewModel(name=name, table=table, label="late", key="id", time="at")
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "lat"}, "LABEL of parcels.sent: no column 'lat'. Expected one of: id, at, late"),
        ({"key": "late"}, "LABEL of parcels.sent: 'late', which is KEY too"),
        ({"time": "weight"}, "TIME of parcels.sent: 'weight' is FLOAT. Expected one of DATE, DATETIME, TIMESTAMP"),
        ({"label": "carrier"}, "LABEL of parcels.sent: 'carrier' is STRING"),
        ({"key": "tags"}, "KEY of parcels.sent: 'tags': an array"),
        ({"key": "split"}, "KEY of parcels.sent: 'split': a reserved name"),
    ],
)
def test_columns_that_cannot_be_are_refused(changes, message):
    model = NewModel(**{"name": "late", "table": "parcels.sent", "label": "late", "key": "id", "time": "at"} | changes)
    with pytest.raises(DataError) as refused:
        require_columns(model, schema(**COLUMNS, tags="STRING[]", split="STRING"))
    assert str(refused.value).startswith(message)


def test_the_look_reads_no_column_that_cannot_be_counted():
    sql = render_profile_sql(
        MODEL, "my-project.parcels.sent", schema(**COLUMNS, tags="STRING[]", place="GEOGRAPHY")
    ).sql
    assert "APPROX_COUNT_DISTINCT(`carrier`)" in sql
    assert "tags" not in sql
    assert "FROM `my-project.parcels.sent`\nWHERE `at` IS NOT NULL" in sql


def test_an_empty_table_is_refused():
    with pytest.raises(DataError, match="no row with a at"):
        profile(row_count=0)

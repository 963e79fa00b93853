"""A first YAML and SQL file of a model, from a table's profile."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from statistics import NormalDist

import numpy as np
import pytest

from retraining.core.catalog.model_check import check_model
from retraining.core.column_types import KEY_TYPES
from retraining.core.data import new_model
from retraining.core.data.table_profile import NewModel, build_profile, render_profile_sql, require_columns
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError, SpecError
from retraining.core.planning import windows
from retraining.core.planning.plan import resolve_patterns
from retraining.core.spec.files import load_spec
from tests.support.refusals import refuses

MODEL = NewModel(name="late", table="parcels.sent", label="late", key="id", time="at")
COLUMNS = {"id": "STRING", "at": "TIMESTAMP", "late": "INTEGER", "weight": "FLOAT", "carrier": "STRING"}
DISTINCT = {"id": 1000, "at": 990, "late": 2, "weight": 500, "carrier": 9}


def schema(**types):
    return [
        Column(name=name, type=kind.removesuffix("[]"), mode="REPEATED" if kind.endswith("[]") else "NULLABLE")
        for name, kind in types.items()
    ]


TODAY = date(2024, 2, 25)


def every(pause, count, rows=20, newest=date(2024, 2, 19)):
    """Days with rows, newest first."""
    return [{"day": newest - timedelta(days=pause * place), "row_count": rows} for place in range(count)]


def profile(columns=None, *, model=MODEL, distinct=None, days=None, classes=None, quantiles=None, **row):
    columns = columns or schema(**COLUMNS)
    distinct = DISTINCT | (distinct or {})
    days = every(1, 50) if days is None else days
    newest, oldest = (datetime.combine(days[at]["day"], time(4), tzinfo=UTC) for at in (0, -1))
    answer = {
        "row_count": 1000,
        "key_values": 1000,
        "first_event": oldest,
        "last_event": newest,
        "label_low": 0,
        "label_high": 1,
    }
    countable = [column for column in columns if column.mode != "REPEATED" and column.type in KEY_TYPES]
    for place, column in enumerate(countable):
        answer |= {f"nulls_{place}": 0, f"values_{place}": distinct.get(column.name, 7)}
        answer |= {f"quantiles_{place}": (quantiles or {}).get(column.name, [])}
    counted = {"1": 400, "0": 600} if classes is None else classes
    values = [{"value": value, "row_count": rows} for value, rows in counted.items()]
    return build_profile(model, columns, answer | row, days, values)


def write(found, model=MODEL, today=TODAY):
    return new_model.write_model(model, found, today)


def valid_spec(tmp_path, files, name="late"):
    """What `make check-models` makes of the files."""
    (tmp_path / "models").mkdir(parents=True)
    (tmp_path / "sql" / name).mkdir(parents=True)
    path = tmp_path / "models" / f"{name}.yaml"
    path.write_text(files.yaml, encoding="utf-8")
    (tmp_path / "sql" / name / "examples.sql").write_text(files.sql, encoding="utf-8")
    assert check_model(path, tmp_path)
    return load_spec(path)


def test_a_model_is_written_that_the_check_takes(tmp_path):
    files = write(profile())
    spec = valid_spec(tmp_path, files)
    assert [(each.name, each.kind) for each in spec.features] == [("weight", "numeric"), ("carrier", "categorical")]
    assert (spec.label.name, spec.label.kind, spec.evaluation.metric) == ("late", "binary", "auc")
    assert (spec.data.window_days, spec.data.test_days) == (50, 6)
    assert spec.schedule == "0 3 * * 1"
    assert spec.data.checks.min_rows == 500  # of 20 rows a day over 50 days, half
    assert spec.evaluation.promote.min_examples == 60
    assert files.yaml.count("# guess") >= 8
    assert (
        "source.id,\n  source.at,\n  source.weight,\n  source.carrier,\n  source.late\nFROM `parcels.sent`" in files.sql
    )


def test_whole_numbers_from_0_are_classes(tmp_path):
    """And a model must beat the most frequent one."""
    ten = {str(digit): 200 if digit == 3 else 80 for digit in range(10)}
    spec = valid_spec(tmp_path, write(profile(label_high=9, distinct={"late": 10}, classes=ten)))
    assert (spec.label.kind, spec.label.classes) == ("multiclass", 10)
    assert (spec.evaluation.metric, spec.evaluation.min_value) == ("accuracy", 0.2565)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INTEGER", [1, 2, 3]),
        ("INTEGER", range(900)),
        ("INTEGER", [0, 1, 7, 300]),
        ("FLOAT", [0, 0.5, 7.5]),
        ("FLOAT", [0, 0.3, 1]),
        ("NUMERIC", [1, 2, 9]),
    ],
    ids=["not from 0", "too many for classes", "a count with gaps", "a measure", "a share", "an amount"],
)
def test_other_numbers_are_numbers(tmp_path, kind, values):
    ends = {"label_low": min(values), "label_high": max(values), "distinct": {"late": len(values)}}
    classes = {str(value): 1000 // len(values) for value in values} if kind == "INTEGER" else {}
    spec = valid_spec(tmp_path, write(profile(schema(**COLUMNS | {"late": kind}), classes=classes, **ends)))
    assert (spec.label.kind, spec.evaluation.metric, spec.evaluation.min_value) == ("regression", "r2", 0.05)


@pytest.mark.parametrize(("kind", "low", "high", "case"), [("INTEGER", 1, 2, "2"), ("FLOAT", -1.0, 1.0, "1.0")])
def test_two_numbers_are_a_binary_label(tmp_path, kind, low, high, case):
    ends = {"label_low": low, "label_high": high, "distinct": {"late": 2}}
    files = write(profile(schema(**COLUMNS | {"late": kind}), **ends))
    assert f"WHEN {case} THEN 1\n" in files.sql
    assert valid_spec(tmp_path, files).label.kind == "binary"


def test_texts_are_classes_by_their_frequency(tmp_path):
    """The file lists them, with whatever stands in a text; the query gives them as they are."""
    kinds = {"Adelie": 500, "Chin'strap\\": 300, "G--\nentoo": 200}
    found = profile(schema(**COLUMNS | {"late": "STRING"}), classes=kinds, distinct={"late": 3}, label_low=None)
    files = write(found)
    spec = valid_spec(tmp_path, files)
    assert (spec.label.kind, spec.label.classes, spec.evaluation.min_value) == ("multiclass", tuple(kinds), 0.525)
    assert "  source.late\nFROM" in files.sql
    assert "# guess: 3 texts, the most frequent first" in files.yaml


def test_of_two_texts_the_rarer_is_1(tmp_path):
    found = profile(schema(**COLUMNS | {"late": "STRING"}), classes={"no": 900, "yes": 100}, label_low=None)
    files = write(found)
    label = valid_spec(tmp_path, files).label
    assert (label.kind, label.classes) == ("binary", ("no", "yes"))
    assert '# guess: 1 is "yes", the rarer one' in files.yaml


def test_many_texts_are_several_lines(tmp_path):
    """Which YAML reads as one list; spaces at the end of a line are none of a text."""
    names = {f"a  name of {number}": 60 for number in range(90)}
    found = profile(schema(**COLUMNS | {"late": "STRING"}), classes=names, label_low=None)
    files = write(found)
    assert valid_spec(tmp_path, files).label.classes == tuple(names)
    assert max(map(len, files.yaml.splitlines())) < 180


@pytest.mark.parametrize("text", ["a\x01b", "a" * 201], ids=["control", "long"])
def test_a_text_that_no_file_holds_is_refused(text):
    found = profile(schema(**COLUMNS | {"late": "STRING"}), classes={"a": 500, text: 500}, label_low=None)
    with refuses(DataError, where="LABEL", expected="at most 200 characters", way_out="gives it another text"):
        write(found)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({f"name {number}": 6 for number in range(150)}, "150 texts in 900 rows. Expected at most 100 texts"),
        ({f"name {number}": 1 for number in range(1001)}, "more than 1000 texts in 1001 rows. Expected at most 100"),
        ({"a": 2, "b": 1, "c": 1}, "3 texts in 4 rows. Expected at most 100 texts, and 5 rows of each on average"),
        ({"only": 900}, "1 values. Expected two texts or more"),
    ],
    ids=["names", "many names", "few rows", "one"],
)
def test_texts_that_are_no_classes_are_refused_with_the_limit(classes, message):
    with pytest.raises(DataError) as refused:
        write(profile(schema(**COLUMNS | {"late": "STRING"}), classes=classes, label_low=None))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("key", "made"),
    [
        ("", "TO_HEX(MD5(TO_JSON_STRING(source))) AS `example_key`"),
        ("carrier, at", "TO_JSON_STRING(STRUCT(source.carrier, source.at)) AS `example_key`"),
        ("at", "CAST(source.at AS STRING) AS `example_key`"),
    ],
    ids=["a hash of the row", "several columns", "the time"],
)
def test_a_key_is_made_where_no_column_is_one(tmp_path, key, made):
    model = NewModel(name="late", table="parcels.sent", label="late", key=key, time="at")
    require_columns(model, schema(**COLUMNS))
    files = write(profile(model=model), model)
    spec = valid_spec(tmp_path, files)
    assert (spec.data.key, spec.data.event_time) == ("example_key", "at")
    assert made in files.sql
    assert made.split(" AS ")[0] in render_profile_sql(model, "my-project.parcels.sent", schema(**COLUMNS)).sql


def test_a_hash_of_the_row_says_what_it_does(tmp_path):
    """In the query, in the YAML, and whenever the models are checked; not of a key of columns."""
    model = NewModel(name="late", table="parcels.sent", label="late")
    files = write(profile(model=model, key_values=990), model)
    assert "QUALIFY ROW_NUMBER() OVER (PARTITION BY TO_JSON_STRING(source)) = 1" in files.sql
    assert files.sql.count("it may move") == 1
    assert "key: example_key  # guess" in files.yaml
    valid_spec(tmp_path, files)
    _, warnings = check_model(tmp_path / "models" / "late.yaml", tmp_path)
    assert "example_key is a hash" in "".join(warnings)
    by_columns = NewModel(name="late", table="parcels.sent", label="late", key="id,carrier")
    valid_spec(tmp_path / "two", write(profile(model=by_columns), by_columns))
    _, warnings = check_model(tmp_path / "two" / "models" / "late.yaml", tmp_path / "two")
    assert "is a hash" not in "".join(warnings)


def test_names_that_no_spec_has_get_others(tmp_path):
    """Spaces and signs as some packages write them, words that are reserved, and two that would be alike."""
    model = NewModel(name="late", table="parcels.sent", label="is late?", key="split")
    names = {"is late?": "INTEGER", "split": "STRING", "mean radius": "FLOAT", "mean-radius": "FLOAT", "1st": "FLOAT"}
    found = profile(schema(**names), model=model, distinct={"is late?": 2, "split": 1000})
    files = write(found, model)
    spec = valid_spec(tmp_path, files)
    assert (spec.label.name, spec.data.key) == ("is_late", "split_column")
    assert spec.feature_names == ["mean_radius", "mean_radius_2", "column_1st"]
    assert "source.`mean radius` AS `mean_radius`,\n  source.`mean-radius` AS `mean_radius_2`" in files.sql


@pytest.mark.parametrize(("count", "expected"), [(90, 14), (57, 14), (40, 5)])
def test_a_table_with_days_enough_is_tested_on_as_many_as_an_interval_over_days_needs(tmp_path, count, expected):
    """Rows of a day are too alike for an interval over rows; a short table has none to give."""
    spec = valid_spec(tmp_path, write(profile(days=every(1, count, rows=200), row_count=200 * count)))
    assert spec.data.test_days == expected


def test_monthly_days_are_counted_and_not_the_calendar(tmp_path):
    """Ten years of the first of each month: a window of 60 months, seven of them tested."""
    days = every(30, 120, rows=200)
    files = write(profile(days=days, row_count=24_000))
    spec = valid_spec(tmp_path, files)
    data = spec.data
    assert spec.schedule == "0 3 2 * *"
    assert (data.window_days, data.test_days, data.days) == (59 * 30 + 1, 210, None)
    assert data.checks.min_rows == 6000
    assert "# guess: 60 days" in files.yaml


@pytest.mark.parametrize(
    ("pause", "count", "expected"),
    [(1, 90, "auto"), (30, 120, "days"), (10, 20, "rows"), (365, 40, "auto"), (7, 80, "auto")],
)
def test_whole_days_are_validation_where_there_are_enough_with_rows(tmp_path, pause, count, expected):
    """The calendar alone does not say it: months have rows of few days, and of enough."""
    found = profile(days=every(pause, count, rows=200), row_count=200 * count)
    assert valid_spec(tmp_path, write(found)).data.validation_by == expected


def test_few_rows_a_day_take_a_longer_window(tmp_path):
    data = valid_spec(tmp_path, write(profile(days=every(1, 400, rows=3), row_count=1200))).data
    assert (data.window_days, data.test_days, data.checks.min_rows) == (400, 40, 600)


def test_years_are_cut_at_the_longest_window(tmp_path):
    found = profile(days=every(365, 40, rows=50), row_count=2000)
    data = valid_spec(tmp_path, files := write(found)).data
    assert (data.window_days, data.test_days) == (9 * 365 + 1, 365)
    assert "10 days with rows" in files.yaml


@pytest.mark.parametrize(
    ("classes", "percent"),
    [({"1": 400, "0": 600}, 10), ({"1": 200, "0": 800}, 20), ({"1": 3, "0": 997}, 30), ({"0": 9, "1": 9, "2": 9}, 30)],
)
def test_a_split_by_keys_tests_as_many_rows_as_can_be_judged_by(tmp_path, classes, percent):
    """Twenty positives and negatives are needed; a hash may give fewer than its share."""
    model = NewModel(name="late", table="parcels.sent", label="late", key="id")
    columns = schema(**{name: kind for name, kind in COLUMNS.items() if name != "at"})
    most = {"label_high": len(classes) - 1, "row_count": sum(classes.values())}
    found = profile(columns, model=model, classes=classes, distinct={"late": len(classes)}, **most)
    assert valid_spec(tmp_path, write(found, model)).data.test_percent == percent


@pytest.mark.parametrize(
    ("days", "found"),
    [
        (every(1, 1), "rows of 1 days"),
        (every(4000, 2), "the one before it 2013-03-08"),
        (every(1, 2, newest=TODAY), "1"),
    ],
    ids=["one day", "eleven years between", "today"],
)
def test_days_that_cannot_be_divided_are_refused(days, found):
    with pytest.raises(DataError, match=rf"TIME of parcels.sent: .*{found}.*Leave out TIME"):
        write(profile(days=days))


def test_a_table_that_ended_says_as_of_when_it_can_be_looked_at(tmp_path):
    """The window of that time ends with the newest row."""
    files = write(profile(days=every(1, 50)), today=date(2026, 11, 23))
    spec = valid_spec(tmp_path, files)
    assert (spec.data.days, spec.schedule) == ((date(2024, 1, 1), date(2024, 2, 19)), None)
    assert files.preview == "make preview MODEL=late AS_OF=2024-02-21T00:00:00Z"
    assert files.preview in files.yaml
    seen = windows.window(spec.data, windows.parse_time("2024-02-21T00:00:00Z", "test"))
    assert (seen.start, seen.end) == (date(2024, 1, 1), date(2024, 2, 20))
    assert write(profile(days=every(1, 50))).preview == "make preview MODEL=late"


def test_how_long_it_is_trained_is_left_to_the_recipe(tmp_path):
    training = valid_spec(tmp_path, write(profile())).training
    assert (training.epochs, training.batch_size, training.early_stopping_patience) == (None, None, None)
    assert training.hyperparameters == {}


def test_whole_numbers_that_count_the_rows_are_left_out(tmp_path):
    columns = schema(**COLUMNS | {"row": "INTEGER", "born": "INTEGER"})
    place = [column.name for column in columns].index("row")
    widths = {f"width_{place}": 999.0, f"width_{place + 1}": 90_000.0}
    files = write(profile(columns, distinct={"row": 1000, "born": 1000}, **widths))
    assert valid_spec(tmp_path, files).feature_names == ["weight", "carrier", "born"]
    assert "row (counts the rows)" in files.yaml


@pytest.mark.parametrize(
    ("kind", "low", "distinct"),
    [("INTEGER", 0, 1), ("BOOLEAN", 1, 1), ("FLOAT", None, 0)],
    ids=["one number", "always true", "all NULL"],
)
def test_a_label_that_cannot_be_learnt_is_refused(kind, low, distinct):
    found = profile(schema(**COLUMNS | {"late": kind}), label_low=low, label_high=low, distinct={"late": distinct})
    with refuses(DataError, where="LABEL of parcels.sent", found="'late'", way_out="Make a view"):
        write(found)


def test_what_is_no_feature_is_left_out_and_named(tmp_path):
    odd = {"note": "STRING", "photo": "BYTES", "nothing": "FLOAT", "same": "STRING", "day": "TIME", "tags": "STRING[]"}
    found = profile(schema(**COLUMNS | odd), distinct={"note": 900, "nothing": 0, "same": 1})
    files = write(found)
    assert valid_spec(tmp_path, files).feature_names == ["weight", "carrier"]
    comments = " ".join(line.strip(" #") for line in files.yaml.splitlines())
    assert (
        "left out: note (nearly a value per row), photo (bytes, an image?), nothing (all NULL), same (one value), "
        "day (TIME), tags (an array)"
    ) in comments
    assert "photo" not in files.sql


EXPONENTIAL = [-math.log(1 - share) for share in np.linspace(0, 0.999, 21)]
NORMAL = np.linspace(-2, 2, 21)
LOG_NORMAL = np.exp(1.5 * np.array([NormalDist().inv_cdf(min(max(at / 20, 0.001), 0.999)) for at in range(21)]))


@pytest.mark.parametrize(
    ("values", "distinct", "transform"),
    [
        pytest.param(LOG_NORMAL, 500, "log1p", id="log-normal"),
        pytest.param([0] * 12 + [1, 1, 2, 2, 3, 5, 8, 20, 400], 90, "log1p", id="counts"),
        pytest.param(LOG_NORMAL / 1000, 500, "clip", id="small-amounts"),
        pytest.param(sorted(-LOG_NORMAL), 500, "clip", id="below-0"),
        pytest.param([-500, *NORMAL[1:]], 500, "clip", id="one-wild"),
        pytest.param(EXPONENTIAL, 500, None, id="exponential"),
        pytest.param(NORMAL, 500, None, id="normal"),
        pytest.param(NORMAL + 100, 500, None, id="far-from-0"),
        pytest.param(np.linspace(0, 1, 21), 500, None, id="uniform"),
        pytest.param([0] * 20 + [400], 2, None, id="few-values"),
        pytest.param([5] * 21, 30, None, id="no-spread"),
        pytest.param([], 500, None, id="not-counted"),
    ],
)
def test_a_number_gets_the_transform_that_its_tail_asks_for(tmp_path, values, distinct, transform):
    """As `make check-models` takes it."""
    found = profile(distinct={"weight": distinct}, quantiles={"weight": [float(value) for value in values]})
    weight, _ = valid_spec(tmp_path, write(found)).features
    assert (weight.name, weight.transform) == ("weight", transform)


@pytest.mark.parametrize(("distinct", "buckets"), [(1000, None), (1001, 1000), (10_000, 1000), (10_001, 10_000)])
def test_more_categories_than_the_vocabulary_are_hashed(tmp_path, distinct, buckets):
    found = profile(distinct={"carrier": distinct}, row_count=1_000_000, key_values=1_000_000)
    assert valid_spec(tmp_path, write(found)).features[1].hash_buckets == buckets


def test_further_times_are_read_by_their_parts(tmp_path):
    """Cycles alone: days go on beyond those of the training, months are hardly ever all in a window."""
    times = {"sent": "TIMESTAMP", "local": "DATETIME", "day": "DATE"}
    spec = valid_spec(tmp_path, write(profile(schema(**COLUMNS | times))))
    assert {feature.name: feature.parts for feature in spec.features if feature.kind == "time"} == {
        "sent": ("hour", "weekday"),
        "local": ("hour", "weekday"),
        "day": ("weekday",),
    }


def test_alike_columns_of_several_tails_are_one_entry_without_a_transform(tmp_path):
    """Few lines are worth more than guesses column by column; where all have one tail, the entry has its transform."""
    many = {f"mean_{number}": "FLOAT" for number in range(12)}
    columns = schema(**{name: COLUMNS[name] for name in ("id", "at", "late")} | many)
    tails = {name: [float(value) for value in LOG_NORMAL] for name in many}
    counted = dict.fromkeys(many, 500)
    whole = write(profile(columns, quantiles=tails, distinct=counted))
    assert '{names: "mean_*", kind: numeric, transform: log1p}' in whole.yaml
    mixed = write(profile(columns, quantiles={"mean_3": tails["mean_3"]}, distinct=counted))
    assert '{names: "mean_*", kind: numeric}' in mixed.yaml


def test_a_table_without_features_is_refused():
    found = profile(schema(id="STRING", at="TIMESTAMP", late="INTEGER", note="STRING"), distinct={"note": 900})
    with refuses(DataError, found="note (nearly a value"):
        write(found)


@pytest.mark.parametrize("count", [8, 9, 60, 700])
def test_it_never_has_more_than_30_lines(tmp_path, count):
    many = {f"mean_of_a_measure_{number}": "FLOAT" for number in range(count)}
    odd = {f"tags_{number}": "STRING[]" for number in range(90)}
    files = write(profile(schema(**{k: COLUMNS[k] for k in ("id", "at", "late")} | many | odd)))
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
    spec = valid_spec(tmp_path, write(found))
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
    files = write(profile(columns, model=model), model)
    spec = valid_spec(tmp_path, files)
    assert (spec.data.split, spec.data.event_time, spec.data.test_percent) == ("hash", None, 10)
    assert spec.schedule is None
    assert (spec.data.checks.min_rows, spec.evaluation.promote.min_examples) == (500, 50)
    assert "@" not in files.sql


def test_names_that_yaml_takes_for_other_things_stay_names(tmp_path):
    model = NewModel(name="late", table="parcels.sent", label="y", key="no", time="on")
    columns = schema(no="STRING", on="DATE", y="BOOLEAN", off="FLOAT")
    found = profile(columns, model=model, distinct={"y": 2}, days=every(1, 2))
    files = write(found, model)
    spec = valid_spec(tmp_path, files)
    assert (spec.label.name, spec.data.key, spec.data.event_time, spec.feature_names) == ("y", "no", "on", ["off"])
    assert "source.on >= DATE(@window_start)" in files.sql  # in the column's own type: partitions are pruned by it
    assert (spec.data.window_days, spec.data.test_days) == (2, 1)


def test_a_key_that_is_none_is_said():
    assert "# 40 of 1000 rows" in write(profile(key_values=960)).yaml


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
        ({"label": "at"}, "LABEL of parcels.sent: 'at', which is TIME too"),
        ({"label": "made"}, "LABEL of parcels.sent: 'made' is DATE"),
        ({"key": "id,id"}, "KEY of parcels.sent: 'id', which is KEY too"),
        ({"key": "tags"}, "KEY of parcels.sent: 'tags': an array"),
        (
            {"time": "year"},
            "TIME of parcels.sent: 'year' is INTEGER",
        ),
    ],
)
def test_columns_that_cannot_be_are_refused(changes, message):
    model = NewModel(**{"name": "late", "table": "parcels.sent", "label": "late", "key": "id", "time": "at"} | changes)
    with pytest.raises(DataError) as refused:
        require_columns(model, schema(**COLUMNS, tags="STRING[]", made="DATE", year="INTEGER"))
    assert str(refused.value).startswith(message)


def test_a_year_says_how_it_becomes_a_time():
    """Or that it may be left out."""
    with refuses(DataError, way_out=("DATE(CAST(year AS INT64), 1, 1)", "leave out TIME")):
        require_columns(
            NewModel(name="late", table="a.b", label="late", time="year"), schema(late="FLOAT", year="FLOAT")
        )


def test_the_look_reads_no_column_that_cannot_be_counted():
    sql = render_profile_sql(
        MODEL, "my-project.parcels.sent", schema(**COLUMNS, tags="STRING[]", place="GEOGRAPHY")
    ).sql
    assert "APPROX_COUNT_DISTINCT(source.carrier)" in sql
    assert "tags" not in sql
    assert "place" not in sql
    assert "FROM `my-project.parcels.sent` AS source\nWHERE source.at IS NOT NULL" in sql


def test_an_empty_table_is_refused():
    with pytest.raises(DataError, match="no row with a at"):
        profile(row_count=0)

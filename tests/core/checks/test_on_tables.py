"""Every check that looks at rows, on run tables in the local BigQuery: passing, failing, and on its bound."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from retraining.core import documents as d
from retraining.core import settings
from retraining.core.checks import quarantine
from retraining.core.data import label_association, statistics
from retraining.core.data.columns import own_columns
from tests.support.small_model import check_small_data, make_plan, make_spec

# Ten days of 24 rows, an hour apart; a quarter of the labels is 1; distance is the row's number, but for one, so that
# it is not taken for it.
ROWS = """
SELECT
  CONCAT('key-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:30:00+00', INTERVAL i HOUR) AS at,
  IF(MOD(i, 3) = 0, 'AA', 'UA') AS carrier,
  IF(i = 101, 101.5, CAST(i AS FLOAT64)) AS distance,
  IF(MOD(i, 4) = 0, 1, 0) AS late,
  DATE(TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:30:00+00', INTERVAL i HOUR)) AS span,
  IF(MOD(i, 9) = 5, 'validation', 'train') AS part,
  0 AS shard,
  i AS row_hash,
  MOD(i, 7) AS day,
  i AS pair,
  'x' AS feature
FROM UNNEST(GENERATE_ARRAY(0, 239)) AS i
"""

OTHER_LABELS = {
    "multiclass": {"metric": "log_loss", "max_value": 9},
    "regression": {"metric": "rmse", "max_value": 9},
}


class Table:
    """A run table, made from the rows above with some columns replaced."""

    def __init__(self, client: Any, name: str, environ: Any) -> None:
        self._client, self._name, self._environ = client, name, environ

    def make(self, change: str = "", where: str = "") -> None:
        """Write it. `change` stands in SELECT * REPLACE, where `row_hash` is the row's number."""
        rows = f"SELECT * {f'REPLACE ({change})' if change else ''} FROM ({ROWS}) {where}"
        self._client.query_and_wait(f"CREATE OR REPLACE TABLE `{self._name}` AS {rows}")

    def plan(self, label: Mapping[str, Any] | None = None, **checks: Any) -> d.Plan:
        """A run over it; `label` is of another kind than binary."""
        data = make_spec().data.model_dump(mode="json")
        rate = {} if label and label["kind"] == "regression" else {"label_rate": [0.1, 0.5]}
        data["checks"] = {"min_rows": 100, **rate, **checks}
        other = {"label": {"name": "late", **label}, "evaluation": OTHER_LABELS[label["kind"]]} if label else {}
        return make_plan(make_spec(data=data, **other), settings=settings.load(self._environ))

    def snapshot(self) -> d.Snapshot:
        """Of it, as far as checks read it."""
        schema = [field.to_api_repr() for field in self._client.get_table(self._name).schema]
        return d.Snapshot.model_construct(table=self._name, columns=own_columns(schema), left_out=None)

    def rows(self, plan: d.Plan, left_out: tuple[date, ...] = ()) -> list[dict[str, Any]]:
        """Rows of the statistics query."""
        from google.cloud import bigquery

        query = statistics.render_statistics_sql(plan, self.snapshot(), left_out)
        config = bigquery.QueryJobConfig.from_api_repr({"query": query.to_api()})
        return [dict(row) for row in self._client.query_and_wait(query.sql, job_config=config)]

    def statistics(self, plan: d.Plan) -> d.Statistics:
        """As the task takes them: a second time when days are to be left out."""
        rows = self.rows(plan)
        days = statistics.build_days(plan, rows)
        bad = quarantine.days_to_leave_out(plan, days)
        rows = self.rows(plan, bad) if bad else rows
        return statistics.build_statistics(plan, self.snapshot(), rows, days, bad)

    def judge(self, label: Mapping[str, Any] | None = None, **checks: Any) -> d.Checks:
        """Statistics and verdict."""
        plan = self.plan(label, **checks)
        return check_small_data(plan, self.snapshot(), self.statistics(plan))


@pytest.fixture(scope="module")
def table(local_cloud):
    """A run table whose checks all pass, for each test to make again."""
    from google.cloud import bigquery

    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset(local_cloud.dataset, exists_ok=True)
    return Table(client, f"{local_cloud.project}.{local_cloud.dataset}.run_checked", local_cloud.env)


def names(judged: d.Checks) -> list[str]:
    return [finding.check for finding in judged.findings]


def test_one_statement_counts_days_keys_labels_and_events(table):
    table.make()
    found = table.statistics(table.plan(ranges={"distance": [10, 200]}, max_null_fraction={"carrier": 0}))
    assert [(day.span.isoformat(), day.rows) for day in found.days] == [(f"2013-11-{9 + i:02}", 24) for i in range(10)]
    assert found.keys == d.KeyStatistics(distinct=240, nulls=0, in_two_parts=0, also_tested=0)
    assert {name: split.rows for name, split in found.splits.items()} == {"train": 171, "validation": 21, "test": 48}
    assert found.days[0].label == d.DayLabels(nulls=0, outside=0, rate=0.25)
    assert found.days[0].features == {
        "carrier": d.DayFeature(nulls=0),
        "distance": d.DayFeature(nulls=0, outside=10, min=0.0, max=23.0),
    }
    assert found.days[9].features["distance"].outside == 24
    assert found.days[9].last_event.isoformat() == "2013-11-18T23:30:00+00:00"
    test = found.splits["test"]
    assert test.first_event
    assert test.last_event
    assert (test.first_event.isoformat(), test.last_event.isoformat()) == (
        "2013-11-17T00:30:00+00:00",
        "2013-11-18T23:30:00+00:00",
    )
    assert test.label == d.LabelStatistics(mean=0.25, nulls=0)
    assert check_small_data(table.plan(), table.snapshot(), found).findings == ()


def test_a_feature_that_is_the_label_is_named(table):
    """A number that turns it round and a category that spells it; not what only leans on it."""
    table.make("1 - 2.0 * IF(MOD(row_hash, 4) = 0, 1, 0) AS distance, IF(MOD(row_hash, 4) = 0, 'AA', 'UA') AS carrier")
    found = table.judge()
    assert [(item.check, item.feature, item.severity) for item in found.findings] == [
        ("label_leak", "carrier", "warn"),
        ("label_leak", "distance", "warn"),
    ]
    table.make("IF(MOD(row_hash, 4) = 0 OR row_hash = 7, 'AA', 'UA') AS carrier, MOD(row_hash, 8) * 1.0 AS distance")
    assert table.judge().findings == ()


def test_a_number_that_is_known_after_the_label_is_named(table):
    """Minutes of delay beside the label late: hardly correlated, and yet the label by a threshold."""
    table.make("IF(late = 1, 16 + EXP(MOD(row_hash, 13)), MOD(row_hash, 11) - 5) AS distance")
    (finding,) = table.judge().findings
    assert (finding.check, finding.feature, finding.severity) == ("label_leak", "distance", "warn")
    assert "tells the rows of late 1 from those of 0, with an AUC of 1.0000" in finding.message
    table.make("IF(MOD(row_hash, 4) = 0, NULL, row_hash * 1.0) AS distance, 0 AS late", "WHERE TRUE")
    assert "label_leak" not in names(table.judge())


def leaks_of(judged: d.Checks) -> list[tuple[str | None, str]]:
    return [(item.feature, item.message.split(":")[0]) for item in judged.findings if item.check == "label_leak"]


def test_a_feature_that_is_the_label_of_a_regression_is_named(table):
    """By its rank, where the feature is its logarithm; and a category with a number each, or nearly so."""
    label = {"kind": "regression"}
    table.make("EXP(row_hash / 9.0) AS late, IF(row_hash = 3, NULL, row_hash + 0.5) AS distance")
    assert leaks_of(table.judge(label)) == [
        ("distance", "distance alone explains 0.99978 of the variance of the rank of late")
    ]
    table.make("MOD(row_hash, 3) * 10.0 + MOD(row_hash, 7) * 0.05 AS late, CONCAT('c', MOD(row_hash, 3)) AS carrier")
    assert leaks_of(table.judge(label)) == [("carrier", "carrier alone explains 0.9998 of the variance of late")]
    table.make("MOD(row_hash, 3) * 10.0 + MOD(row_hash, 7) * 0.6 AS late, CONCAT('c', MOD(row_hash, 3)) AS carrier")
    assert leaks_of(table.judge(label)) == []


def test_a_feature_that_is_the_class_is_named(table):
    """A number with an interval for each class, whatever their order; not one that tells one class alone."""
    label = {"kind": "multiclass", "classes": 3}
    table.make(
        "MOD(row_hash, 3) AS late, CASE MOD(row_hash, 3) WHEN 0 THEN 9 WHEN 1 THEN -5 ELSE 2 END"
        " + MOD(row_hash, 17) / 17 AS distance"
    )
    assert leaks_of(table.judge(label)) == [
        ("distance", "distance alone tells the classes of late apart, with an AUC of 1.0000")
    ]
    table.make("MOD(row_hash, 3) AS late, IF(MOD(row_hash, 3) = 0, 9, 2) + MOD(row_hash, 17) / 17 AS distance")
    assert leaks_of(table.judge(label)) == []


def test_categories_that_are_the_class_but_for_a_row_are_named(table, monkeypatch):
    """By the share of entropy that they take away: of 171 rows one, which is found with 1,000."""
    label = {"kind": "multiclass", "classes": 3}
    table.make("MOD(row_hash, 3) AS late, IF(row_hash = 2, 'c0', CONCAT('c', MOD(row_hash, 3))) AS carrier")
    assert leaks_of(table.judge(label)) == []
    monkeypatch.setattr(label_association, "LEAKING_INFORMATION", 0.9)
    assert leaks_of(table.judge(label)) == [("carrier", "carrier alone explains 0.9721 of the entropy of late")]


def test_a_feature_like_a_key_is_named(table):
    """A text of each row, and the rows' own numbers; not numbers as many, which are no count."""
    table.make("CONCAT('N', row_hash) AS carrier, row_hash * 1.0 AS distance")
    found = [item for item in table.judge(on_new_category="ignore").findings if item.check == "key_like"]
    assert [(item.feature, item.severity) for item in found] == [("carrier", "warn"), ("distance", "warn")]
    table.make("CONCAT('N', MOD(row_hash, 99)) AS carrier, row_hash * 3.0 AS distance")
    assert "key_like" not in names(table.judge())


def test_days_say_how_many_of_their_rows_have_a_feature(table):
    """The newest first, of features that are missing somewhere."""
    table.make("IF(span >= '2013-11-17' AND MOD(row_hash, 4) > 0, NULL, distance) AS distance")
    assert table.statistics(table.plan()).fills == {"distance": (0.25, 0.25, *[1.0] * 8)}


def test_many_bad_rows_are_found_by_their_checks_at_once(table):
    """Each by its own; one statement counts them all."""
    table.make(
        "CASE row_hash WHEN 51 THEN NULL WHEN 52 THEN 'key-53' WHEN 60 THEN 'key-59' WHEN 61 THEN 'key-239' ELSE id END"
        " AS id, CASE WHEN row_hash = 70 THEN NULL WHEN row_hash = 71 THEN 2 ELSE late END AS late,"
        " IF(span = '2013-11-12', NULL, IF(row_hash = 51, -0.5, distance)) AS distance,"
        " IF(row_hash = 239, 'ZZ', carrier) AS carrier,"
        " CASE row_hash WHEN 80 THEN TIMESTAMP '2013-11-17 00:00:00+00' ELSE at END AS at"
    )
    found = table.judge(max_null_fraction={"distance": 0.1}, ranges={"distance": [0, 239]}, max_age_hours=0.5)
    assert [(item.check, item.message.split(":")[0]) for item in found.findings] == [
        ("day_overlap", "events of train are outside its days"),
        ("null_keys", "1 examples have no key, so no split for life"),
        (
            "duplicate_keys",
            "3 rows repeat a key (1 keys stand in the test days and before them)",
        ),
        ("key_in_two_parts", "1 keys stand in train and in validation"),
        ("label_nulls", "1 examples of train have no label"),
        ("label_range", "1 labels of train are no class"),
        ("max_null_fraction", "12.3% of distance is missing in train"),
        ("max_null_fraction", "14.3% of distance is missing in validation"),
        ("ranges", "1 values of distance are outside 0 to 239, on 2013-11-11 (1)"),
        ("new_category", "carrier has 1 values in the test days that no training example has"),
    ]


def test_several_days_are_left_out_each_for_its_own_reason(table):
    """And all else is as if they had never been."""
    table.make(
        "IF(row_hash = 51, NULL, id) AS id, CASE WHEN row_hash = 75 THEN NULL WHEN row_hash = 100 THEN 7"
        " WHEN span = '2013-11-14' THEN 0 ELSE late END AS late,"
        " IF(row_hash IN (0, 239), -1, IF(row_hash BETWEEN 168 AND 171, NULL, distance)) AS distance"
    )
    checks = ["null_keys", "label_nulls", "label_range", "label_rate", "max_null_fraction", "ranges"]
    wanted = {"ranges": {"distance": [0, 239]}, "max_null_fraction": {"distance": 0.1}}
    plan = table.plan(**wanted, min_rows=50, severity=dict.fromkeys(checks, "quarantine"))
    found = table.statistics(plan)
    judged = check_small_data(plan, table.snapshot(), found)
    assert judged.passed
    assert {(item.check, str(item.span)) for item in judged.findings if item.span} == {
        ("ranges", "2013-11-09"),
        ("null_keys", "2013-11-11"),
        ("label_nulls", "2013-11-12"),
        ("label_range", "2013-11-13"),
        ("label_rate", "2013-11-14"),
        ("max_null_fraction", "2013-11-16"),
        ("ranges", "2013-11-18"),
    }
    assert {item.severity for item in judged.findings} == {"quarantine"}
    assert [day.day for day in judged.quarantined] == [9, 11, 12, 13, 14, 16, 18]
    assert judged.volume == d.Volume(rows=72, days=3, data_version=1)
    assert (found.keys.distinct, len(found.days)) == (72, 10)
    table.make(where="WHERE EXTRACT(DAY FROM span) IN (10, 15, 17)")
    assert table.statistics(table.plan(**wanted)).splits == found.splits


LIMITS = [
    ("row_hash = 50, NULL, id", "id", {}, "null_keys", "1 examples have no key"),
    ("row_hash = 50, 'key-51', id", "id", {}, "duplicate_keys", "1 rows repeat a key: an example"),
    ("row_hash = 50, 'key-239', id", "id", {}, "duplicate_keys", "(1 keys stand in the test days and before them)"),
    ("row_hash = 50, NULL, late", "late", {}, "label_nulls", "1 examples of validation have no label"),
    ("row_hash = 51, 2, late", "late", {}, "label_range", "1 labels of train are no class"),
    ("row_hash < 120, 1, late", "late", {}, "label_rate", "of the labels of train are positive, outside 0.1 to 0.5"),
    ("row_hash < 24, NULL, distance", "distance", {"max_null_fraction": {"distance": 0.1}}, "max_null_fraction", ""),
    ("row_hash = 51, -0.5, distance", "distance", {"ranges": {"distance": [0, 239]}}, "ranges", "on 2013-11-11 (1)"),
    ("span < '2013-11-17', 'UA', carrier", "carrier", {}, "constant", "carrier is 'UA' in every training example"),
    ("row_hash = 239, 'ZZ', carrier", "carrier", {}, "new_category", "'ZZ'"),
    ("span < '2013-11-17', NULL, distance", "distance", {}, "all_null", "missing in every training example"),
]


@pytest.mark.long
@pytest.mark.parametrize(("change", "column", "checks", "check", "words"), LIMITS, ids=[item[3] for item in LIMITS])
def test_a_bad_row_is_found_by_its_check(table, change, column, checks, check, words):
    table.make(f"IF({change}) AS {column}")
    found = [finding for finding in table.judge(**checks).findings if finding.check == check]
    assert found
    assert words in found[0].message


def test_a_key_in_train_and_validation_is_found(table):
    """By its parts, although the hash makes it impossible: it is the snapshot that is proven."""
    table.make("IF(row_hash = 50, 'key-51', id) AS id")
    judged = table.judge(severity={"duplicate_keys": "warn"})
    assert [(finding.check, finding.severity) for finding in judged.findings] == [
        ("duplicate_keys", "warn"),
        ("key_in_two_parts", "block"),
    ]
    table.make("IF(row_hash = 51, 'key-53', id) AS id")  # both in train
    assert names(table.judge(severity={"duplicate_keys": "warn"})) == ["duplicate_keys"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "split"),
    [
        ("IF(row_hash = 51, TIMESTAMP '2013-11-17 00:00:00+00', at) AS at", "train"),
        ("IF(row_hash = 239, TIMESTAMP '2013-11-16 23:59:59+00', at) AS at", "test"),
        ("IF(row_hash = 239, TIMESTAMP '2013-11-19 00:00:00+00', at) AS at", "test"),
        ("IF(row_hash = 51, TIMESTAMP '2013-11-08 23:59:59+00', at) AS at", "train"),
    ],
    ids=["trained on a test day", "tested on a training day", "after the window", "before the window"],
)
def test_days_of_splits_are_proven_by_the_events_own_times(table, change, split):
    table.make(change)
    (finding,) = table.judge().findings
    assert (finding.check, finding.severity) == ("day_overlap", "block")
    assert f"events of {split} are outside its days" in finding.message


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        "IF(row_hash = 51, TIMESTAMP '2013-11-16 23:59:59+00', at) AS at",
        "IF(row_hash = 239, TIMESTAMP '2013-11-17 00:00:00+00', at) AS at",
        "DATE(at) AS at",
        "DATETIME(at) AS at",
    ],
    ids=["last second before", "first second", "dates", "datetimes"],
)
def test_the_bounds_of_days_themselves_are_fine(table, change):
    table.make(change)
    assert table.judge().findings == ()


@pytest.mark.long
@pytest.mark.parametrize(("hours", "found"), [(0.5, []), (0.49, ["max_age_hours"])], ids=["on the bound", "over"])
def test_the_newest_event_may_be_so_old(table, hours, found):
    """The newest of the rows is half an hour before the window's end."""
    table.make()
    assert names(table.judge(max_age_hours=hours)) == found


@pytest.mark.long
@pytest.mark.parametrize(
    ("bounds", "found"),
    [([0, 239], []), ([0.5, 239], ["ranges"]), ([0, 238.5], ["ranges"])],
    ids=["the extremes themselves", "low", "high"],
)
def test_both_bounds_of_a_range_are_in_it(table, bounds, found):
    table.make()
    assert names(table.judge(ranges={"distance": bounds})) == found


def test_missing_and_not_a_number_are_in_no_range_and_count_as_missing(table):
    table.make("CASE row_hash WHEN 51 THEN NULL WHEN 52 THEN CAST('NaN' AS FLOAT64) ELSE distance END AS distance")
    checks = {"ranges": {"distance": [0, 239]}, "max_null_fraction": {"distance": 2 / 171}}
    plan = table.plan(**checks)
    found = table.statistics(plan)
    assert check_small_data(plan, table.snapshot(), found).findings == ()
    assert found.days[2].features["distance"] == d.DayFeature(nulls=2, min=48, max=71)


def test_an_infinite_value_leaves_its_day_out(table):
    """And does not stop the statistics of the others."""
    table.make("IF(row_hash = 51, CAST('inf' AS FLOAT64), distance) AS distance")
    judged = table.judge(ranges={"distance": [0, 239]}, severity={"ranges": "quarantine"})
    assert judged.passed
    assert judged.quarantined == (date(2013, 11, 11),)
    assert "2013-11-11, which has 48" in judged.findings[0].found


QUARANTINES = [
    ("IF(row_hash = 51, NULL, id) AS id", {"severity": {"null_keys": "quarantine"}}),
    ("IF(row_hash = 51, NULL, late) AS late", {"severity": {"label_nulls": "quarantine"}}),
    ("IF(row_hash = 51, 7, late) AS late", {"severity": {"label_range": "quarantine"}}),
    ("IF(span = '2013-11-11', 0, late) AS late", {"severity": {"label_rate": "quarantine"}}),
    (
        "IF(row_hash BETWEEN 48 AND 51, NULL, distance) AS distance",
        {"max_null_fraction": {"distance": 0.1}, "severity": {"max_null_fraction": "quarantine"}},
    ),
    (
        "IF(row_hash = 51, -1, distance) AS distance",
        {"ranges": {"distance": [0, 239]}, "severity": {"ranges": "quarantine"}},
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("change", "checks"), QUARANTINES, ids=[next(iter(c["severity"])) for _, c in QUARANTINES])
def test_a_bad_day_is_left_out_and_all_else_is_as_if_it_had_never_been(table, change, checks):
    table.make(change)
    plan = table.plan(**checks)
    found = table.statistics(plan)
    judged = check_small_data(plan, table.snapshot(), found)
    assert judged.passed
    assert [(item.check, item.severity, item.span) for item in judged.findings] == [
        (next(iter(checks["severity"])), "quarantine", date(2013, 11, 11))
    ]
    assert judged.quarantined == found.quarantined == (date(2013, 11, 11),)
    assert sum(split.rows for split in found.splits.values()) == 216
    assert (found.keys.distinct, len(found.days)) == (216, 10)
    table.make(where="WHERE span != '2013-11-11'")
    never = table.statistics(table.plan(**{**checks, "severity": {}}))
    assert never.splits == found.splits


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "words"),
    [("span >= '2013-11-17'", "all test days"), ("span < '2013-11-17'", "all training days")],
    ids=["tests", "training"],
)
def test_a_quarantine_that_leaves_nothing_blocks(table, where, words):
    table.make(f"IF({where}, -1, distance) AS distance")
    judged = table.judge(ranges={"distance": [0, 239]}, severity={"ranges": "quarantine"})
    assert not judged.passed
    assert judged.quarantined == ()
    (finding,) = [item for item in judged.findings if item.check == "quarantine"]
    assert words in finding.message


@pytest.mark.long
def test_what_is_left_must_pass(table):
    """The days are fine one by one, but with the bad one gone too little is left."""
    table.make("IF(row_hash = 51, -1, distance) AS distance")
    judged = table.judge(min_rows=217, ranges={"distance": [0, 239]}, severity={"ranges": "quarantine"})
    assert [(item.check, item.severity) for item in judged.findings] == [
        ("ranges", "quarantine"),
        ("min_rows", "block"),
    ]


@pytest.mark.long
def test_a_days_volume_is_looked_at_when_asked_for(table):
    table.make(where="WHERE span != '2013-11-11' OR row_hash < 53")  # 5 of 24 rows
    assert table.judge().findings == ()
    judged = table.judge(severity={"day_volume": "quarantine"})
    assert judged.quarantined == (date(2013, 11, 11),)
    assert "5 examples" in judged.findings[0].message
    assert table.judge(severity={"day_volume": "warn"}, max_volume_change=0.8).findings == ()


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "CAST(distance AS STRING) AS distance",
            "distance is STRING and cannot be a numeric feature: cast it in the query",
        ),
        ("[distance] AS distance", "distance is an array"),
        ("CAST(late AS STRING) AS late", "late is STRING"),
        ("CAST(carrier AS BYTES) AS carrier", "carrier is BYTES"),
    ],
    ids=["number", "array", "label", "category"],
)
def test_a_wrong_type_is_a_finding_not_an_error_of_the_query(table, change, words):
    table.make(change)
    judged = table.judge(ranges={"distance": [0, 239]}, max_null_fraction={"distance": 0, "carrier": 0})
    assert names(judged) == ["types"]
    assert words in judged.findings[0].message


def test_truth_values_are_numbers(table):
    table.make("MOD(row_hash, 2) = 0 AS distance, late = 1 AS late")
    plan = table.plan(ranges={"distance": [0, 1]})
    found = table.statistics(plan)
    assert check_small_data(plan, table.snapshot(), found).findings == ()
    distance = found.splits["train"].features["distance"]
    assert isinstance(distance, d.NumericStatistics)
    assert (distance.min, distance.max, found.splits["train"].label.mean) == (0, 1, pytest.approx(0.25, abs=0.05))

"""The frozen set: made once, found unchanged, of the examples' own columns."""

from __future__ import annotations

import pytest

from retraining.core.data import columns, frozen_set, snapshot
from retraining.core.errors import ContractError, DataError
from retraining.core.jobs import requests
from retraining.core.naming import bigquery, storage
from tests.support.refusals import refuses
from tests.support.small_model import SCHEMA, make_plan, make_snapshot, make_spec

ROWS = [{"row_count": 40, "bit_xor": "17", "hash_sum": "123.000", "shards": 1}]
GOLDEN_SQL = "SELECT * FROM source.frozen;"


@pytest.fixture
def golden_plan():
    """A run of the small model with a frozen set."""
    data = {**make_spec().data.model_dump(mode="json"), "golden_query": "late/golden.sql"}
    return make_plan(make_spec(data=data), frozen_set_sql=GOLDEN_SQL)


def test_another_text_is_another_table_another_record_and_another_run(golden_plan):
    other = make_plan(golden_plan.spec, frozen_set_sql="SELECT * FROM source.others")
    assert bigquery.frozen_set_table(golden_plan) != bigquery.frozen_set_table(other)
    assert storage.frozen_set_uri(golden_plan) != storage.frozen_set_uri(other)
    assert golden_plan.run_key != other.run_key
    sha = golden_plan.golden_query.sha256[:16]
    assert bigquery.frozen_set_table(golden_plan) == f"my-project.retraining.golden_late__{sha}"
    assert storage.frozen_set_uri(golden_plan) == f"gs://my-retraining/late/golden/{sha}.json"


def test_a_plan_without_one_is_as_before(small_plan):
    assert small_plan.golden_query is None
    assert "frozen" not in snapshot.render_snapshot_sql(small_plan).sql
    with pytest.raises(ContractError, match="no golden_query"):
        bigquery.frozen_set_table(small_plan)


def test_the_table_is_made_once_and_its_keys_stay_out_of_the_run_table(golden_plan):
    query = frozen_set.render_frozen_set_sql(golden_plan)
    assert query.sql.startswith(f"CREATE TABLE IF NOT EXISTS `{bigquery.frozen_set_table(golden_plan)}`")
    assert {parameter.name for parameter in query.parameters} == {"rows_per_shard", "bytes_per_shard"}
    assert "SELECT * FROM source.frozen\n" in query.sql
    taken = snapshot.render_snapshot_sql(golden_plan).sql
    assert f"FROM `{bigquery.frozen_set_table(golden_plan)}`" in taken
    assert "frozen.frozen_key IS NULL" in taken
    assert frozen_set.render_frozen_set_check_sql(golden_plan).sql == GOLDEN_SQL


def test_what_it_held_is_what_it_must_hold(golden_plan):
    recorded = frozen_set.build_frozen_set(golden_plan, ROWS)
    frozen_set.require_frozen(frozen_set.build_frozen_set(golden_plan, ROWS), recorded, "gs://b/golden.json")
    changed = frozen_set.build_frozen_set(golden_plan, [{**ROWS[0], "bit_xor": "18"}])
    with refuses(
        DataError, found=("frozen set has changed", "40 rows"), expected="gs://b/golden.json", way_out="a new text"
    ):
        frozen_set.require_frozen(changed, recorded, "gs://b/golden.json")


def test_an_empty_one_is_refused(golden_plan):
    with refuses(DataError, where="late/golden.sql", found="no example", way_out="drop the empty table"):
        frozen_set.build_frozen_set(golden_plan, [{"row_count": 0, "bit_xor": None, "hash_sum": None, "shards": None}])


def test_its_columns_are_the_examples(golden_plan):
    own = columns.own_columns(SCHEMA)
    more = [*SCHEMA, {"name": "note", "type": "STRING", "mode": "NULLABLE"}]
    frozen_set.require_same_columns(golden_plan, own, more)
    required = [{**column, "mode": "REQUIRED"} for column in SCHEMA]
    frozen_set.require_same_columns(golden_plan, own, required)
    wrong = [{**SCHEMA[0], "type": "INTEGER"}, *SCHEMA[2:]]
    with refuses(DataError, found=("id (INTEGER, not STRING)", "at (missing, not TIMESTAMP)")):
        frozen_set.require_same_columns(golden_plan, own, wrong)


def test_it_goes_to_the_export_and_to_the_duel(golden_plan):
    frozen = frozen_set.build_frozen_set(golden_plan, ROWS)
    work = frozen_set.frozen_set_work(frozen, [])
    assert (work.action, work.rows, work.shards) == ("export", 40, 1)
    assert frozen_set.frozen_set_work(frozen, [frozen.fingerprint]).action == "reuse"
    taken = make_snapshot(golden_plan, frozen=work)
    assert taken.explain[-1].startswith("golden: exported, 40 rows")
    assert requests.export_job(golden_plan, taken).request.golden == work
    assert requests.evaluation_job(golden_plan, None).request.golden is True

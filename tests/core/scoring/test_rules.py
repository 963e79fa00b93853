"""A scoring's rules as functions of values: what is read, what is sent, what counts as whole, what is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import Predictions, ScoringInput, ScoringPlan
from retraining.core.errors import ConflictError, ContractError, DataError, PlanError, SpecError
from retraining.core.scoring import answers, requests, source
from retraining.core.scoring.answers import DestinationClaim
from retraining.core.scoring.plan import with_params
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.scoring import Scoring
from tests.support.contracts import EXAMPLES
from tests.support.refusals import refuses

SPEC = load_spec(include_path() / "models" / "flight_delays.yaml")


def plan(name: str = "query", **changes: Any) -> ScoringPlan:
    """An example's plan, changed."""
    raw = json.loads((EXAMPLES / f"scoring_plan__{name}.json").read_bytes())
    return ScoringPlan.parse(json.dumps(raw | changes))


PREDICTIONS = Predictions.parse((EXAMPLES / "predictions__timed.json").read_bytes())
INSTANCES = ScoringInput.parse((EXAMPLES / "scoring_input__text_key.json").read_bytes())


def column(name: str, type_: str, mode: str = "NULLABLE") -> dict[str, Any]:
    """A column as BigQuery's API gives it."""
    return {"name": name, "type": type_, "mode": mode}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"destination": "a.b"}, "expected query, table or files, one of them"),
        ({"destination": "a.b", "query": "x.sql", "table": "a.c"}, "one of them"),
        ({"destination": "a.B", "table": "A.b"}, "which is the source"),
        ({"destination": "b", "table": "a.b"}, "destination"),
        ({"destination": "a.b", "table": "a.c", "replicas": 0}, "replicas"),
        ({"destination": "a.b", "query": "x.txt"}, "query"),
        ({"destination": "gs://b-b/out", "files": "gs://b-b/in/*.jsonl.gz"}, "unpack them"),
    ],
)
def test_a_section_that_cannot_be_is_refused(values, words) -> None:
    """Before any run."""
    with pytest.raises(ValueError, match=words):
        Scoring.model_validate(values)


def test_a_source_of_the_form_takes_the_place_of_the_specs() -> None:
    """Whichever it is; the rest stays."""
    assert with_params(SPEC, {"query": None}) == SPEC.scoring
    changed = with_params(SPEC, {"table": "a.b", "version": "previous"})
    assert (changed.table, changed.query, changed.version) == ("a.b", None, "previous")
    with pytest.raises(PlanError, match="which is the source"):
        with_params(SPEC, {"table": "a.b", "destination": "a.b"})
    with pytest.raises(SpecError, match="no section scoring"):
        with_params(SPEC.model_copy(update={"scoring": None}), {})


def test_the_section_decides_nothing_of_a_retraining() -> None:
    """Its run key is the same with and without."""
    from retraining.core.planning.plan import deciding_values
    from tests.support.fakes.settings import SETTINGS

    query = plan().source.query
    assert query is not None
    without = SPEC.model_copy(update={"scoring": None})
    assert deciding_values(SPEC, query, None, SETTINGS) == deciding_values(without, query, None, SETTINGS)


def test_instances_are_what_a_request_would_hold() -> None:
    """Missing numbers as NaN, other missing values as empty text, truths as numbers."""
    columns = source.require_columns(
        plan(), [column("flight_id", "STRING"), column("carrier", "STRING"), column("distance", "BOOL")]
    )
    sql = " ".join(source.render_input_sql(plan(), columns).sql.split())
    assert "IFNULL(CAST(examples.`carrier` AS STRING), '') AS `carrier`" in sql
    assert "IFNULL(CAST(CAST(examples.`distance` AS INT64) AS FLOAT64), CAST('NaN' AS FLOAT64)) AS `distance`" in sql
    image = " ".join(source.render_input_sql(plan("table"), {}).sql.split())
    assert "STRUCT(IFNULL(TO_BASE64(examples.`image`), '') AS b64) AS `image` FROM examples" in image


def test_a_version_that_takes_the_key_is_sent_it() -> None:
    """The key is a column of the instances that the job sends; another one with the same stands for the row."""
    features = [feature.model_dump(mode="json") for feature in plan().features]
    taken = {"name": "row_key", "kind": "numeric"}
    for more, named in (([], "row_key"), ([taken], "row_key_")):
        asked = plan(key_input="STRING", features=features + more)
        sql = " ".join(source.render_input_sql(asked, {}).sql.split())
        assert f"SELECT examples.`flight_id`, examples.`flight_id` AS `{named}`," in sql
        job = requests.batch_job(asked, INSTANCES).custom_job
        assert job["instance_config"] == {"instance_type": "object", "key_field": named}
    whole = [column("flight_id", "INT64"), column("carrier", "STRING"), column("distance", "FLOAT")]
    with refuses(DataError, found=("flight_id is INTEGER", "not STRING")):
        source.require_columns(plan(key_input="STRING"), whole)
    assert source.require_columns(plan(key_input="INTEGER"), whole)


def test_a_sequence_is_as_long_as_the_model_reads() -> None:
    """Its last values, or its first; a number that is missing is NaN, a text is empty; an array is asked for."""
    series = {"name": "temps", "kind": "sequence", "of": "numeric", "length": 24, "keep": "last"}
    words = {"name": "words", "kind": "sequence", "of": "categorical", "length": 8, "keep": "first"}
    asked = plan(features=[series, words])
    columns = source.require_columns(
        asked,
        [column("flight_id", "INT64"), column("temps", "FLOAT", "REPEATED"), column("words", "STRING", "REPEATED")],
    )
    sql = " ".join(source.render_input_sql(asked, columns).sql.split())
    last = "[SAFE_OFFSET(at + GREATEST(0, IFNULL(ARRAY_LENGTH(examples.`temps`), 0) - 24))]"
    assert f"IFNULL(CAST(examples.`temps`{last} AS FLOAT64), CAST('NaN' AS FLOAT64))" in sql
    assert "IFNULL(CAST(examples.`words`[SAFE_OFFSET(at)] AS STRING), '')" in sql
    assert ["GENERATE_ARRAY(0, 23)" in sql, "GENERATE_ARRAY(0, 7)" in sql] == [True, True]
    with pytest.raises(DataError, match="temps is no array"):
        source.require_columns(
            asked, [column("flight_id", "INT64"), column("temps", "FLOAT"), column("words", "STRING")]
        )


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([column("flight_id", "FLOAT")], "the key flight_id is FLOAT.*no column 'carrier'; no column 'distance'"),
        ([column("flightid", "STRING")], "no column 'flight_id', the key .Did you mean 'flightid'"),
        (
            [column("flight_id", "INT64"), column("carrier", "STRING", "REPEATED"), column("distance", "FLOAT")],
            "carrier is an array",
        ),
    ],
)
def test_all_columns_that_do_not_fit_are_named_at_once(columns, words) -> None:
    """With the nearest name."""
    with pytest.raises(DataError, match=words):
        source.require_columns(plan(), columns)


def test_a_table_of_addresses_is_refused_with_the_way_out() -> None:
    """A scoring sends the images themselves, as a request to the endpoint does."""
    features = [{"name": "photo", "kind": "image", "height": 8, "width": 8, "objects": "gs://photos/cats/"}]
    named = plan(features=features)
    with refuses(DataError, found=("photo has addresses", "JSON lines")):
        source.require_columns(named, [column("flight_id", "STRING"), column("photo", "STRING")])
    assert source.require_columns(named, [column("flight_id", "STRING"), column("photo", "BYTES")])


def test_other_columns_of_a_table_do_not_matter() -> None:
    """Not even of a type or name that a training refuses."""
    found = source.require_columns(
        plan(),
        [
            column("flight_id", "INT64"),
            column("carrier", "INTEGER"),
            column("distance", "NUMERIC"),
            column("place", "GEOGRAPHY"),
            column("split", "STRING"),
        ],
    )
    assert found["flight_id"].type == "INTEGER"


def test_the_job_asks_for_what_the_plan_says() -> None:
    """One request of the service; the key comes back, the rows do not."""
    job = requests.batch_job(plan(), INSTANCES, "me@example.com").custom_job
    assert job["manual_batch_tuning_parameters"] == {"batch_size": 64}
    assert job["dedicated_resources"]["max_replica_count"] == 2
    assert job["output_config"]["bigquery_destination"] == {"output_uri": "bq://my-project.retraining"}
    assert job["labels"]["retraining-run"] == plan().run_key
    assert job["service_account"] == "me@example.com"


def test_a_day_or_the_whole_table_is_replaced() -> None:
    """By one statement."""
    claim = DestinationClaim(dag_id="score__a", dag_run_id="1", table="p.d.t", number=7)
    day = answers.render_write_sql(plan(), "STRING", claim).sql
    assert "MERGE `my-project.retraining.flight_delay_scores` AS kept" in day
    assert "WHEN NOT MATCHED BY SOURCE AND kept.scored_on = @day THEN\n  DELETE" in day
    whole = answers.render_write_sql(plan("table"), "STRING", claim).sql
    assert "MERGE `my-project.digits.scores` AS kept" in whole
    assert "WHEN NOT MATCHED BY SOURCE THEN\n  DELETE" in whole
    assert "scored_on" not in whole
    kept = answers.render_answers_sql(plan("table"), PREDICTIONS, is_text=False).sql
    assert "TO_JSON_STRING(predictions.prediction)" in kept
    assert "CREATE OR REPLACE TABLE `my-project.retraining.scored_" in kept


def test_a_destination_of_this_form_is_taken_again() -> None:
    """One of any other is not; nor may two columns have one name."""
    columns = [column("flight_id", "STRING"), column("score", "FLOAT"), column("answer_json", "STRING")]
    columns += [column("model_version", "STRING"), column("scored_as_of", "TIMESTAMP"), column("scored_on", "DATE")]
    answers.require_destination(plan(), "STRING", columns)
    answers.require_destination(plan(), "STRING", None)
    with refuses(DataError, expected="flight_id INTEGER"):
        answers.require_destination(plan(), "INTEGER", columns)
    with pytest.raises(DataError, match="two columns 'score'"):
        answers.require_destination(plan(key="score"), "STRING", None)


def test_an_answer_for_each_is_whole() -> None:
    """Nothing is said of it."""
    row = {"answers": 812, "missing": 0, "missing_keys": [], "unreadable": 0, "example": "0.5"}
    answers.require_whole(plan(), INSTANCES, PREDICTIONS, row, None)
    with refuses(DataError, found=("1 of 812", "flight_id 7")):
        answers.require_whole(plan(), INSTANCES, PREDICTIONS, row | {"missing": 1, "missing_keys": ["7"]}, None)


def test_a_claim_is_its_runs_own() -> None:
    """As stored."""
    mine = DestinationClaim(dag_id="score__a", dag_run_id="1", table="p.d.t")
    mine.require_mine(DestinationClaim.parse(mine.to_bytes(), "gs://b/claim"), "gs://b/claim")
    of_before = b'{"dag_id": "score__a", "dag_run_id": "1", "table": "p.d.t"}'
    assert DestinationClaim.parse(of_before, "gs://b/claim") == mine
    for data in (b"", b"{}", b"[1]", b'{"dag_id": 1e999}', b'{"dag_id": "a", "dag_run_id": "1", "table": "t", "x": 1}'):
        with refuses(ContractError, where="gs://b/claim", found="no claim", way_out="Delete it"):
            DestinationClaim.parse(data, "gs://b/claim")
    with refuses(ConflictError, found="run 2 of score__b"):
        mine.require_mine(DestinationClaim(dag_id="score__b", dag_run_id="2", table="p.d.t"), "gs://b/claim")

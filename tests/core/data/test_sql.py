"""SQL and its parameters."""

from __future__ import annotations

from datetime import date

import jinja2
import pytest

from retraining.core.data import sql
from retraining.core.data.sql import is_lasting, query_failure
from retraining.core.errors import DataError, JobError, SettingsError, SpecError
from retraining.core.spec.sql_file import without_semicolon


def test_parameters_are_written_as_the_rest_interface_wants_them():
    query = sql.Query(
        sql="SELECT @a, @b",
        parameters=(
            sql.Parameter(name="a", type="INT64", value=3),
            sql.Parameter(name="b", type="FLOAT64", value=(1.5, 2)),
        ),
    )
    assert query.to_api() == {
        "query": "SELECT @a, @b",
        "useLegacySql": False,
        "parameterMode": "NAMED",
        "queryParameters": [
            {"name": "a", "parameterType": {"type": "INT64"}, "parameterValue": {"value": "3"}},
            {
                "name": "b",
                "parameterType": {"type": "ARRAY", "arrayType": {"type": "FLOAT64"}},
                "parameterValue": {"arrayValues": [{"value": "1.5"}, {"value": "2"}]},
            },
        ],
    }


def test_names_are_quoted():
    assert sql.quote_column("distance") == "`distance`"
    assert sql.quote_table("my-project.retraining.run_1") == "`my-project.retraining.run_1`"


@pytest.mark.parametrize("name", ["a`b", "a b", "1a", "", "a;", "a\n", "a'", "größe"])
def test_a_column_that_could_leave_its_quotes_is_refused(name):
    with pytest.raises(SpecError):
        sql.quote_column(name)
    with pytest.raises(SpecError):
        sql.plain_identifier(name)


@pytest.mark.parametrize("name", ["a.b", "my-project.d.t`; DROP", "my-project.d.t\n", "my-project..t"])
def test_a_table_that_could_leave_its_quotes_is_refused(name):
    with pytest.raises(SpecError):
        sql.quote_table(name)


def test_a_template_without_its_values_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        sql.render("snapshot.sql.j2", table="my-project.d.t")


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT 1;", "\nSELECT 1 ;\n;\n"])
def test_a_query_loses_its_semicolon(sql):
    assert without_semicolon(sql) == "SELECT 1"


def test_midnight_is_written_as_bigquery_reads_it():
    assert sql.midnight(date(2013, 11, 9)) == "2013-11-09T00:00:00Z"


@pytest.mark.parametrize(
    ("reason", "kind", "message"),
    [
        ("backendError", JobError, "The task's next try runs another job"),
        ("quotaExceeded", JobError, "wait until the quota is there again"),
        ("bytesBilledLimitExceeded", DataError, "at most RETRAINING_MAX_BYTES_BILLED bytes"),
        ("accessDenied", SettingsError, "the role with the permission"),
        ("notFound", DataError, "clear plan and what follows it"),
        ("invalidQuery", DataError, "Correct the SQL or the table it names."),
    ],
)
def test_who_must_mend_what(reason, kind, message):
    failure = query_failure("fingerprint", {"reason": reason, "message": "no"})
    assert type(failure) is kind
    assert message in str(failure)
    assert is_lasting({"reason": reason}) is (kind is not JobError)


def test_a_table_of_another_location_is_told_as_that():
    """BigQuery looks in the statement's location alone, and says no more than that it found nothing."""
    message = "Not found: Dataset shop:orders was not found in location us-central1"
    error = query_failure("q.sql", {"reason": "notFound", "message": message})
    assert "Correct the SQL" in str(error)
    assert "another location" in str(error)
    assert "us-central1" in str(error)
    assert "another location" not in str(
        query_failure("q.sql", {"reason": "notFound", "message": "Not found: Table t"})
    )

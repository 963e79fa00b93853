"""SQL and its parameters."""

from __future__ import annotations

from datetime import date

import jinja2
import pytest

from retraining.core.data import sql
from retraining.core.errors import SpecError
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

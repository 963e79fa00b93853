"""A run is ordered of an Airflow that answers as its REST API does."""

from __future__ import annotations

import pytest

from retraining.__main__ import main
from retraining.commands.shell import Shell


@pytest.fixture
def ask(include, capsys):
    """What a command prints."""

    def ask(*words, code=0):
        assert main(words, Shell(find_include=lambda: include)) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return ask


def test_a_run_is_ordered_with_its_params(ask, airflow):
    out = ask("run", "late", "--param", "as_of=2013-11-20T03:00:00Z", "--param", "force=true")
    assert out == "retrain__late: run manual__1 ordered\n"
    conf = {"as_of": "2013-11-20T03:00:00Z", "force": True}
    body = {"logical_date": None, "conf": conf}
    assert airflow.asked == [("/api/v2/dags/retrain__late/dagRuns", "Bearer t0", body)]


def test_a_token_needs_no_login_and_a_paused_dag_is_said(ask, airflow, monkeypatch):
    monkeypatch.setenv("AIRFLOW_TOKEN", "mine")
    monkeypatch.delenv("AIRFLOW_USERNAME")
    monkeypatch.setattr(airflow, "paused", True)
    assert "retrain__late is paused" in ask("run", "late")
    assert airflow.asked[0][1] == "Bearer mine"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("AIRFLOW_PASSWORD", "wrong", 'HTTP 401: {"detail": "Invalid credentials"}'),
        ("AIRFLOW_PASSWORD", "", "AIRFLOW_PASSWORD: not set. Expected a login of Airflow"),
        ("AIRFLOW__API__BASE_URL", "", "AIRFLOW__API__BASE_URL: not set"),
        ("AIRFLOW__API__BASE_URL", "http://127.0.0.1:1", "no answer"),
    ],
)
def test_an_airflow_that_refuses_is_said(ask, airflow, monkeypatch, variable, value, message):
    monkeypatch.setenv(variable, value)
    assert message in ask("run", "late", code=1)
    assert airflow.asked == []


def test_a_param_without_a_value_is_refused(ask, airflow):
    assert "--param: 'force'. Expected name=value" in ask("run", "late", "--param", "force", code=1)
    assert airflow.asked == []

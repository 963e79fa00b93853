"""A version is promoted from the shell: another stage's Airflow is asked for a run that takes it over."""

from __future__ import annotations

import pytest

from retraining.__main__ import main
from retraining.commands.shell import Shell
from retraining.core.naming.vertex import CHAMPION, model_name
from tests.support.fakes.cloud import FakeCloud

KEY = "20131120t030000z-0123456789ab"
STAGES = """
stages:
  staging: {project: my-project, region: us-west3, bucket: my-staging}
  production: {bucket: my-production}
"""


class Asked:
    """The command, with a cloud in memory in the place of each stage's."""

    def __init__(self, include, capsys):
        (include / "environments.yaml").write_text(STAGES)
        self.cloud, self.environs = FakeCloud(), []
        self._include, self._capsys = include, capsys

    def connect_to(self, environ):
        """Return the cloud, whatever the variables say; they are kept."""
        self.environs.append(environ)
        return self.cloud

    def __call__(self, *words, code=0, source="staging", target="production"):
        """Return what the command prints."""
        shell = Shell(find_include=lambda: self._include, connect_to=self.connect_to)
        assert main(["promote-version", "late", "--from", source, "--to", target, *words], shell) == code
        captured = self._capsys.readouterr()
        return captured.err if code else captured.out


@pytest.fixture
def promote(include, capsys):
    return Asked(include, capsys)


def test_the_targets_airflow_is_asked_once_for_each_version(promote, airflow):
    out = promote("--run", KEY)
    run_id = f"promote__staging__{KEY}"
    body = {"logical_date": None, "conf": {"taken_from": f"staging/{KEY} to production"}, "dag_run_id": run_id}
    assert airflow.asked == [("/api/v2/dags/retrain__late/dagRuns", "Bearer t0", body)]
    assert out == f"retrain__late of stage production: run manual__1 ordered, for run {KEY} of stage staging\n"
    assert promote.environs == []


def test_without_a_run_it_is_the_champion_of_the_source(promote, airflow, monkeypatch):
    """Asked where that stage is, with this shell's variables for what its entry does not say."""
    monkeypatch.setenv("RETRAINING_BUCKET", "my-production")
    monkeypatch.setenv("RETRAINING_DATASET", "retraining")
    promote.cloud.registry.add(KEY, CHAMPION, model_name=model_name("p", "r", "late"))
    promote()
    assert airflow.asked[0][2]["conf"] == {"taken_from": f"staging/{KEY} to production"}
    (environ,) = promote.environs
    assert environ["RETRAINING_STAGE"] == "staging"
    assert environ["RETRAINING_DATASET"] == "retraining"
    assert "RETRAINING_BUCKET" not in environ


def test_a_second_order_of_the_same_version_is_airflows_refusal(promote, airflow, monkeypatch):
    def refuse(self, body, code=200):
        self.send_response(409 if "dag_run_id" in body else code)
        self.end_headers()
        self.wfile.write(b'{"is_paused": false, "access_token": "t0", "detail": "already exists"}')

    monkeypatch.setattr(airflow, "answer", refuse)
    assert "HTTP 409" in (message := promote("--run", KEY, code=1))
    assert "That run was ordered before" in message


@pytest.mark.parametrize(
    ("words", "stages", "message"),
    [
        (["--run", KEY], {"source": "stagin"}, "--from: no stage 'stagin'"),
        (["--run", KEY], {"target": "prod"}, "--to: no stage 'prod'"),
        (["--run", KEY], {"target": "staging"}, "--from and --to: stage staging twice"),
        (["--run", "yesterday"], {}, "--run: 'yesterday'. Expected the key of a run"),
        ([], {}, "late in stage staging: no champion. Expected a version that a run made. Name a run with --run"),
    ],
)
def test_what_cannot_be_ordered_is_refused(promote, airflow, words, stages, message):
    assert message in promote(*words, code=1, **stages)
    assert airflow.asked == []


def test_a_model_that_there_is_not_and_no_stages_are_refused(promote, include, capsys):
    shell = Shell(find_include=lambda: include)
    words = ["--from", "staging", "--to", "production", "--run", KEY]
    assert main(["promote-version", "lat", *words], shell) == 1
    assert "MODEL: no model 'lat'" in capsys.readouterr().err
    (include / "environments.yaml").unlink()
    assert main(["promote-version", "late", *words], shell) == 1
    assert "--from: a stage, and no" in capsys.readouterr().err

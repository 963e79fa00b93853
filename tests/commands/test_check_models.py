"""The command behind `make check-models`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from retraining.__main__ import main
from retraining.commands.check import region_hint
from retraining.core.catalog import model_check
from retraining.core.spec import files
from tests.support.small_model import SPEC_YAML, SQL

ROOT = Path(__file__).resolve().parents[2]


def include(tmp_path, **files):
    (tmp_path / "models").mkdir()
    (tmp_path / "sql" / "late").mkdir(parents=True)
    (tmp_path / "sql" / "late" / "examples.sql").write_text(SQL, encoding="utf-8")
    for name, text in files.items():
        (tmp_path / "models" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return ["check-models", "--include", str(tmp_path)]


def test_the_repositorys_models_are_valid(capsys):
    assert main(["check-models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "flight_delays: ok (13 features, wide_deep, 0 3 * * *)" in lines
    assert "departures: ok (7 features, gru, no schedule)" in lines
    assert "digits: ok (1 features, cnn, no schedule)" in lines


def test_each_broken_model_is_named_and_the_good_ones_too(tmp_path, capsys):
    arguments = include(tmp_path, late=SPEC_YAML, one=SPEC_YAML, two=SPEC_YAML.replace("data:", "date:"))
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == "late: ok (2 features, wide_deep, 0 3 * * *)\n"
    assert "one.yaml, line 2" in captured.err
    assert "'late'" in captured.err
    assert "unknown key 'date'" in captured.err


def test_a_region_without_the_accelerator_is_an_error(tmp_path, capsys):
    gpu = "training: {model: wide_deep, cluster: {tier: BASIC_GPU}, runtime: {framework: '2.15'},"
    arguments = include(tmp_path, late=SPEC_YAML.replace("training: {model: wide_deep,", gpu))
    assert main([*arguments, "--region", "us-central1"]) == 0
    assert "region" not in capsys.readouterr().err
    assert main([*arguments, "--region", "us-west3"]) == 1
    assert "late.yaml, training.cluster: NVIDIA_TESLA_T4 in us-west3" in capsys.readouterr().err


def test_what_no_check_foresaw_does_not_hide_the_other_models(tmp_path, capsys, monkeypatch):
    arguments = include(tmp_path, late=SPEC_YAML, one=SPEC_YAML)
    read = files.load_spec

    def load_spec(path, stage=None):
        if path.stem == "one":
            raise RecursionError("too deep")
        return read(path, stage)

    monkeypatch.setattr(model_check, "load_spec", load_spec)
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("late: ok")
    assert "one.yaml: RecursionError: too deep" in captured.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no file 'late.py'"),
        ("def no_loss(:", "it is no Python"),
        ("import no_such_package\ndef no_loss(run): ...", "no_such_package, which is not installed"),
        ("def no_los(run): ...", "no function 'no_loss'"),
        ("def no_loss(run): ...\nraise ValueError('no such day')", "cannot be imported: ValueError: no such day"),
        ("def no_loss(run): ...\nraise SystemExit(0)", "it ended the program"),
    ],
    ids=["no file", "no Python", "not installed", "no function", "raises", "ends the program"],
)
def test_a_gate_of_ones_own_that_cannot_be_imported_is_named_and_hides_no_other_model(tmp_path, capsys, text, message):
    gated = SPEC_YAML.replace(
        "min_value: 0.6,", 'min_value: 0.6, gates: [{name: no_loss, function: "late.py:no_loss"}],'
    )
    arguments = include(tmp_path, gated=gated.replace("name: late", "name: gated", 1), late=SPEC_YAML)
    (tmp_path / "gates").mkdir()
    if text is not None:
        (tmp_path / "gates" / "late.py").write_text(text)
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == "late: ok (2 features, wide_deep, 0 3 * * *)\n"
    assert captured.err.startswith("gated.yaml, evaluation.gates, no_loss")
    assert message in captured.err


@pytest.mark.parametrize("machine", ["n1-standard-3", "n7-standard-4", "cloud-tpu"])
def test_an_endpoints_machine_that_does_not_exist_is_an_error(tmp_path, capsys, machine):
    text = SPEC_YAML + f"deployment: {{machine: {machine}}}\n"
    assert main(include(tmp_path, late=text)) == 1
    assert f"late.yaml, deployment.machine: '{machine}'. Expected a machine type" in capsys.readouterr().err


def test_a_region_that_does_not_exist_is_an_error(tmp_path, capsys):
    assert main([*include(tmp_path, late=SPEC_YAML), "--region", "us-central7"]) == 1
    assert "RETRAINING_REGION: no region 'us-central7'. Expected one of: africa-south1" in capsys.readouterr().err


def test_without_a_region_it_says_that_it_did_not_look(tmp_path, capsys):
    assert main(include(tmp_path, late=SPEC_YAML)) == 0
    assert region_hint() in capsys.readouterr().err


def test_what_it_says_of_the_region_is_a_command_that_gives_it():
    """Followed as it stands."""
    command = region_hint().split(" looks")[0].split()
    done = subprocess.run([*command, "--dry-run"], cwd=ROOT, text=True, capture_output=True, check=True)
    assert "--region us-central1" in done.stdout


def test_a_missing_query_is_an_error(tmp_path, capsys):
    arguments = include(tmp_path, late=SPEC_YAML.replace("late/examples", "late/other"))
    assert main(arguments) == 1
    assert "'late/other.sql'" in capsys.readouterr().err


def test_no_model_and_no_folder_are_errors(tmp_path, capsys):
    assert main(include(tmp_path)) == 1
    assert main(["check-models", "--include", str(tmp_path / "models")]) == 1
    assert "no such folder" in capsys.readouterr().err


def test_the_schema_for_editors_is_written(tmp_path):
    path = tmp_path / "model.schema.json"
    assert main(["check-models", "--json-schema", str(path)]) == 0
    assert json.loads(path.read_text(encoding="utf-8"))["properties"]["features"]


def test_a_query_that_ignores_as_of_is_taken_with_a_warning(tmp_path, capsys):
    """Only examples without a time may; the others must use it."""
    timed = "  event_time: at\n  window_days: 10\n  test_days: 2\n"
    arguments = include(tmp_path, late=SPEC_YAML.replace(timed, "  split: hash\n"))
    query = tmp_path / "sql" / "late" / "examples.sql"
    for sql, warned in (("SELECT 1 FROM a", True), ("SELECT 1 FROM a WHERE b < @as_of", False)):
        query.write_text(sql, encoding="utf-8")
        assert main(arguments) == 0
        assert (
            "warning: late.yaml, data.query, late/examples.sql: it ignores @as_of" in capsys.readouterr().err
        ) == warned


def test_what_only_the_cloud_knows_is_said(tmp_path, capsys):
    """Which columns a pattern names, and whether there are files."""
    files = "  files: {uris: gs://a-bucket/*.csv, format: csv, columns: [{name: id, type: STRING}]}\n"
    text = SPEC_YAML.replace("  key: id\n", f"{files}  key: id\n")
    text = text.replace("{name: distance, kind: numeric}", "{names: 'dist*', kind: numeric}")
    assert main(include(tmp_path, late=text)) == 0
    out, err = capsys.readouterr()
    assert "late: ok (1 features and dist*, " in out
    assert "late.yaml: not looked at: which columns the features dist* are (make check-models RETR" in err
    assert "late.yaml: not looked at: whether there are files gs://a-bucket/*.csv, and" in err


@pytest.mark.parametrize(("day", "warned"), [("2025-11-13", False), ("2025-11-14", True)])
def test_a_runtime_that_ended_is_warned_of(tmp_path, capsys, day, warned):
    """On its last day it is there; afterwards `plan` would refuse each run."""
    spec = SPEC_YAML.replace(
        "training: {model: wide_deep,", "training: {model: wide_deep, runtime: {framework: '2.15'},"
    )
    assert main([*include(tmp_path, late=spec), "--day", day]) == 0
    ended = "warning: late.yaml, training.runtime.framework: 2.15: its pre-built container ended on 2025-11-14"
    assert (ended in capsys.readouterr().err) == warned


def test_what_the_cloud_is_asked_next_is_not_called_unseen(tmp_path, capsys):
    """With a project the same command looks at it, so that the two do not contradict each other."""
    spec = SPEC_YAML.replace("{name: distance,", "{names: 'dist*',")
    arguments = include(tmp_path, late=spec)
    assert main(arguments) == 0
    assert "looked at: which columns" in capsys.readouterr().err
    assert main([*arguments, "--cloud"]) == 0
    assert "not looked at" not in capsys.readouterr().err


def test_the_months_budgets_are_checked_beside_the_models(tmp_path, capsys):
    arguments = include(tmp_path, late=SPEC_YAML)
    file = tmp_path / "budgets.yaml"
    file.write_text("total: 100\neach_model: 20\n")
    assert main(arguments) == 0
    said = "budgets.yaml: a month's budget of 1 of 1 models, of 0 teams, 100.00 USD of all; what goes over is refused"
    assert said in capsys.readouterr().out.splitlines()
    for text, words in (
        ("models: {lat: 5}", "budgets.yaml, models: 'lat'. Expected one of: late"),
        ("currency: EUR", "budgets.yaml, line 1: currency is 'EUR'"),
    ):
        file.write_text(text + "\n")
        assert main(arguments) == 1
        assert words in capsys.readouterr().err


def test_quotas_are_checked_beside_the_models_and_models_against_them(tmp_path, capsys):
    """A wrong file is said once, a job that never fits by its model's line."""
    arguments = [*include(tmp_path, late=SPEC_YAML), "--region", "us-central1"]
    file = tmp_path / "quotas.yaml"
    file.write_text("regions: {us-central1: {jobs: 4, accelerators: {NVIDIA_L4: 0}}}\n")
    assert main(arguments) == 0
    said = "quotas.yaml: us-central1 4 jobs, 0 NVIDIA_L4; a job waits for at most 24 hours"
    assert said in capsys.readouterr().out.splitlines()
    for text, words in (
        ("regions: {us-centra1: {jobs: 4}}", "quotas.yaml, regions: 'us-centra1'. Expected one of: "),
        ("regions: {us-central1: {job: 4}}", "quotas.yaml, line 1: unknown key"),
        (
            "regions: {us-central1: {jobs: 0}}",
            "quotas.yaml, regions.us-central1: the job export of late needs 1 jobs of 0",
        ),
    ):
        file.write_text(text + "\n")
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert error.count("quotas.yaml") == 1, error
        assert words in error

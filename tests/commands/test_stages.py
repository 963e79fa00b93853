"""Stages at the shell: `diff`, and `check-models` in every one of them."""

from __future__ import annotations

import pytest

from retraining.__main__ import main
from tests.support.small_model import SPEC_YAML

FILE = """
stages:
  dev:
    region: us-west3
    bucket: my-dev
    all_models:
      data: {sample_percent: 20}
      notify: {owners: [dev@example.com]}
      scoring: {destination: dev.answers}
  staging:
    bucket: my-staging
  production:
"""


@pytest.fixture
def staged(include):
    """The small model's files with three stages, and a second model that no stage changes on its own."""
    (include / "environments.yaml").write_text(FILE)
    (include / "models" / "other.yaml").write_text(SPEC_YAML.replace("name: late\ndesc", "name: other\ndesc"))
    return include


def run(include, *arguments):
    return main([*arguments, "--include", str(include)])


def test_diff_names_each_key_and_what_follows(staged, capsys):
    assert run(staged, "diff", "dev", "staging", "late") == 0
    assert capsys.readouterr().out.splitlines() == [
        "dev → staging",
        "  region  us-west3 → not set",
        "  bucket  my-dev → my-staging",
        "late: 2 keys differ, 1 of them for another run key",
        "  data.sample_percent  20.0 → 100.0                another run key",
        '  notify.owners        ["dev@example.com"] → null  the same run key',
        "The environment's name is in every run key too: no two stages share a run.",
    ]


def test_diff_of_all_models_and_of_equal_ones(staged, capsys):
    assert run(staged, "diff", "dev", "production") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "keys differ" in line] == [
        f"{name}: 2 keys differ, 1 of them for another run key" for name in ("late", "other")
    ]
    (staged / "environments.yaml").write_text("stages: {a: null, b: {models: {late: {priority: 9}}}}")
    assert run(staged, "diff", "a", "b") == 0
    assert capsys.readouterr().out.splitlines()[:5] == [
        "a → b",
        "  both are where their environments' variables say",
        "late: 1 key differs, none of them for a run key",
        "  priority  5 → 9  the same run key",
        "other: the same in both",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dve", "staging"), ("OLD: no stage 'dve'", "Expected one of: dev, staging, production", "'dev'")),
        (("dev", "prod"), ("NEW: no stage 'prod'",)),
        (("dev", "staging", "lat"), ("MODEL: no model 'lat'", "Expected one of: late, other", "'late'")),
    ],
)
def test_diff_refuses_what_there_is_not(staged, capsys, arguments, words):
    assert run(staged, "diff", *arguments) == 1
    message = capsys.readouterr().err
    assert all(word in message for word in words), message


def test_diff_without_a_file_is_refused(include, capsys):
    assert run(include, "diff", "dev", "production") == 1
    assert "OLD: a stage, and no" in capsys.readouterr().err


def test_every_model_is_checked_in_every_stage(staged, capsys):
    assert run(staged, "check-models") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ok")[0] for line in lines if ": ok" in line] == [
        *("late", "other", "late in dev", "other in dev", "late in staging", "other in staging"),
        *("late in production", "other in production"),
    ]
    assert "environments.yaml: dev (all models), staging (the models as they are), production" in "\n".join(lines)


def test_what_only_one_stage_has_wrong_is_found(staged, capsys):
    framework = SPEC_YAML.replace("training: {", "training: {runtime: {framework: '2.15'}, ")
    (staged / "models" / "late.yaml").write_text(framework)
    gpu = "sample_percent: 20}\n      training: {cluster: {tier: BASIC_GPU}}"
    (staged / "environments.yaml").write_text(FILE.replace("sample_percent: 20}", gpu))
    (staged / "models" / "other.yaml").unlink()
    assert run(staged, "check-models", "--region", "us-central1") == 1
    captured = capsys.readouterr()
    assert "NVIDIA_TESLA_T4 in us-west3" in captured.err  # the stage's region, not the one that was given
    assert "late in production: ok" in captured.out
    assert "late in dev" not in captured.out


def test_a_wrong_file_is_named_once_and_hides_no_model(staged, capsys):
    (staged / "environments.yaml").write_text(f"{FILE}    models: {{lat: {{priority: 1}}}}\n")
    assert run(staged, "check-models") == 1
    captured = capsys.readouterr()
    assert captured.err.count("no model 'lat'") == 1
    ok = "ok (2 features, wide_deep, 0 3 * * *)"
    assert captured.out.splitlines() == [f"late: {ok}", f"other: {ok}"]


def test_the_preview_sees_the_stage(staged, monkeypatch):
    from retraining.commands.shell import Shell

    monkeypatch.setenv("RETRAINING_STAGE", "dev")
    assert Shell(find_include=lambda: staged).spec("late").data.sample_percent == 20

"""A team's stages: `include/environments.yaml` over the models' files and over the settings."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from retraining.core import settings
from retraining.core.errors import SettingsError, SpecError
from retraining.core.planning import plan as planning
from retraining.core.spec import stages
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.hooks.cloud import Cloud
from tests.support.refusals import refuses
from tests.support.small_model import ENVIRON, SPEC_YAML, make_plan

DOCS = (Path(__file__).resolve().parents[3] / "docs" / "stages.md").read_text(encoding="utf-8")
FILE = """
stages:
  dev:
    project: my-project-dev
    bucket: my-dev
    all_models:
      schedule: null
      data: {sample_percent: 5, checks: {min_rows: 10}}
      tuning: {max_trials: 2}
      training: {cluster: {tier: BASIC}}
    models:
      late:
        data: {sample_percent: 20}
        deployment: {approval: never}
  production:
    project: my-project
    bucket: my-retraining
    results_bucket: my-results
"""
LARGE = SPEC_YAML.replace(
    "training: {model: wide_deep,",
    "training: {model: wide_deep, cluster: {tier: CUSTOM, chief: {machine: n1-standard-8}, workers: {count: 1, "
    "machine: n1-standard-8}},",
)


@pytest.fixture
def include(tmp_path):
    """A folder with the small model, on large machines, and the stages."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "late.yaml").write_text(LARGE)
    (tmp_path / stages.FILE).write_text(FILE)
    return tmp_path


def load(include, stage=None):
    return load_spec(include / "models" / "late.yaml", stage)


def write(include, text):
    (include / stages.FILE).write_text(text)


def test_a_stage_lies_over_the_file_and_a_models_own_over_that_of_all(include):
    spec, before = load(include, "dev"), load(include, "")
    assert (spec.schedule, spec.data.sample_percent, spec.data.checks.min_rows) == (None, 20, 10)
    assert spec.deployment.approval == "never"
    assert spec.data.checks.label_rate == before.data.checks.label_rate == (0.1, 0.5)
    assert spec.tuning is None  # it has no search, and a number of trials makes none
    cluster = spec.training.cluster
    assert (cluster.tier, cluster.chief, cluster.workers) == ("BASIC", None, None)  # replaced, not mixed
    assert before.training.cluster.workers.count == 1


def test_the_environment_says_which_stage_it_is(include, monkeypatch):
    assert load(include).schedule == "0 3 * * *"
    monkeypatch.setenv("RETRAINING_STAGE", "dev")
    assert load(include).schedule is None
    assert load(include, "production") == load(include, "")


def test_a_changed_file_counts_at_once(include):
    load(include, "dev")
    write(include, FILE.replace("sample_percent: 20", "sample_percent: 30"))
    assert load(include, "dev").data.sample_percent == 30


def test_an_unknown_stage_is_refused(include, monkeypatch):
    monkeypatch.setenv("RETRAINING_STAGE", "prodution")
    with refuses(
        SpecError, where="RETRAINING_STAGE", found="'prodution'", expected="dev, production", way_out="'production'"
    ):
        load(include)


def test_a_stage_needs_the_file(include, monkeypatch):
    (include / stages.FILE).unlink()
    assert load(include).schedule == "0 3 * * *"
    monkeypatch.setenv("RETRAINING_STAGE", "dev")
    with refuses(SpecError, where="RETRAINING_STAGE", found=str(include / stages.FILE), way_out="Add it"):
        load(include)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        pytest.param(
            "sample_percent: 20",
            "sample_precent: 20",
            {
                "where": "environments.yaml, line 13",
                "found": "stages.dev.models.late has the key 'sample_precent' of data",
                "expected": "sample_percent, window_days",
                "way_out": "'sample_percent'",
            },
            id="misspelt",
        ),
        pytest.param(
            "sample_percent: 20",
            "query: other.sql",
            {"where": "line 13", "found": "'query' of data", "way_out": "What a model is, it is in all stages"},
            id="what a model is",
        ),
        pytest.param(
            "    all_models:\n",
            "    all_models:\n      label: {name: other}\n",
            {"where": "line 7", "found": "stages.dev.all_models has the key 'label'", "expected": "owner, tags"},
            id="a section of what a model is",
        ),
        pytest.param(
            "deployment: {approval: never}",
            "deployment: null",
            {"where": "line 14", "found": "deployment is None", "expected": "endpoint, machine"},
            id="a section that is none",
        ),
        pytest.param(
            "deployment: {approval: never}",
            "tuning: {max_trials: 3}",
            {"where": "line 14", "found": "late.yaml has no section 'tuning'", "way_out": "add tuning to late.yaml"},
            id="a section that the model does not have",
        ),
        pytest.param(
            "approval: never",
            "approval: nevr",
            {"where": "environments.yaml, line 14", "found": "'nevr'"},
            id="a value that no file may have",
        ),
        pytest.param(
            "      late:\n",
            "      lat:\n",
            {"where": "environments.yaml, line 12", "found": "no model 'lat'", "expected": "late", "way_out": "'late'"},
            id="a model that there is not",
        ),
        pytest.param(
            "    bucket: my-dev\n",
            "    bukket: my-dev\n",
            {"where": "line 5", "found": "'bukket' in stages.dev", "expected": "results_bucket", "way_out": "'bucket'"},
            id="an unknown key of a stage",
        ),
        pytest.param(
            "bucket: my-dev",
            "bucket: gs://my-dev",
            {"where": "line 5", "found": "'gs://my-dev'"},
            id="a malformed place",
        ),
        pytest.param(
            "bucket: my-dev",
            "bucket: my-retraining",
            {"where": "environments.yaml", "found": "'dev' and 'production' have the same bucket 'my-retraining'"},
            id="one bucket of two stages",
        ),
        pytest.param(
            "bucket: my-dev",
            "bucket: my-results",
            {"found": "'dev' and 'production' have the same bucket 'my-results'"},
            id="where jobs of another stage write",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_name(include, old, new, parts):
    assert old in FILE
    write(include, FILE.replace(old, new))
    with refuses(SpecError, **parts):
        load(include, "dev")


def test_values_that_do_not_fit_together_name_the_stage(include):
    write(include, FILE.replace("tier: BASIC}", "tier: BASIC}, strategy: parameter_server"))
    with refuses(SpecError, where="late.yaml in stage dev", found="parameter_server"):
        load(include, "dev")
    assert load(include, "production")


def test_no_endpoint_stays_none(include):
    (include / "models" / "late.yaml").write_text(f"{SPEC_YAML}deployment: null\n")
    write(include, "stages: {dev: {all_models: {deployment: {machine: n1-standard-2}}}}")
    assert not load(include, "dev").deployment.endpoint


def test_a_stage_may_say_nothing(include):
    write(include, "stages:\n  dev:\n  production:\n    all_models:\n    models:\n")
    assert load(include, "dev") == load(include, "production") == load(include, "")


@pytest.mark.parametrize("key", stages.OVERLAID)
def test_each_key_is_one_of_a_models_file(key):
    section, *names = key.split(".")
    kind = ModelSpec.model_fields[section].annotation
    for name in names:
        (fields,) = (each.model_fields for each in stages_of(kind) if name in each.model_fields)
        kind = fields[name].annotation


@pytest.mark.parametrize("key", stages.OVERLAID)
def test_each_key_is_in_the_docs(key):
    section, _, below = key.partition(".")
    name = below.removeprefix("checks.") or section
    (row,) = [line for line in DOCS.splitlines() if line.startswith(f"| {f'`{section}`' if below else 'the model'} |")]
    assert f"`{name}`" in row


def test_the_file_of_the_docs_is_valid_for_the_repositorys_models(tmp_path):
    shutil.copytree(settings.include_path() / "models", tmp_path / "models")
    write(tmp_path, DOCS.partition("```yaml\n")[2].partition("```")[0])
    for path in (tmp_path / "models").iterdir():
        for stage in ("dev", "staging", "production"):
            load_spec(path, stage)
    flights = load_spec(tmp_path / "models" / "flight_delays.yaml", "dev")
    assert (flights.schedule, flights.data.sample_percent, flights.training.cluster.tier) == (None, 20, "BASIC")


def stages_of(kind):
    """Sections that an annotation names."""
    if hasattr(kind, "model_fields"):
        return [kind]
    return [section for each in getattr(kind, "__args__", ()) for section in stages_of(each)]


def test_where_things_are_is_taken_from_the_stage(include):
    environ = {**ENVIRON, "RETRAINING_STAGE": "production", "RETRAINING_INCLUDE": str(include)}
    for taken in ("RETRAINING_PROJECT", "RETRAINING_BUCKET"):
        del environ[taken]
    found = Cloud(environ).settings
    assert (found.project, found.bucket, found.results_bucket) == ("my-project", "my-retraining", "my-results")
    assert (found.stage, found.dataset) == ("production", "retraining")


def test_another_stages_bucket_is_refused_by_name(include):
    environ = {**ENVIRON, "RETRAINING_STAGE": "dev", "RETRAINING_INCLUDE": str(include)}
    with refuses(
        SettingsError,
        where="RETRAINING_PROJECT, RETRAINING_BUCKET",
        found="'my-retraining', the bucket of another stage, 'production'",
        expected="RETRAINING_BUCKET 'my-dev', as environments.yaml says of stage 'dev'",
        way_out="RETRAINING_STAGE",
    ):
        Cloud(environ)
    own = {**environ, "RETRAINING_PROJECT": "my-project-dev", "RETRAINING_BUCKET": "my-dev"}
    with refuses(SettingsError, found="'mine', of none of the stages"):
        Cloud({**own, "RETRAINING_BUCKET": "mine"})
    # Of development the file names no bucket for results, and of production it does.
    assert Cloud(own).settings.results_bucket == "my-dev"
    assert Cloud({**own, "RETRAINING_RESULTS_BUCKET": "of-nobody"}).settings.results_bucket == "of-nobody"
    with refuses(
        SettingsError,
        where="RETRAINING_RESULTS_BUCKET",
        found="'my-results', the results bucket of another stage, 'production'",
        expected="RETRAINING_RESULTS_BUCKET with a bucket of its own",
    ):
        Cloud({**own, "RETRAINING_RESULTS_BUCKET": "my-results"})


def test_without_a_stage_nothing_is_read(include):
    write(include, "no: [file")
    assert Cloud({**ENVIRON, "RETRAINING_INCLUDE": str(include)}).settings.stage is None
    assert load(include).schedule == "0 3 * * *"


def test_the_plan_names_the_stage_and_its_key_follows_the_resolved_spec(include):
    there = settings.load({**ENVIRON, "RETRAINING_STAGE": "dev"})
    staged, plain = make_plan(load(include, "dev"), settings=there), make_plan(load(include, ""))
    assert (staged.stage, staged.spec.data.sample_percent, plain.stage) == ("dev", 20, None)
    assert staged.run_key != plain.run_key
    assert any(line.startswith("stage dev") for line in planning.explain(staged))
    assert not any(line.startswith("stage") for line in planning.explain(plain))
    assert make_plan(load(include, "production"), settings=there).run_key == plain.run_key  # the name decides nothing

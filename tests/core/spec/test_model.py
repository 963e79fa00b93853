"""A model's YAML file: what is taken, what is refused, and how clearly."""

from __future__ import annotations

import json

import pytest
import yaml
from pydantic import ValidationError

from retraining.core import settings
from retraining.core.errors import PlanError, SpecError
from retraining.core.spec import files, model, teams
from tests.support.refusals import refuses
from tests.support.small_model import SPEC_YAML, SQL, make_spec, spec_values


def write(tmp_path, text, name="late"):
    path = tmp_path / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def load(tmp_path, text):
    return files.load_spec(write(tmp_path, text))


def test_the_small_model_loads_with_the_defaults(tmp_path):
    spec = load(tmp_path, SPEC_YAML)
    assert spec == make_spec()
    assert (spec.owner, spec.tuning, spec.training.seed) == ("retraining", None, 1)
    assert spec.monitoring.drift.threshold is None
    assert spec.evaluation.floor == 0.6


def test_every_model_of_the_repository_is_valid():
    include = settings.include_path()
    paths = teams.find_specs(include)
    assert "flight_delays" in [path.stem for path in paths]
    for path in paths:
        assert files.load_query(files.load_spec(path), include)


def test_all_sections_of_the_design_are_taken():
    spec = make_spec(
        schedule=None,
        tuning={
            "every_days": 7,
            "max_trials": 12,
            "parallel_trials": 3,
            "metric": "val_auc",
            "goal": "maximize",
            "early_stopping": "median",
            "parameters": [{"name": "learning_rate", "kind": "double", "min": 1e-5, "max": 0.1, "scale": "log"}],
        },
        deployment={"machine": "n1-standard-2", "canary": {"percent": [10, 50, 100]}, "approval": False},
        monitoring={
            "schedule": "0 * * * *",
            "drift": {"threshold": 0.3},
            "performance": {"max_drop": 0.03},
            "max_age_days": 14,
            "cooldown_hours": 24,
        },
    )
    assert spec.schedule is None
    assert spec.tuning is not None
    assert spec.tuning.parameters[0].scale == "log"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schedule:", "scedule:", r"late.yaml, line 4: unknown key 'scedule'. .* Did you mean 'schedule'\?"),
        ("window_days", "windo_days", r"line 9: unknown key 'windo_days' in data. .* Did you mean 'window_days'\?"),
        ("min_rows", "min_row", r"line 11: unknown key 'min_row' in data.checks. .* Did you mean 'min_rows'\?"),
        ("embedding_dim", "embeding_dim", r"line 13: unknown key 'embeding_dim' in features.0. .*'embedding_dim'\?"),
        ("kind: numeric}", "kind: numeric, embedding_dim: 4}", r"line 14: unknown key 'embedding_dim'"),
        ("kind: numeric", "kind: number", r"features.1"),
        ("  key: id\n", "", r"line 5: data.key is missing"),
        ("  event_time: at\n", "", r"event_time is missing: name the column .* or set split: hash"),
        ("  key: id\n", "  key: id\n  test_percent: 20\n", r"test_percent means nothing with split: time"),
        ("  key: id\n", "  key: id\n  split: hash\n", r"event_time means nothing with split: hash"),
        ("  event_time: at\n", "  split: hash\n", r"window_days means nothing with split: hash"),
        ("description: Will it be late?\n", "", r"description is missing"),
        ("window_days: 10", "window_days: ten", r"line 9: data.window_days is 'ten'. Expected a valid integer"),
        ("window_days: 10", "window_days: 2", r"no day is left to train on"),
        ("0 3 * * *", "0 25 * * *", r"line 4: schedule: '0 25 \* \* \*' is no time that Airflow knows"),
        ("late/examples.sql", "../secret.sql", r"data.query"),
        ("late/examples.sql", "late/../../secret.sql", r"must stay below include/sql"),
        ("name: distance,", "name: carrier,", r"feature 'carrier' stands twice"),
        ("name: distance,", "name: late,", r"label.name is 'late', which is also a feature"),
        ("name: distance,", "name: ID,", r"data.key is 'id', which is also a feature"),
        ("name: distance,", "name: at,", r"data.event_time is 'at', which is also a feature"),
        ("name: distance,", "name: part,", r"'part' is reserved"),
        ("name: distance,", "name: class,", r"'class' is reserved"),
        ("name: distance,", "name: 'a b',", r"line 14: features.1.name is 'a b'. Expected match pattern"),
        ("key: id", "key: at", r"label.name, data.key, data.event_time must be different columns"),
        ("slices: [carrier]", "slices: [carier]", r"evaluation.slices names 'carier'.* Did you mean 'carrier'\?"),
        ("{distance: 0.1}", "{distanc: 0.1}", r"max_null_fraction names 'distanc'.* Did you mean 'distance'\?"),
        ("label_rate: [0.1, 0.5]", "label_rate: [0.5, 0.1]", r"lower bound must be below"),
        ("min_value: 0.6", "max_value: 0.6", r"metric auc needs min_value"),
        ("model: wide_deep,", "model: wide_deep, cluster: {tier: CUSTOM},", r"tier CUSTOM needs a chief"),
        (
            "model: wide_deep,",
            "model: wide_deep, cluster: {tier: BASIC, chief: {machine: n1-standard-4}},",
            r"tier BASIC fixes the machines",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, old, new, words):
    assert old in SPEC_YAML
    with pytest.raises(SpecError, match=words):
        load(tmp_path, SPEC_YAML.replace(old, new, 1))


@pytest.mark.parametrize(
    "name", ["wakes", "maintenance", "gcloud", "gsutil", "packages", "leases", "spending", "late_"]
)
def test_a_name_that_is_a_folder_of_the_bucket_or_no_endpoints_is_refused(tmp_path, name):
    path = tmp_path / f"{name}.yaml"
    path.write_text(SPEC_YAML.replace("name: late", f"name: {name}", 1))
    with refuses(SpecError, where=f"{name}.yaml, line 2", found=f"'{name}'", way_out="Rename"):
        files.load_spec(path)


def test_all_findings_come_at_once(tmp_path):
    with pytest.raises(SpecError) as caught:
        load(tmp_path, SPEC_YAML.replace("schedule", "scedule").replace("window_days: 10", "window_days: 0"))
    assert "2 errors" in str(caught.value)
    assert "scedule" in str(caught.value)
    assert "data.window_days is 0" in str(caught.value)


def test_a_key_that_stands_twice_is_refused_with_both_lines(tmp_path):
    with refuses(SpecError, where="line 5", found="'schedule'", expected="line 4"):
        load(tmp_path, SPEC_YAML.replace("data:\n", 'schedule: "@daily"\ndata:\n', 1))


def test_yaml_that_builds_objects_is_refused(tmp_path):
    with refuses(SpecError, found="object/apply:os.getcwd", expected="plain values"):
        load(tmp_path, SPEC_YAML + "owner: !!python/object/apply:os.getcwd []\n")


@pytest.mark.parametrize(("text", "words"), [("", "NoneType"), ("- a\n- b\n", "a list"), ("a: [", "not YAML")])
def test_what_is_no_mapping_is_refused(tmp_path, text, words):
    with pytest.raises(SpecError, match=words):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, r"late.yaml, line 1: more than 20 levels"),
        ("a: " + "{a: " * 30, r"line 1: more than 20 levels"),
        ("a: 1\n" * 60_000, r"more than 256 kB"),
        ("a: &x [1]\nb: *x\n", r"line 1: the anchor &x"),
        ("a: *x\n", r"line 1: the alias \*x"),
        ("a: &x [*x]\n", r"the anchor &x"),
        ("a: 1\nb: !!int abc\n", r"line 2: the tag tag:yaml.org,2002:int"),
        ("a: !!timestamp 2026-02-28\n", r"the tag tag:yaml.org,2002:timestamp"),
        ("a: .nan\n", r"line 1: a is nan, which is no number"),
        ("a: [1, .inf]\n", r"line 1: a.1 is inf, which is no number"),
        ("a: 1e999\n", r"unknown key 'a'"),  # YAML 1.1 wants a dot in a float: this is text
        ("a: 1.0e+999\n", r"a is inf, which is no number"),
        (f"a: {'9' * 30}\n", r"line 1: a is a whole number of 2\^63 or more"),
        (f"a: 0x{'f' * 5000}\n", r"a is a whole number of 2\^63 or more"),
        (f"a: {'9' * 5000}\n", r"a number that is none"),
        ("1: 2\n", r"line 1: a key that is no text: 1"),
        ("? [a]\n: 1\n", r"a key that is no text: a list or a mapping"),
        ("<<: {name: late}\n", r"unknown key '<<'"),
        ('a: "\\0"\n', r"the character U\+0000"),
        ('a: "\\ud800"\n', r"not YAML: found invalid Unicode"),
        ("--- a\n--- b\n", r"not YAML: but found another document"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_not_plain_yaml_is_refused(tmp_path, text, words):
    with pytest.raises(SpecError, match=words):
        load(tmp_path, text)


def test_dates_are_text(tmp_path):
    """29 February of a year that has none ended the reading of every model."""
    assert load(tmp_path, SPEC_YAML + "tags: [2026-02-29, 2026-02-28]\n").tags == ("2026-02-29", "2026-02-28")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "kind: numeric",
            "kind: number",
            r"line 14: features.1.kind is 'number'. Expected one of: numeric, .* 'numeric'\?",
        ),
        ("kind: numeric", "unit: km", r"features.1.kind is missing. Expected one of: numeric, categorical"),
        ("kind: binary", "kind: binari", r"label.kind is 'binari'. Expected one of: binary, multiclass. .*'binary'\?"),
        ("metric: auc", "metric: acuracy", r"evaluation.metric is 'acuracy'.* Did you mean 'accuracy'\?"),
        (
            "auc, min_value: 0.6",
            "calibration_error, max_value: 1",
            "metric of a binary label names 'calibration_error'",
        ),
        ("learning_rate: 0.01", "learning_rate: {a: [b]}", r"training.hyperparameters.learning_rate is {'a': \['b'\]}"),
        ("learning_rate: 0.01", "numeric: {a: 1}", r"training.hyperparameters.numeric is"),
        ("slices: [carrier]", "slices: carrier", r"evaluation.slices is 'carrier'. Expected a list"),
        ("label: {name: late, kind: binary}", "label: late", r"label is 'late'. Expected a mapping"),
        ("checks: {", "checks: 5 # {", r"data.checks is 5. Expected a mapping"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_message_names_a_key_that_is_there_and_says_it_once(tmp_path, old, new, words):
    assert old in SPEC_YAML
    with pytest.raises(SpecError, match=words) as caught:
        load(tmp_path, SPEC_YAML.replace(old, new, 1))
    assert "\n" not in str(caught.value)


def test_many_findings_are_cut(tmp_path):
    features = "".join(f"  - {{name: f{index}, kind: nmeric}}\n" for index in range(31))
    text = SPEC_YAML.replace("  - {name: distance, kind: numeric}\n", features)
    with pytest.raises(SpecError, match="and 11 more") as caught:
        load(tmp_path, text)
    assert len(str(caught.value).splitlines()) == 22


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("min_rows: 100", "min_rows: 10000000000000"),
        ("schedule:", "budget_usd: 1.0e+30\nschedule:"),
        ("promote: {min_examples: 10}", "promote: {max_slice_loss: 1.0e+13}"),
        ("model: wide_deep,", "model: wide_deep, clip_norm: 1.0e+300,"),
        ("evaluation:", "deployment: {max_replicas: 1000000}\nevaluation:"),
        ("evaluation:", "monitoring: {window_hours: 1000000}\nevaluation:"),
    ],
    ids=str,
)
def test_absurd_sizes_are_refused(tmp_path, old, new):
    assert old in SPEC_YAML
    with pytest.raises(SpecError, match="Expected less than or equal to"):
        load(tmp_path, SPEC_YAML.replace(old, new, 1))


def test_two_files_of_one_model_are_refused(tmp_path):
    write(tmp_path, SPEC_YAML)
    (tmp_path / "late.yml").write_text(SPEC_YAML, encoding="utf-8")
    with refuses(SpecError, where="late.yaml", found="late.yml"):
        files.load_spec(tmp_path / "late.yaml")


def test_the_file_is_called_as_the_model(tmp_path):
    with refuses(SpecError, where="other.yaml, line 2", found="'late'", expected="'other'"):
        files.load_spec(write(tmp_path, SPEC_YAML, "other"))


def test_a_missing_file_and_a_file_that_is_no_text_are_said(tmp_path):
    with pytest.raises(SpecError, match="cannot be read"):
        files.load_spec(tmp_path / "none.yaml")
    path = tmp_path / "late.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="cannot be read"):
        files.load_spec(path)


def test_files_are_found_in_order(tmp_path):
    (tmp_path / "models").mkdir()
    for name in ("b.yaml", "a.yml", "note.txt"):
        (tmp_path / "models" / name).write_text("x", encoding="utf-8")
    assert [path.name for path in teams.find_specs(tmp_path)] == ["a.yml", "b.yaml"]
    with pytest.raises(SpecError, match="no such folder"):
        teams.find_specs(tmp_path / "models")


def test_the_query_is_read_and_its_absence_said(tmp_path):
    folder = tmp_path / "sql" / "late"
    folder.mkdir(parents=True)
    with refuses(SpecError, found="'late/examples.sql'"):
        files.load_query(make_spec(), tmp_path)
    (folder / "example.sql").write_text("SELECT 1", encoding="utf-8")
    with refuses(SpecError, way_out="'late/example.sql'"):
        files.load_query(make_spec(), tmp_path)
    (folder / "examples.sql").write_text(" \n", encoding="utf-8")
    with pytest.raises(SpecError, match="is empty"):
        files.load_query(make_spec(), tmp_path)
    (folder / "examples.sql").write_text("DROP TABLE a", encoding="utf-8")
    with refuses(SpecError, where="late.yaml, data.query, late/examples.sql", found="DROP"):
        files.load_query(make_spec(), tmp_path)
    (folder / "examples.sql").write_bytes(b"\xff")
    with pytest.raises(SpecError, match="cannot be read"):
        files.load_query(make_spec(), tmp_path)
    (folder / "examples.sql").write_text(SQL, encoding="utf-8")
    assert files.load_query(make_spec(), tmp_path) == SQL


def test_a_query_that_links_outside_is_refused(tmp_path):
    (tmp_path / "secret.sql").write_text("SELECT 1", encoding="utf-8")
    (tmp_path / "sql" / "late").mkdir(parents=True)
    (tmp_path / "sql" / "late" / "examples.sql").symlink_to(tmp_path / "secret.sql")
    with pytest.raises(SpecError, match="leads outside"):
        files.load_query(make_spec(), tmp_path)


def test_overrides_change_what_they_name_and_nothing_else():
    spec = make_spec()
    changed = spec.with_overrides(
        {"data.window_days": 20, "training.hyperparameters": {"dropout": 0.2}, "training.epochs": 1}
    )
    assert changed.data.window_days == 20
    assert changed.training.hyperparameters == {"learning_rate": 0.01, "hidden_units": (16, 8), "dropout": 0.2}
    assert changed.data.test_days == spec.data.test_days
    assert spec.data.window_days == 10
    assert spec.with_overrides({}) is spec


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"data.window_day": 20}, r"no 'data.window_day'.* Did you mean 'window_days'\?"),
        ({"dat.window_days": 20}, r"no 'dat'.* Did you mean 'data'\?"),
        ({"data.window_days": 1}, r"late with overrides: data.window_days is 1"),
        ({"name": "other"}, "Change the YAML file"),
        ({"schedule": None}, "Change the YAML file"),
    ],
    ids=str,
)
def test_an_override_that_does_not_fit_is_refused(overrides, words):
    with pytest.raises(PlanError, match=words):
        make_spec().with_overrides(overrides)


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ({"kind": "double", "min": 1, "max": 0.1}, "min below max"),
        ({"kind": "integer", "values": [1, 2]}, "min below max"),
        ({"kind": "discrete"}, "needs values"),
        ({"kind": "categorical", "values": ["a"], "min": 1}, "no min or max"),
        ({"kind": "double", "min": 0, "max": 0.1, "scale": "log"}, "log needs min above 0"),
        ({"name": "learning_rat", "kind": "double", "min": 0.1, "max": 1}, "Did you mean 'learning_rate'"),
    ],
    ids=str,
)
def test_an_incoherent_tuning_parameter_is_refused(tmp_path, parameter, words):
    values = spec_values(tuning={"parameters": [{"name": "learning_rate", **parameter}]})
    with pytest.raises(SpecError, match=words):
        load(tmp_path, yaml.safe_dump(values))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"canary": {"percent": [50, 10, 100]}}, "rise and end with 100"),
        ({"canary": {"percent": [10, 50]}}, "rise and end with 100"),
        ({"min_replicas": 3, "max_replicas": 2}, "below min_replicas"),
        (
            {"min_replicas": 2, "max_replicas": 2, "autoscale_cpu_percent": 70},
            "no effect on always 2 replicas: raise max",
        ),
        ({"max_replicas": 2, "autoscale_cpu_percent": 101}, "autoscale_cpu_percent"),
    ],
    ids=str,
)
def test_an_incoherent_deployment_is_refused(tmp_path, section, words):
    with pytest.raises(SpecError, match=words):
        load(tmp_path, yaml.safe_dump(spec_values(deployment=section)))


def test_the_json_schema_knows_every_section():
    schema = model.ModelSpec.model_json_schema()
    assert schema["additionalProperties"] is False
    assert {"data", "features", "label", "training", "evaluation"} <= set(schema["required"])
    assert json.dumps(schema)


def test_a_spec_survives_json():
    spec = make_spec()
    assert model.ModelSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        ({"max_age_hours": 30}, "checks.max_age_hours means nothing with split: hash"),
        ({"severity": {"null_keys": "quarantine"}}, "checks.severity.null_keys is about single days"),
        ({"severity": {"day_volume": "warn"}}, "checks.severity.day_volume is about single days"),
    ],
    ids=["age", "quarantine", "day-volume"],
)
def test_examples_without_a_time_have_no_days_to_judge(checks, words):
    """Age, and what a single day may be, cannot be asked of them."""
    with pytest.raises(ValidationError, match=words):
        make_spec(data={"query": "late/examples.sql", "key": "id", "split": "hash", "checks": checks})

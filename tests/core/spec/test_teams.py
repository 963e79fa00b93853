"""Teams with folders of their own: which files are theirs, what they are given, and what none may do to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from retraining.core.errors import SpecError
from retraining.core.spec import teams
from retraining.core.spec.files import load_assertions, load_query, load_spec
from retraining.core.spec.own_gates import require_gates
from retraining.core.spec.stages import PLACES
from retraining.core.spec.teams import explain_teams, find_specs, folder_of, missing_folders, plain_name, spec_path
from tests.support.refusals import refuses
from tests.support.small_model import SPEC_YAML, SQL

ACCOUNT = "growth@my-project.iam.gserviceaccount.com"
FILE = f"""
teams:
  growth:
    owner: growth-team
    service_account: {ACCOUNT}
  mobile:
    prefix: mob_
"""


def write_model(folder: Path, name: str, text: str = "", sql: str = SQL) -> Path:
    """Write a model with its query; give its file."""
    path = folder / "models" / f"{name}.yaml"
    query = folder / "sql" / "late" / "examples.sql"
    for parent in (path.parent, query.parent):
        parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SPEC_YAML.replace("name: late\n", f"name: {name}\n", 1) + text)
    query.write_text(sql)
    return path


@pytest.fixture
def include(tmp_path):
    """Everybody's own model, and those of two teams."""
    include = tmp_path / "include"
    write_model(include, "late")
    write_model(include / "teams" / "growth", "growth_late", sql=SQL.replace("source.rows", "growth.rows"))
    write_model(include / "teams" / "mobile", "mob_late")
    (include / "teams.yaml").write_text(FILE)
    return include


def test_a_model_is_found_by_its_name_with_all_that_is_its_own(include):
    """Its query and its gates lie in its team's folder; the same names in another folder are others."""
    assert [plain_name(path) for path in find_specs(include)] == ["growth_late", "late", "mob_late"]
    for name, folder in (
        ("late", include),
        ("growth_late", include / "teams/growth"),
        ("mob_new", include / "teams/mobile"),
    ):
        assert (folder_of(include, name), spec_path(include, name)) == (folder, folder / "models" / f"{name}.yaml")
    spec = load_spec(spec_path(include, "growth_late"))
    assert "growth.rows" in load_query(spec, include)
    assert "source.rows" in load_query(load_spec(spec_path(include, "late")), include)

    gates = include / "teams" / "growth" / "gates"
    gates.mkdir()
    (gates / "own.py").write_text("def careful(evaluation):\n    return None\n")
    (include / "teams" / "growth" / "sql" / "none.sql").write_text("SELECT 1 AS found WHERE FALSE")
    text = spec_path(include, "growth_late").read_text()
    text = text.replace("evaluation: {", "evaluation: {gates: [{name: careful, function: 'own.py:careful'}], ")
    text = text.replace("  checks: {", "  assertions: [{name: none, query: none.sql}]\n  checks: {")
    spec_path(include, "growth_late").write_text(text)
    spec = load_spec(spec_path(include, "growth_late"))
    assert list(require_gates(spec, include)) == ["careful"]
    assert list(load_assertions(spec, include)) == ["none"]
    assert explain_teams(include) == "teams.yaml: models of growth (1), mobile (1)"


def test_a_file_whose_ending_is_yml_is_found_too(include):
    path = spec_path(include, "mob_late")
    path.rename(path.with_suffix(".yml"))
    assert load_spec(spec_path(include, "mob_late")).name == "mob_late"


def test_a_team_gives_its_models_an_owner_and_an_account(include):
    """Budgets go by the owner, and roles by the account: a model's file cannot take another team's."""
    spec = load_spec(spec_path(include, "growth_late"))
    assert (spec.owner, spec.service_account) == ("growth-team", ACCOUNT)
    spec = load_spec(spec_path(include, "mob_late"))
    assert (spec.owner, spec.service_account) == ("mobile", None)
    assert load_spec(spec_path(include, "late")).owner == "retraining"
    path = write_model(include / "teams" / "mobile", "mob_late", "owner: growth-team\n")
    with refuses(SpecError, where=("mob_late.yaml", "line"), found="owner is 'growth-team'", expected="'mobile'"):
        load_spec(path)
    path = write_model(include / "teams" / "mobile", "mob_late", f"service_account: {ACCOUNT}\n")
    with refuses(SpecError, where=("mob_late.yaml", "line"), found=(ACCOUNT, "gives team growth")):
        load_spec(path)
    own = "mobile@my-project.iam.gserviceaccount.com"  # a team without an account says what it likes beside these
    path = write_model(include / "teams" / "mobile", "mob_late", f"owner: mobile\nservice_account: {own}\n")
    assert load_spec(path).service_account == own
    path = write_model(
        include / "teams" / "growth", "growth_late", "service_account: other@my-project.iam.gserviceaccount.com\n"
    )
    with refuses(SpecError, found="service_account is 'other@", expected=ACCOUNT, way_out="Remove service_account"):
        load_spec(path)


@pytest.mark.parametrize("name", ["late", "growth_late", "growth_new", "new"])
def test_a_team_cannot_take_anothers_name(include, name):
    """The file is refused, and its DAG is called so that it takes the place of none."""
    names = {plain_name(path) for path in find_specs(include)}
    path = write_model(include / "teams" / "mobile", name)
    with refuses(SpecError, where=f"teams/mobile/models/{name}.yaml", found=name, expected=("'mob_'", "mobile")):
        load_spec(path)
    assert {plain_name(each) for each in find_specs(include)} == {*names, f"mobile.{name}"}
    assert load_spec(spec_path(include, "late")).name == "late"
    assert load_spec(spec_path(include, "growth_late")).owner == "growth-team"


def test_a_file_beside_the_teams_cannot_have_a_teams_name(include):
    """Of a model that was there before its team: the message says where it goes; the team's own is not touched."""
    path = write_model(include, "growth_late")
    with refuses(SpecError, where="models/growth_late.yaml", found="team growth", way_out="Move the file"):
        load_spec(path)
    assert sorted(plain_name(each) for each in find_specs(include)) == [
        "growth_late",
        "late",
        "mob_late",
        "models.growth_late",
    ]
    assert load_spec(spec_path(include, "growth_late")).owner == "growth-team"


def test_a_folder_that_nobody_named_is_refused_by_name(include):
    path = write_model(include / "teams" / "grwth", "grwth_late")
    with refuses(
        SpecError, where="teams/grwth", found="no team 'grwth'", expected="growth, mobile", way_out="'growth'"
    ):
        load_spec(path)
    with refuses(SpecError, where="teams/grwth"):
        explain_teams(include)
    assert load_spec(spec_path(include, "growth_late")).name == "growth_late"
    (include / "teams.yaml").unlink()
    with refuses(SpecError, where="teams/growth", expected="none is there", way_out="include/teams.yaml"):
        load_spec(include / "teams/growth/models/growth_late.yaml")
    assert load_spec(spec_path(include, "late")).name == "late"


def test_a_team_without_a_folder_is_named(include):
    (include / "teams.yaml").write_text(FILE + "  fraud:\n")
    assert list(missing_folders(include)) == ["fraud"]
    with refuses(SpecError, where="teams.yaml, fraud", found="no folder teams/fraud/models"):
        explain_teams(include)
    assert [plain_name(path) for path in find_specs(include)] == ["growth_late", "late", "mob_late"]


def test_a_broken_list_of_teams_refuses_their_models_and_no_other(include):
    """No team's file takes a name of a model that has no team, which is still good."""
    (include / "teams.yaml").write_text(FILE + "  mobile: {prefix: x_}\n")
    write_model(include / "teams" / "mobile", "late")
    names = [plain_name(path) for path in find_specs(include)]
    assert names == ["growth_late", "late", "mobile.late", "mob_late"]
    assert load_query(load_spec(spec_path(include, "late")), include) == SQL
    for team, name in (("growth", "growth_late"), ("mobile", "mob_late")):
        with refuses(SpecError, where="teams.yaml"):
            load_spec(include / "teams" / team / "models" / f"{name}.yaml")
        with refuses(SpecError, where="teams.yaml"):
            spec_path(include, name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("teams: {growth: {prefix: mob_late_}, mobile: {prefix: mob_}}", "of team 'mobile' and of team 'growth'"),
        ("teams: {growth: {prefix: mob_}, mobile: {prefix: mob_}}", "of team"),
        ("teams: {growth: {prefix: growth}}", "prefix"),
        ("teams: {growth: {prefx: growth_}}", "prefx"),
        ("teams: {Growth: {}}", "Growth"),
        ("teams: {../growth: {}}", "../growth"),
        ("teams: {growth: {service_account: me}}", "service_account"),
        ("groups: {}", "groups"),
        ("teams: []", "teams"),
    ],
)
def test_what_the_list_of_teams_may_not_say(include, text, said):
    (include / "teams.yaml").write_text(text)
    with pytest.raises(SpecError) as refused:
        teams.find_teams(include)
    assert said in str(refused.value)


STAGES = "stages: {staging: {all_models: {schedule: '@weekly'}}, production: {}}"


def test_a_team_without_stages_has_everybodys_and_one_with_has_its_own(include, monkeypatch):
    (include / "environments.yaml").write_text(
        STAGES.replace("}}, prod", "}, models: {growth_late: {owner: growth-team}}}, prod")
    )
    monkeypatch.setenv("RETRAINING_STAGE", "staging")
    assert {load_spec(path).schedule for path in find_specs(include)} == {"@weekly"}
    own = include / "teams" / "mobile" / "environments.yaml"
    own.write_text("stages: {test: {all_models: {schedule: '@monthly'}}, staging: {}}")
    assert load_spec(spec_path(include, "mob_late")).schedule == "0 3 * * *"
    assert load_spec(spec_path(include, "growth_late")).schedule == "@weekly"
    assert load_spec(spec_path(include, "mob_late"), "test").schedule == "@monthly"
    own.write_text("stages: {test: {}}")
    with refuses(SpecError, where="RETRAINING_STAGE", found="no stage 'staging'", expected="test"):
        load_spec(spec_path(include, "mob_late"))
    assert load_spec(spec_path(include, "growth_late")).schedule == "@weekly"


def test_a_teams_stage_cannot_be_somewhere_else(include, monkeypatch):
    """Its repository may say the places for its own commands; here they must be those of the environment."""
    own = include / "teams" / "mobile" / "environments.yaml"
    own.write_text("stages: {production: {bucket: mobile-bucket, region: us-central1}}")
    monkeypatch.setenv("RETRAINING_STAGE", "production")
    for place in PLACES:
        monkeypatch.delenv(f"RETRAINING_{place.upper()}", raising=False)
    (include / "environments.yaml").write_text(STAGES)
    assert load_spec(spec_path(include, "mob_late")).name == "mob_late"  # nothing says where this is
    monkeypatch.setenv("RETRAINING_REGION", "us-central1")
    monkeypatch.setenv("RETRAINING_BUCKET", "mobile-bucket")
    assert load_spec(spec_path(include, "mob_late")).name == "mob_late"
    (include / "environments.yaml").write_text("stages: {production: {bucket: our-bucket}}")
    with refuses(SpecError, where="teams/mobile/environments.yaml", found=("our-bucket", "mobile-bucket")):
        load_spec(spec_path(include, "mob_late"))
    assert load_spec(spec_path(include, "mob_late"), "production").name == "mob_late"  # as its own commands have it
    assert load_spec(spec_path(include, "growth_late")).name == "growth_late"

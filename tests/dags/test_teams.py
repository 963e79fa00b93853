"""Teams with folders of their own: the DAGs of their models, and what is seen of one that is broken."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import yaml

from .conftest import run_python, write_spec

READ = """
import json, sys
import retraining.dags as factories
class Parsing:
    dag_id = None
factories.get_parsing_context = lambda: Parsing
dags = factories.build_dags()
Parsing.dag_id = "retrain__mobile_late"
print(json.dumps({
    "dags": {dag_id: {"tags": sorted(dag.tags), "doc": dag.doc_md or "", "owner": dag.owner,
                      "models": (dag.params.get_param("model").schema.get("enum") if "model" in dag.params else None)}
             for dag_id, dag in dags.items()},
    "one": list(factories.build_dags()),
}))
"""


def move(include: Path, team: str, name: str) -> None:
    """Move a model with its query to a team's folder."""
    for kind, file in (("models", f"{name}.yaml"), ("sql", "flight_delays")):
        (include / "teams" / team / kind).mkdir(parents=True, exist_ok=True)
        if kind == "models":
            (include / kind / file).rename(include / "teams" / team / kind / file)
        else:
            shutil.copytree(include / kind / file, include / "teams" / team / kind / file, dirs_exist_ok=True)


def test_a_broken_team_leaves_the_others_alone(bundle: Path) -> None:
    """Each has its DAGs with its owner; what is wrong is seen where somebody looks for the model or the team."""
    include = bundle / "dags" / "include"
    for name, team in (("growth_late", "growth"), ("mobile_late", "mobile"), ("growth_more", "mobile")):
        write_spec(bundle, name)
        spec = yaml.safe_load((include / "models" / f"{name}.yaml").read_text())
        spec.pop("owner", None)
        (include / "models" / f"{name}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
        move(include, team, name)
    shutil.copy(include / "teams/growth/models/growth_late.yaml", include / "teams/mobile/models/growth_late.yaml")
    (include / "teams.yaml").write_text("teams: {growth: {owner: growth-team}, mobile: {}, fraud: {}}")

    read = json.loads(run_python(bundle, READ).splitlines()[-1])
    dags, broken = read["dags"], {name for name, dag in read["dags"].items() if "invalid-spec" in dag["tags"]}
    assert broken == {"retrain__mobile.growth_late", "retrain__mobile.growth_more", "retrain__fraud.models"}
    assert {"retrain__growth_late", "monitor__growth_late", "rollback__growth_late", "retrain__flight_delays"} <= set(
        dags
    )
    owners = {name: dags[f"retrain__{name}"]["owner"] for name in ("growth_late", "mobile_late")}
    assert owners == {"growth_late": "growth-team", "mobile_late": "mobile"}
    assert "names that begin with 'mobile_'" in dags["retrain__mobile.growth_late"]["doc"]
    assert "`include/teams/mobile/models/growth_late.yaml`" in dags["retrain__mobile.growth_late"]["doc"]
    assert "no folder teams/fraud/models" in dags["retrain__fraud.models"]["doc"]
    assert "`include/teams.yaml`" in dags["retrain__fraud.models"]["doc"]
    assert read["one"] == ["retrain__mobile_late"]

    (include / "teams.yaml").write_text("teams: {growth: {ownr: growth-team}, mobile: {}}")
    read = json.loads(run_python(bundle, READ).splitlines()[-1])
    broken = {name for name, dag in read["dags"].items() if "invalid-spec" in dag["tags"]}
    assert {"retrain__growth_late", "retrain__mobile_late"} <= broken
    assert "ownr" in read["dags"]["retrain__growth_late"]["doc"]
    assert not broken & {f"retrain__{path.stem}" for path in (include / "models").glob("*.yaml")}

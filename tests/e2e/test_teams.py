"""Two teams in one environment, by a real scheduler: one's night, and the other's mistakes that are its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.dag_run import MODEL
from demo.system import LaptopSystem
from retraining_laptop.airflow_api import AirflowApiError
from retraining_laptop.dag_run import predict, run_dag, wait_for_dag
from tests.e2e.conftest import make_bundle, running_laptop
from tests.e2e.test_nights import jobs_of

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

TEAM, GROWTH, AS_OF = "growth", "growth_flights", "2013-11-20T03:00:00Z"
ACCOUNT = "growth@local-project.iam.gserviceaccount.com"
TEAMS = f"""
teams:
  {TEAM}: {{service_account: {ACCOUNT}}}
  mobile: {{}}
"""


def give(include: Path, team: str, name: str, **changes: Any) -> None:
    """Write a copy of the model of flights, with its query, into a team's folder."""
    spec = yaml.safe_load((include / "models" / f"{MODEL}.yaml").read_text())
    spec |= {"name": name, **changes}
    spec.pop("owner")  # the team's
    folder = include / "teams" / team
    (folder / "models").mkdir(parents=True, exist_ok=True)
    (folder / "models" / f"{name}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    shutil.copytree(include / "sql" / MODEL, folder / "sql" / MODEL, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaptopSystem]:
    """An environment of two teams. One of them names its models as it should not, and another team's account."""
    dags_path = make_bundle(tmp_path_factory.mktemp("teams") / "bundle")
    include = dags_path / "include"
    give(include, TEAM, GROWTH)
    give(include, "mobile", "growth_stolen")
    give(include, "mobile", "mobile_other", service_account=ACCOUNT)
    (include / "teams.yaml").write_text(TEAMS)
    with running_laptop(tmp_path_factory.mktemp("shared"), dags_path) as system:
        yield system


@pytest.fixture(scope="module")
def night(shared: LaptopSystem) -> Any:
    """The first night of the team's model."""
    project = os.environ["RETRAINING_PROJECT"]
    return run_dag(shared.airflow.api(), f"retrain__{GROWTH}", AS_OF, project=project, say=print, timeout_s=400)


class TestTeams:
    """What each of them gets."""

    def test_a_teams_model_has_its_night(self, night: Any) -> None:
        """From its own folder's query to an endpoint of its own that answers."""
        assert night.state == "success", str(night.failures)
        assert night.documents["decision"]["verdict"] == "promote"
        golden = night.documents["report"]["golden"]
        answer = predict(night.documents["deployment"]["endpoint_name"], [row["instance"] for row in golden])
        assert answer["predictions"] == pytest.approx([row["prediction"] for row in golden], abs=1e-5)

    def test_its_jobs_run_as_the_teams_account(self, night: Any) -> None:
        """All three that were paid."""
        jobs = jobs_of(night.documents["plan"]["run_key"])
        assert sorted(job.labels["retraining-task"] for job in jobs) == ["evaluate", "export", "train"]
        assert {job.job_spec.service_account for job in jobs} == {ACCOUNT}

    def test_its_dag_is_its_own(self, shared: LaptopSystem, night: Any) -> None:
        """By the owner and the tag that a person filters by."""
        del night
        dag = shared.airflow.api().call("GET", f"/dags/retrain__{GROWTH}")
        assert dag["owners"] == [TEAM]

    def test_the_other_teams_mistakes_are_refused_where_it_looks(self, shared: LaptopSystem) -> None:
        """As DAGs that end with what is wrong; nothing of theirs is paid, and the shared model has its DAG."""
        api, project = shared.airflow.api(), os.environ["RETRAINING_PROJECT"]
        wait_for_dag(api, f"retrain__{MODEL}")
        for dag_id, words in (
            ("retrain__mobile.growth_stolen", "names that begin with 'mobile_'"),
            ("retrain__mobile_other", ACCOUNT),
        ):
            refused = run_dag(api, dag_id, AS_OF, project=project, say=print, timeout_s=200)
            assert refused.state == "failed"
            said = "\n".join(line for failure in refused.failures for line in failure.message)
            assert words in said, said
            assert not refused.run_uri
        with pytest.raises(AirflowApiError):
            api.call("GET", "/dags/retrain__growth_stolen")

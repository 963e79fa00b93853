"""An environment of release 0.2.0 is brought to this one in the middle of a night, with what it has in its bucket."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo.bundle import change_spec
from demo.checkout import CLOUD_CONFIG_PATH, REPOSITORY_PATH
from demo.dag_run import DAG_ID, MODEL
from demo.system import LaptopSystem
from retraining_laptop.dag_run import Outcome, predict, read_outcome, run_dag, wait_for_dag
from retraining_laptop.progress import follow_run
from tests.e2e.conftest import make_bundle, running_laptop, shrink
from tests.e2e.test_killed_processes import paid_beside, planned
from tests.e2e.test_nights import failure_lines, jobs_of, started_jobs, version_of, versions, wait_for

RELEASE = "707caf6c"
"""The commit of 0.2.0."""
IMAGE = "us-central1-docker.pkg.dev/local-project/retraining/trainer-of-before:0.2.0"
DAYS = ("2013-11-20T03:00:00Z", "2013-11-21T03:00:00Z", "2013-11-22T03:00:00Z")

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1800)]


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Ask the repository's history."""
    return subprocess.run(["git", "-C", str(REPOSITORY_PATH), *arguments], capture_output=True, check=False)


def bundle_of_release(path: Path) -> Path:
    """Write what Composer's bucket got of the release; return its folder of DAG files."""
    archive = git("archive", RELEASE, "dags", "plugins", "include", "trainer")
    if archive.returncode:
        pytest.skip(f"the history of this checkout does not reach back to {RELEASE}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(path, filter="data")
    shutil.move(path / "include", path / "dags" / "include")

    def shrink_as_before(spec: dict[str, Any]) -> None:
        shrink(spec, {})
        for gate in ("max_loss_from_best", "below_reference"):  # which came since
            del spec["evaluation"]["promote"][gate]

    change_spec(path / "dags", MODEL, shrink_as_before)
    return path / "dags"


def image_of(job: Any) -> str:
    """What a job runs."""
    return str(job.job_spec.worker_pool_specs[0].container_spec.image_uri)


def is_active(job: Any) -> bool:
    """Whether a job goes on."""
    return job.state.name in ("JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING")


def with_image_of_release(base: Path) -> Path:
    """Write the local cloud's configuration, with the trainer of the release under a name of its own."""
    values = json.loads(CLOUD_CONFIG_PATH.read_text())
    folder = CLOUD_CONFIG_PATH.parent
    for environment in values["environments"].values():
        environment["python"] = str((folder / environment["python"]).absolute())  # not where its link leads
    for image in values["images"]:
        image["import_roots"] = [str((folder / root).absolute()) for root in image["import_roots"]]
    release = {"pattern": "*/trainer-of-before:*", "use": "training", "environment": "trainer"}
    values["images"].append({**release, "import_roots": [str(base / "bundle")]})
    path = base / "localcloud.json"
    path.write_text(json.dumps(values))
    return path


@dataclass(frozen=True, kw_only=True)
class Upgraded:
    """The system, after the night in which it was upgraded; that night, and the one before it."""

    system: LaptopSystem
    before: Outcome
    night: Outcome


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """A night of 0.2.0, and one that it begins and this release ends."""
    base = tmp_path_factory.mktemp("upgraded")
    dags_path = bundle_of_release(base / "bundle")
    variables = {
        "RETRAINING_DATA_DAYS": "2013-01-01/2013-12-31",  # which 0.2.0 had for all models alike
        "RETRAINING_TRAINER_IMAGE": IMAGE,
        "RETRAINING_SERVING_IMAGE": "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest",  # its default, kept
    }
    config_path = with_image_of_release(base)
    with running_laptop(base, dags_path, variables=variables, cloud_config_path=config_path) as system:
        api, project = system.airflow.api(), os.environ["RETRAINING_PROJECT"]
        before = run_dag(api, DAG_ID, DAYS[0], project=project, say=print, timeout_s=600)
        assert before.state == "success", str(before.failures)
        run_id = api.trigger(DAG_ID, logical_date=DAYS[1])
        run_key = wait_for("a plan", lambda: planned(system, run_id), 300)["run_key"]
        wait_for("its training", lambda: started_jobs(run_key, "train"), 300)
        system.airflow.stop()
        wait_for("its training's end", lambda: not [job for job in jobs_of(run_key) if is_active(job)], 300)
        del variables["RETRAINING_TRAINER_IMAGE"]  # from here on the release's own
        shutil.rmtree(base / "bundle")
        make_bundle(base / "bundle")
        system.airflow.start()
        system.airflow.wait_ready()
        wait_for_dag(system.airflow.api(), DAG_ID, timeout_s=300)
        state, _ = follow_run(system.airflow.api(), DAG_ID, run_id, say=print, timeout_s=600)
        assert state == "success", "\n".join(failure_lines(system.airflow.api(), DAG_ID, run_id))
        yield Upgraded(system=system, before=before, night=read_outcome(system.airflow.api(), DAG_ID, run_id, project))


def test_the_night_ends_as_the_run_that_it_was(upgraded: Upgraded) -> None:
    """Under its key, with one job of each kind, and compared with the champion of the release before."""
    night = upgraded.night
    assert night.documents["plan"]["as_of"] == DAYS[1]
    run_key = night.documents["plan"]["run_key"]
    jobs = jobs_of(run_key)
    assert sorted(job.labels["retraining-task"] for job in jobs) == ["evaluate", "export", "train"]
    assert paid_beside(jobs) == []
    images = {job.labels["retraining-task"]: image_of(job) for job in jobs}
    assert (images["export"], images["train"]) == (IMAGE, IMAGE)
    assert images["evaluate"] == os.environ["RETRAINING_TRAINER_IMAGE"]
    assert night.documents["evaluation"]["champion"] is not None
    # By this release's gates, which a version that 0.2.0 promoted may not pass.
    serves = night if night.documents["decision"]["verdict"] == "promote" else upgraded.before
    assert "champion" in version_of(serves.documents["plan"]["run_key"]).version_aliases
    golden = serves.documents["report"]["golden"]
    endpoint = upgraded.before.documents["deployment"]["endpoint_name"]
    answer = predict(endpoint, [each["instance"] for each in golden])
    assert answer["predictions"] == pytest.approx([each["prediction"] for each in golden], abs=1e-5)


def test_the_next_night_meets_its_version(upgraded: Upgraded) -> None:
    """All of it by this release."""
    api, project = upgraded.system.airflow.api(), os.environ["RETRAINING_PROJECT"]
    night = run_dag(api, DAG_ID, DAYS[2], project=project, say=print, timeout_s=600)
    assert night.state == "success", str(night.failures)
    champion = night.documents["evaluation"]["champion"]
    assert champion is not None
    run_keys = [version.labels["retraining-run"] for version in versions()]
    assert run_keys == [each.documents["plan"]["run_key"] for each in (upgraded.before, upgraded.night, night)]

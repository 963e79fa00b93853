"""Studies on the local cloud: TuneOperator's jobs are real tuning jobs.

By default a trial is a line of Python instead of the trainer, so that only the study's own way is long. The long test
has whole nights of the real thing.
"""

from __future__ import annotations

import json
import os
import textwrap
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import Plan, Tuning
from retraining.core.jobs import requests
from retraining.core.naming import storage as storage_names
from retraining.core.naming import vertex
from retraining.core.naming.run_keys import RunKey
from retraining.core.settings import load
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from retraining.operators.record.run_record import Record
from retraining.operators.tuning.study import TuneOperator
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.settings import PLACES
from tests.support.scenes.whole_run import run_whole

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = EXAMPLES / "plan__scheduled.json"
SECTION = {
    "max_trials": 6,
    "recall": 2,
    "algorithm": "random",
    "early_stopping": "none",
    "parameters": [
        {"name": "learning_rate", "kind": "double", "min": 1e-4, "max": 0.1, "scale": "log"},
        {"name": "layers", "kind": "integer", "min": 1, "max": 4},
    ],
}
# Scores best at a learning rate of 0.01 with 3 layers; takes priors as the trainer does; one trial goes astray.
TRIAL = """
import json, math, os, pathlib, sys
flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[2:])
request = json.loads(pathlib.Path({requests!r}, flags.pop("request").rsplit("/", 2)[1]).read_text())
values = request["priors"][int(flags["prior"])] if "prior" in flags else flags
rate, layers = float(values["learning_rate"]), int(values["layers"])
if layers == 1:
    sys.exit(0)
score = 0.8 - abs(math.log10(rate) + 2) / 10 - abs(layers - 3) / 50
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
    for epoch in (1, 2):
        line = {{"global_step": str(epoch), "trial": os.environ["CLOUD_ML_TRIAL_ID"]}}
        line["val_auc"] = str(score * epoch / 2)
        file.write(json.dumps(line) + "\\n")
"""


@pytest.fixture
def quick_trials(local_cloud, monkeypatch, tmp_path):
    """Trials are a line of Python; requests are handed over as files, which it can read at once."""
    from retraining.hooks.artifacts import Artifacts

    write_once = Artifacts.write_once

    def hand_over(self: Artifacts, uri: str, data: bytes, *args: Any) -> bytes:
        if uri.endswith("/train_request.json"):
            (tmp_path / uri.rsplit("/", 2)[1]).write_bytes(data)
        return write_once(self, uri, data, *args)

    program = TRIAL.format(requests=str(tmp_path))
    monkeypatch.setattr(requests, "COMMAND", ("python", "-c", textwrap.dedent(program)))
    monkeypatch.setattr(Artifacts, "write_once", hand_over)
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    return local_cloud


def begin(model: str, days: int) -> Plan:
    """Store the plan of a run so many days after the example's."""
    from retraining.hooks.cloud import Cloud

    values, settings = json.loads(EXAMPLE.read_text()), load(os.environ)
    as_of = datetime(2013, 11, 20, 3, tzinfo=UTC) + timedelta(days=days)
    key = str(RunKey.of(as_of, model))
    uri = storage_names.run_uri(settings.bucket, model, key)
    values |= {"model": model, "run_key": key, "run_uri": uri, "as_of": f"{as_of:%Y-%m-%dT%H:%M:%SZ}"}
    values |= {name: getattr(settings, name) for name in PLACES}
    values["spec"] |= {"name": model, "tuning": SECTION}
    values["spec"]["training"]["hyperparameters"] = {"learning_rate": 0.001, "layers": 2}
    plan = Plan.parse(json.dumps(values))
    Record(Cloud().artifacts, uri).write_once(plan)
    return plan


def wake(run: Any, plan: Plan) -> dict[str, Any] | None:
    """One wake of the task `tune` of the model's DAG; None when it sleeps again."""
    run.dag_id = f"retrain__{plan.model}"
    try:
        return dict(run.execute(TuneOperator(task_id="tune", run_uri=plan.run_uri, retries=2)))
    except AirflowRescheduleException:
        return None


def wait(run: Any, plan: Plan) -> dict[str, Any]:
    """Wake it until it has settled."""
    deadline = time.monotonic() + 60
    while (result := wake(run, plan)) is None:
        assert time.monotonic() < deadline
    return result


def tuning_jobs(model: str) -> list[Any]:
    """The model's tuning jobs, as the service lists them."""
    from google.cloud import aiplatform_v1 as v1

    settings = load(os.environ)
    client = v1.JobServiceClient(client_options={"api_endpoint": f"{settings.region}-aiplatform.googleapis.com"})
    parent = vertex.location_name(settings.project, settings.region)
    wanted = f'labels.{vertex.MODEL_LABEL}="{model}"'
    return list(client.list_hyperparameter_tuning_jobs(request={"parent": parent, "filter": wanted}))


def test_studies_of_two_weeks_on_the_local_cloud(quick_trials, make_run, monkeypatch) -> None:
    """A worker dies after the create and finds its study again; next week repeats the best two and searches on."""
    from retraining.hooks.vertex_jobs import VertexJobs
    from retraining.operators.report.page import timings

    model, run = "tuned", make_run(run_id="scheduled__1", dag_id="retrain__tuned")
    first, create = begin(model, 0), VertexJobs.create

    def die_after(self: VertexJobs, job: Any) -> Any:
        create(self, job)
        raise KeyboardInterrupt

    monkeypatch.setattr(VertexJobs, "create", die_after)
    with pytest.raises(KeyboardInterrupt):
        run.execute(TuneOperator(task_id="tune", run_uri=first.run_uri, retries=2))
    monkeypatch.setattr(VertexJobs, "create", create)
    result = wait(run, first)
    assert result["searched"]
    assert len(tuning_jobs(model)) == 1
    studied = record(first).read_document(Tuning)
    assert [trial.phase for trial in studied.trials] == ["search"] * 6
    scores = [trial.value for trial in studied.trials if trial.value is not None]
    assert all(trial.hyperparameters["layers"] == 1 for trial in studied.trials if trial.value is None)
    assert studied.hyperparameters == next(t.hyperparameters for t in studied.trials if t.trial_id == studied.best)
    assert max(scores) == next(t.value for t in studied.trials if t.trial_id == studied.best)
    (spent,) = [task for task in timings(record(first), lambda *_: None).tasks if task.task == "tune"]
    assert spent.seconds == pytest.approx(studied.seconds)
    assert spent.estimated_usd is not None

    assert wait(make_run(run_id="scheduled__2"), begin(model, 3))["searched"] is False
    assert len(tuning_jobs(model)) == 1

    second = begin(model, 7)
    result = wait(make_run(run_id="scheduled__3"), second)
    again = record(second).read_document(Tuning)
    assert len(tuning_jobs(model)) == 3
    assert [trial.phase for trial in again.trials] == ["recall"] * 2 + ["search"] * 4
    assert again.trials[0].hyperparameters == studied.hyperparameters
    assert again.trials[0].value == pytest.approx(max(scores))
    searched = {parameter.name: parameter for parameter in again.searched}
    assert searched["learning_rate"].max / searched["learning_rate"].min == pytest.approx(10**1.5, rel=1e-3)
    assert max(trial.value or 0 for trial in again.trials) >= max(scores) - 1e-12
    assert result["hyperparameters"] == dict(again.hyperparameters)


def test_a_repetition_that_fails_leads_to_a_search_of_the_whole_space(quick_trials, make_run, monkeypatch) -> None:
    """The service fails the job when all its trials failed; the study goes on, and is remembered."""
    model, failing = (
        "forgetful",
        "import sys; sys.exit(2) if any(w.startswith('--prior') for w in sys.argv) else None\n",
    )
    wait(make_run(run_id="scheduled__1"), begin(model, 0))
    python, option, program = requests.COMMAND
    monkeypatch.setattr(requests, "COMMAND", (python, option, failing + program))
    second = begin(model, 7)
    wait(make_run(run_id="scheduled__2"), second)
    settled = record(second).read_document(Tuning)
    assert [trial.state for trial in settled.trials[:2]] == ["INFEASIBLE"] * 2
    assert [trial.phase for trial in settled.trials] == ["recall"] * 2 + ["search"] * 4
    assert settled.searched == settled.space
    assert str(settled.best).startswith("search-")
    assert [job.state.name for job in tuning_jobs(model)].count("JOB_STATE_FAILED") == 1


def record(plan: Plan) -> Record:
    """The run's documents."""
    from retraining.hooks.cloud import Cloud

    return Record(Cloud().artifacts, plan.run_uri)


@pytest.fixture
def night(local_cloud, make_run, monkeypatch) -> Callable[..., dict[str, Any]]:
    """Runs every task of a night of a model, or all up to `last`; gives its documents by kind."""
    local_cloud.seed()
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")

    def run_all(spec: ModelSpec, logical_date: datetime, last: str | None = None) -> dict[str, Any]:
        monkeypatch.setattr(files, "load_spec", lambda _path: spec)
        return run_whole(spec, make_run(run_id=f"manual__{logical_date:%Y%m%d}", logical_date=logical_date), last)

    return run_all


def small_spec() -> ModelSpec:
    """The flights model with two weeks, two epochs, and four trials by Bayesian optimization."""
    spec = files.load_spec(ROOT / "include/models/flight_delays.yaml")
    values = spec.model_dump(mode="json")
    values["data"] |= {"window_days": 14, "test_days": 3}
    values["data"]["checks"]["min_rows"] = 1000
    values["training"]["epochs"] = 2
    values["evaluation"]["min_value"] = 0.5
    values["evaluation"]["promote"] |= {
        "min_gain": -1.0,
        "max_loss_from_best": 1.0,
        "max_slice_loss": 1.0,
        "min_examples": 100,
    }
    values["tuning"] |= {"search": "auto", "max_trials": 4, "recall": 1}
    return ModelSpec.model_validate(values)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_study_of_real_trials_and_a_night_that_remembers_it(night, local_cloud) -> None:
    """From the run table to the page with what the study found; the next night pays for no study."""
    from google.cloud import storage

    found = night(small_spec(), datetime(2013, 11, 20, 3, tzinfo=UTC))
    tuning = found["tuning"]
    assert found["tuning_request"]["because"] == "first"
    assert [trial["phase"] for trial in tuning["trials"]] == ["search"] * 4
    scored = [trial for trial in tuning["trials"] if trial["value"] is not None]
    assert len(scored) >= 3
    assert all(len(trial["curve"]) in (1, 2) and 0.4 < trial["value"] < 0.9 for trial in scored)
    best = max(scored, key=lambda trial: trial["value"])
    assert tuning["best"] == best["trial_id"]
    used = found["report"]["hyperparameters"]
    assert (used["learning_rate"], used["dropout"]) == (
        best["hyperparameters"]["learning_rate"],
        best["hyperparameters"]["dropout"],
    )
    assert "-".join(map(str, used["hidden_units"])) == best["hyperparameters"]["hidden_units"]
    (cost,) = [task for task in found["timings"]["tasks"] if task["task"] == "tune"]
    assert cost["estimated_usd"] > 0
    assert "Score of every trial and the best so far" in found["page"]
    names_left = [blob.name for blob in storage.Client().list_blobs(local_cloud.bucket, prefix="flight_delays/runs/")]
    assert not [name for name in names_left if "/tuning/" in name and "/model/" in name]

    later = night(small_spec(), datetime(2013, 11, 21, 3, tzinfo=UTC))
    assert later["tuning_request"]["because"] == "recent"
    assert later["tuning"]["trials"] == []
    assert later["report"]["hyperparameters"]["learning_rate"] == later["tuning"]["hyperparameters"]["learning_rate"]


def small_forecast() -> ModelSpec:
    """The departures of four weeks with three epochs, and three trials that are compared by their error."""
    spec = files.load_spec(ROOT / "include/models/departures.yaml")
    values = spec.model_dump(mode="json")
    values["name"] = "departures_tuned"
    values["data"] |= {"window_days": 28, "test_days": 7}
    values["data"]["checks"]["min_rows"] = 1000
    values["training"] |= {"epochs": 3, "batch_size": 64}
    values["tuning"] = {
        "search": "always",
        "max_trials": 3,
        "recall": 1,
        "parallel_trials": 1,
        "metric": "val_mae",
        "parameters": [
            {"name": "learning_rate", "kind": "double", "min": 1e-4, "max": 1e-2, "scale": "log"},
            {"name": "units", "kind": "categorical", "values": ["8", "16"]},
        ],
    }
    return ModelSpec.model_validate(values)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_study_of_a_number_takes_the_trial_with_the_least_error(night) -> None:
    """In flights, as the report of a training has it; the final training takes that trial's values."""
    found = night(small_forecast(), datetime(2013, 11, 20, 3, tzinfo=UTC), "train")
    tuning = found["tuning"]
    assert (tuning["metric"], tuning["goal"]) == ("val_mae", "minimize")
    scored = [trial for trial in tuning["trials"] if trial["value"] is not None]
    assert len(scored) == 3
    best = min(scored, key=lambda trial: trial["value"])
    worst = max(scored, key=lambda trial: trial["value"])
    assert tuning["best"] == best["trial_id"]
    used = found["report"]["hyperparameters"]
    assert used["learning_rate"] == best["hyperparameters"]["learning_rate"]
    assert "-".join(map(str, used["units"])) == best["hyperparameters"]["units"]
    assert min(found["report"]["history"]["val_mae"]) == pytest.approx(best["value"], rel=1e-3)
    assert best["value"] < worst["value"]

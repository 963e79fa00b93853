"""Tuning jobs through Google's client: trials run for real, one process group each, measured while they run."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.cloud import logging as cloud_logging

from packages.localcloud.tests.vertex.conftest import TRAINER_IMAGE, make_pool, poll
from packages.localcloud.tests.vertex.studies import (
    State,
    below,
    categorical,
    create,
    discrete,
    double,
    final,
    integer,
    look,
    run,
    study_spec,
    tuning_job,
    values,
    wait,
)


def test_trial_gets_flags_in_order_and_what_vertex_tells_it(api, bucket, tmp_path):
    body = f"""
        seen = {{"argv": sys.argv[1:], "env": dict(os.environ)}}
        json.dump(seen, open(pathlib.Path({str(tmp_path)!r}, flags["optimizer"]), "w"))
        report("score", 1.0, 1)
    """
    optimizer = categorical(
        "optimizer",
        "adam",
        "sgd",
        conditional_parameter_specs=[below("categorical", "sgd", parameter=discrete("momentum", 0.5))],
    )
    base = f"gs://{bucket.name}/vertex-tests/tuning"
    pools = [make_pool("", args=["--fixed=yes"])]
    job = tuning_job(
        body,
        optimizer,
        discrete("batch", 32),
        integer("layers", 2, 2),
        trials=2,
        job_spec={"worker_pool_specs": pools, "base_output_directory": {"output_uri_prefix": base}},
    )
    ended = run(api, job)
    assert ended.state == v1.JobState.JOB_STATE_SUCCEEDED, ended.error
    assert [list(values(trial)) for trial in ended.trials] == [
        ["optimizer", "batch", "layers"],
        ["optimizer", "momentum", "batch", "layers"],
    ]
    seen = json.loads((tmp_path / "sgd").read_text())
    assert seen["argv"] == ["--fixed=yes", "--optimizer=sgd", "--momentum=0.5", "--batch=32", "--layers=2"]
    env = seen["env"]
    assert (env["CLOUD_ML_TRIAL_ID"], env["CLOUD_ML_JOB_ID"]) == ("2", ended.name.rsplit("/", 1)[1])
    assert env["AIP_MODEL_DIR"] == f"{base}/2/model/"
    assert env["AIP_CHECKPOINT_DIR"] == f"{base}/2/checkpoints/"
    for variable in ("TF_CONFIG", "CLUSTER_SPEC"):
        assert json.loads(env[variable])["task"]["trial"] == "2"


def test_job_has_the_states_and_times_of_the_service(api):
    job = create(api, tuning_job(labels={"who": "me"}, trials=1))
    assert job.state == v1.JobState.JOB_STATE_QUEUED
    ended = wait(api, job)
    (trial,) = ended.trials
    assert ended.state == v1.JobState.JOB_STATE_SUCCEEDED
    assert ended.create_time <= trial.start_time <= ended.start_time <= trial.end_time <= ended.end_time
    assert (trial.id, trial.state, final(trial)) == ("1", State.SUCCEEDED, 1.0)
    assert (ended.labels, ended.error.code) == ({"who": "me"}, 0)


def test_grid_tries_every_point_once_and_then_the_job_ends(api):
    parent = discrete(
        "x", 1, 2, conditional_parameter_specs=[below("discrete", 2, parameter=categorical("y", "a", "b"))]
    )
    ended = run(api, tuning_job("report('score', 1)", parent, trials=9, parallel=2))
    assert ended.state == v1.JobState.JOB_STATE_SUCCEEDED
    assert [values(trial) for trial in ended.trials] == [{"x": 1}, {"x": 2, "y": "a"}, {"x": 2, "y": "b"}]


def test_no_more_than_the_parallel_trials_run_at_once(api, tmp_path):
    body = f"""
        folder = pathlib.Path({str(tmp_path)!r})
        (folder / f"running-{{flags['x']}}").touch()
        time.sleep(0.3)
        (folder / f"most-{{flags['x']}}").write_text(str(len(list(folder.glob("running-*")))))
        (folder / f"running-{{flags['x']}}").unlink()
        report("score", 1)
    """
    assert run(api, tuning_job(body, trials=4, parallel=2)).state == v1.JobState.JOB_STATE_SUCCEEDED
    assert max(int(path.read_text()) for path in tmp_path.glob("most-*")) == 2


def test_same_name_draws_the_same_values_again(api):
    def drawn(name: str) -> list[dict[str, object]]:
        space = [double("lr", 1e-5, 0.1, "UNIT_LOG_SCALE"), integer("x", 1, 1000)]
        study = study_spec(*space, algorithm="RANDOM_SEARCH")
        return [values(t) for t in run(api, tuning_job("report('score', 1)", study=study, display_name=name)).trials]

    first = drawn("one name")
    assert first == drawn("one name") != drawn("another name")
    assert all(1e-5 <= trial["lr"] <= 0.1 for trial in first)


@pytest.mark.parametrize(
    ("goal", "selection", "wanted"),
    [
        pytest.param("MAXIMIZE", "LAST_MEASUREMENT", (3, 2.0), id="last"),
        pytest.param("MAXIMIZE", "BEST_MEASUREMENT", (2, 9.0), id="best"),
        pytest.param("MINIMIZE", "BEST_MEASUREMENT", (1, 1.0), id="least"),
        pytest.param("MAXIMIZE", None, (3, 2.0), id="unspecified"),
    ],
)
def test_final_measurement_is_the_last_or_the_best(api, goal, selection, wanted):
    body = "for step, value in enumerate([1, 9, 2], 1): report('score', value, step); report('other', 5, step)"
    study = study_spec(integer("x", 1, 1), metrics=[{"metric_id": "score", "goal": goal}])
    if selection:
        study["measurement_selection_type"] = selection
    (trial,) = run(api, tuning_job(body, study=study, trials=1)).trials
    assert (trial.final_measurement.step_count, final(trial)) == wanted
    assert [m.step_count for m in trial.measurements] == [1, 2, 3]
    assert [m.metrics[0].metric_id for m in trial.measurements] == ["score"] * 3


def test_measurements_are_seen_while_the_trial_runs(api, tmp_path):
    body = f"""
        report("score", 0.5, 1)
        while not pathlib.Path({str(tmp_path)!r}, "go").exists(): time.sleep(0.01)
        report("score", 0.75, 2)
    """
    job = create(api, tuning_job(body, trials=1))
    seen = poll(lambda: look(api, job), lambda seen: seen.trials and len(seen.trials[0].measurements) == 1)
    assert (seen.state, seen.trials[0].state) == (v1.JobState.JOB_STATE_RUNNING, State.ACTIVE)
    (tmp_path / "go").touch()
    (trial,) = wait(api, job).trials
    assert [m.metrics[0].value for m in trial.measurements] == [0.5, 0.75]
    assert trial.measurements[0].elapsed_duration < trial.measurements[1].elapsed_duration


def test_hopeless_trial_is_stopped_early_and_keeps_its_score(api, tmp_path):
    body = f"""
        import signal
        def asked(*_): pathlib.Path({str(tmp_path)!r}, "asked").touch(); sys.exit(0)
        signal.signal(signal.SIGTERM, asked)
        bad = flags["x"] == "4"
        for step in range(1, 4):
            report("score", 0.1 if bad else 0.5 + step / 10, step)
            time.sleep(0.01)
        while bad: time.sleep(0.05)
    """
    study = study_spec(integer("x", 1, 4), median_automated_stopping_spec={"use_elapsed_duration": False})
    ended = run(api, tuning_job(body, study=study, trials=4, parallel=1))
    assert ended.state == v1.JobState.JOB_STATE_SUCCEEDED
    assert [(trial.state, final(trial)) for trial in ended.trials[2:]] == [
        (State.SUCCEEDED, 0.8),
        (State.SUCCEEDED, 0.1),
    ]
    assert (tmp_path / "asked").exists()


def test_failed_and_silent_trials_are_infeasible_and_the_job_goes_on(api):
    body = "if flags['x'] == '1': sys.exit(3)\nif flags['x'] != '2': report('score', 1)"
    ended = run(api, tuning_job(body, max_failed_trial_count=2, parallel=1))
    failed, silent, good = ended.trials
    assert ended.state == v1.JobState.JOB_STATE_SUCCEEDED, ended.error
    assert [trial.state for trial in ended.trials] == [State.INFEASIBLE, State.INFEASIBLE, State.SUCCEEDED]
    assert "exited with a non-zero status of 3" in failed.infeasible_reason
    assert "without a measurement of score" in silent.infeasible_reason
    assert "final_measurement" not in failed
    assert final(good) == 1


@pytest.mark.parametrize(("limit", "trials", "ran"), [(2, 6, 2), (0, 8, 4), (0, 2, 2)])
def test_too_many_failed_trials_fail_the_job(api, limit, trials, ran):
    ended = run(api, tuning_job("sys.exit(1)", trials=trials, parallel=1, max_failed_trial_count=limit))
    assert (ended.state, ended.error.code, len(ended.trials)) == (v1.JobState.JOB_STATE_FAILED, 3, ran)
    assert f"Too many failed trials: {ran} of {ran} failed" in ended.error.message
    assert f"Trial {ran}: The replica workerpool0-0 exited with a non-zero status of 1" in ended.error.message


def test_cancel_ends_every_trial_and_its_process_group(api, tmp_path):
    body = f"""
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        pathlib.Path({str(tmp_path)!r}, flags["x"]).write_text(f"{{os.getpid()}} {{child.pid}}")
        report("score", 1, 1)
        time.sleep(600)
    """
    job = create(api, tuning_job(body, trials=4, parallel=2))
    poll(lambda: look(api, job), lambda seen: [len(t.measurements) for t in seen.trials] == [1, 1])
    pids = [int(pid) for path in tmp_path.iterdir() for pid in path.read_text().split()]
    api.jobs.cancel_hyperparameter_tuning_job(name=job.name)
    assert look(api, job).state.name in ("JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED")
    ended = wait(api, job)
    assert (ended.state, ended.error.code) == (v1.JobState.JOB_STATE_CANCELLED, 1)
    assert [trial.state for trial in ended.trials] == [State.INFEASIBLE] * 2
    poll(lambda: [pid for pid in pids if _lives(pid)], lambda seen: not seen)
    api.jobs.cancel_hyperparameter_tuning_job(name=job.name)  # of an ended job: nothing


def test_trials_are_custom_jobs_that_go_with_the_tuning_job(api):
    ended = run(api, tuning_job(trials=2, labels={"whose": "trials"}))
    jobs = [api.jobs.get_custom_job(name=trial.custom_job) for trial in ended.trials]
    assert [job.display_name for job in jobs] == ["tuning-trial-1", "tuning-trial-2"]
    assert [job.state for job in jobs] == [v1.JobState.JOB_STATE_SUCCEEDED] * 2
    listed = api.jobs.list_custom_jobs(request={"parent": api.parent, "filter": "labels.whose=trials"})
    assert list(listed) == []
    request = {"parent": api.parent, "filter": 'labels.whose=trials AND state="JOB_STATE_SUCCEEDED"'}
    assert [job.name for job in api.jobs.list_hyperparameter_tuning_jobs(request=request)] == [ended.name]
    api.jobs.delete_hyperparameter_tuning_job(name=ended.name).result(timeout=10)
    for call, name in ((api.jobs.get_hyperparameter_tuning_job, ended.name), (api.jobs.get_custom_job, jobs[0].name)):
        with pytest.raises(exceptions.NotFound):
            call(name=name)


def test_running_job_cannot_be_deleted(api):
    job = create(api, tuning_job("time.sleep(600)", trials=1))
    poll(lambda: look(api, job), lambda seen: seen.state == v1.JobState.JOB_STATE_RUNNING)
    with pytest.raises(exceptions.FailedPrecondition, match="JOB_STATE_RUNNING"):
        api.jobs.delete_hyperparameter_tuning_job(name=job.name)
    api.jobs.cancel_hyperparameter_tuning_job(name=job.name)
    wait(api, job)


def test_lines_of_trials_are_in_the_tuning_jobs_log(api, local_cloud):
    ended = run(api, tuning_job("print('hello from', flags['x'], flush=True)\nreport('score', 1)", trials=2))
    wanted = f'resource.type="ml_job" AND resource.labels.job_id="{ended.name.rsplit("/", 1)[1]}"'
    entries = list(cloud_logging.Client(project=local_cloud.project).list_entries(filter_=wanted))
    found = {
        (entry.labels["ml.googleapis.com/trial_id"], entry.payload)
        for entry in entries
        if entry.resource.labels["task_name"] == "workerpool0-0"
    }
    assert found == {("1", "hello from 1"), ("2", "hello from 2")}
    said = [entry.payload for entry in entries if entry.resource.labels["task_name"] == "service"]
    assert "Trial 2 begins: --x=2" in said
    assert "Trial 2 ends: SUCCEEDED, score 1" in said
    assert said[-1] == "Tuning ended: JOB_STATE_SUCCEEDED."


def test_preempted_trial_is_started_again_and_goes_on_measuring(api, add_fault, tmp_path):
    body = f"""
        mark = pathlib.Path({str(tmp_path)!r}, "mark")
        first = not mark.exists()
        mark.touch()
        report("score", 0.25 if first else 0.75, 1 if first else 2)
        if first: time.sleep(600)
    """
    add_fault("Replica.Run", "preempt", filter="labels.tuned=spot", seconds=0.5)
    (trial,) = run(api, tuning_job(body, trials=1, labels={"tuned": "spot"})).trials
    assert (trial.state, [m.metrics[0].value for m in trial.measurements]) == (State.SUCCEEDED, [0.25, 0.75])


def test_job_goes_on_with_the_same_trials_after_the_server_was_killed(solo, tmp_path):
    body = f"""
        if not pathlib.Path({str(tmp_path)!r}, "again").exists(): time.sleep(600)
        report("score", flags["x"], 1)
    """
    api = solo.start()
    job = create(api, tuning_job(body, trials=2, parallel=1))
    poll(lambda: look(api, job).trials, lambda trials: trials and trials[0].state == State.ACTIVE)
    solo.end(signal.SIGKILL)
    (tmp_path / "again").touch()
    api = solo.start()
    ended = wait(api, job)
    assert ended.state == v1.JobState.JOB_STATE_SUCCEEDED, ended.error
    assert [(trial.id, values(trial)["x"], final(trial)) for trial in ended.trials] == [("1", 1, 1.0), ("2", 2, 2.0)]


def test_stockout_of_a_trial_fails_the_job(api, add_fault):
    words = "Resources are insufficient in region: us-central1."
    add_fault("Job.Start", "error", filter="labels.tuned=stockout", code="RESOURCE_EXHAUSTED", message=words, skip=1)
    ended = run(api, tuning_job(trials=3, parallel=1, labels={"tuned": "stockout"}))
    assert (ended.state, ended.error.code, len(ended.trials)) == (v1.JobState.JOB_STATE_FAILED, 8, 2)
    assert words in ended.error.message
    assert ended.trials[0].state == State.SUCCEEDED


def test_over_rest(rest):
    body = {
        "displayName": "over-rest",
        "maxTrialCount": 2,
        "parallelTrialCount": 1,
        "studySpec": {
            "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "x", "integerValueSpec": {"minValue": "1", "maxValue": "2"}}],
            "algorithm": "GRID_SEARCH",
        },
        "trialJobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {"machineType": "n1-standard-4"},
                    "replicaCount": "1",
                    "containerSpec": {"imageUri": TRAINER_IMAGE, "command": ["python", "-c", "pass"]},
                }
            ]
        },
    }
    job = rest("POST", "hyperparameterTuningJobs", body).json()
    assert job["state"] == "JOB_STATE_QUEUED", job
    ended = poll(lambda: rest("GET", f"/v1/{job['name']}").json(), lambda seen: "endTime" in seen)
    assert [(t["id"], t["state"], t["parameters"]) for t in ended["trials"]] == [
        ("1", "INFEASIBLE", [{"parameterId": "x", "value": 1}]),
        ("2", "INFEASIBLE", [{"parameterId": "x", "value": 2}]),
    ]
    page = rest("GET", "hyperparameterTuningJobs", params={"filter": 'display_name="over-rest"'}).json()
    assert [seen["name"] for seen in page["hyperparameterTuningJobs"]] == [job["name"]]
    assert rest("POST", f"/v1/{job['name']}:cancel", {}).json() == {}
    assert rest("DELETE", f"/v1/{job['name']}").status_code == 200


def test_through_the_sdk(local_cloud):
    from google.cloud import aiplatform
    from google.cloud.aiplatform import hyperparameter_tuning

    from packages.localcloud.tests.vertex.studies import trial_program

    aiplatform.init(
        project=local_cloud.project, location=local_cloud.region, staging_bucket=f"gs://{local_cloud.bucket}"
    )
    pool = make_pool("", command=["python", "-c", trial_program("report('loss', flags['x'])")])
    job = aiplatform.HyperparameterTuningJob(
        display_name="sdk",
        custom_job=aiplatform.CustomJob(display_name="sdk", worker_pool_specs=[pool]),
        metric_spec={"loss": "minimize"},
        parameter_spec={"x": hyperparameter_tuning.DoubleParameterSpec(min=0.5, max=1, scale="linear")},
        max_trial_count=2,
        parallel_trial_count=2,
        search_algorithm="random",
    )
    job.run(sync=True)
    assert [trial.state.name for trial in job.trials] == ["SUCCEEDED"] * 2
    assert job.state.name == "JOB_STATE_SUCCEEDED"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_study_ends_when_its_score_no_longer_rises(api):
    study = study_spec(integer("x", 1, 9), study_stopping_config={"max_num_trials_no_progress": 2})
    body = "report('score', min(int(flags['x']), 3))"
    begun = time.monotonic()
    ended = run(api, tuning_job(body, study=study, trials=9, parallel=1))
    assert (ended.state, len(ended.trials)) == (v1.JobState.JOB_STATE_SUCCEEDED, 5)
    assert time.monotonic() - begun < 20

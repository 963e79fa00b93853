"""Orders for the run's jobs."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest

from retraining.core import documents
from retraining.core.catalog.machines import planned_machines
from retraining.core.jobs import requests
from retraining.core.jobs.failures import Failure, with_spot_fallback
from retraining.core.planning.plan import explain
from tests.support.small_model import AS_OF, make_plan, make_snapshot, make_spec, spec_values


def champion(as_of=AS_OF - timedelta(days=1)):
    return documents.Champion(
        model_uri="gs://my-retraining/late/runs/20131119t030000z-0123456789ab/training/model",
        version_name="projects/my-project/locations/us-central1/models/late@3",
        version_id="3",
        run_key="20131119t030000z-0123456789ab",
        as_of=as_of,
    )


def all_job_requests(the_plan, **arguments):
    return (
        requests.export_job(the_plan, make_snapshot(the_plan), **arguments),
        requests.training_job(the_plan, **arguments),
        requests.evaluation_job(the_plan, champion(), **arguments),
    )


def test_a_job_writes_below_jobs_and_the_record_holds_request_and_result(small_plan):
    """A condition of the jobs' role holds them to the folder `jobs`: the record is Airflow's alone."""
    uri, key = small_plan.run_uri, small_plan.run_key
    theirs = f"gs://my-retraining/jobs/late/runs/{key}"
    orders = all_job_requests(small_plan)
    assert [(o.request_uri, o.result_uri, o.stored_uri, o.result_kind) for o in orders] == [
        (f"{uri}/export_request.json", f"{theirs}/manifest.json", f"{uri}/manifest.json", "manifest"),
        (f"{uri}/train_request.json", f"{theirs}/report.json", f"{uri}/report.json", "report"),
        (f"{uri}/evaluate_request.json", f"{theirs}/evaluation.json", f"{uri}/evaluation.json", "evaluation"),
    ]


def test_requests_survive_storage_and_orders_are_always_the_same(small_plan):
    for order, again in zip(all_job_requests(small_plan), all_job_requests(small_plan), strict=True):
        assert type(order.request).parse(order.request.to_bytes()) == order.request
        assert order == again
        assert json.loads(json.dumps(order.custom_job)) == order.custom_job


def test_training_writes_where_vertex_says(small_plan):
    order = requests.training_job(small_plan)
    request = order.request
    assert isinstance(request, documents.TrainRequest)
    base = order.custom_job["job_spec"]["base_output_directory"]["output_uri_prefix"]
    assert base == f"{small_plan.results_uri}/training"
    assert (request.model_uri, request.checkpoint_uri, request.tensorboard_uri) == (
        f"{base}/model/1",
        f"{base}/checkpoints",
        f"{base}/logs",
    )
    assert request.training.hyperparameters.items() >= {"learning_rate": 0.01, "hidden_units": (16, 8)}.items()
    assert request.features == small_plan.spec.features


def test_a_job_runs_the_trainers_image_with_its_request(small_plan):
    job = requests.training_job(small_plan).custom_job
    (pool,) = job["job_spec"]["worker_pool_specs"]
    assert pool["container_spec"] == {
        "image_uri": small_plan.trainer_image,
        "command": ["python", "-m", "trainer.task"],
        "args": ["train", f"--request={small_plan.run_uri}/train_request.json"],
    }
    assert job["job_spec"]["scheduling"] == {"timeout": "21600s"}
    assert job["labels"] == {
        "retraining-model": "late",
        "retraining-run": small_plan.run_key,
        "retraining-task": "train",
    }
    assert "service_account" not in job["job_spec"]


def test_a_cluster_becomes_pools_with_the_chief_first():
    chief = {"machine": "n1-standard-8", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2}}
    cluster = {"tier": "CUSTOM", "chief": chief, "workers": {**chief, "count": 3}, "spot": True}
    own = {"image": "host/own-trainer:1"}
    plan = make_plan(make_spec(training={"model": "dense", "cluster": cluster, "runtime": own}))
    job = requests.training_job(plan, None, "a@b.c").custom_job
    pools = job["job_spec"]["worker_pool_specs"]
    assert [pool["replica_count"] for pool in pools] == [1, 3]
    assert pools[1]["machine_spec"] == {
        "machine_type": "n1-standard-8",
        "accelerator_type": "NVIDIA_TESLA_T4",
        "accelerator_count": 2,
    }
    assert job["job_spec"]["scheduling"]["strategy"] == "SPOT"
    assert job["job_spec"]["service_account"] == "a@b.c"


RESERVATION = "projects/p/zones/us-central1-b/reservations/night"


@pytest.mark.parametrize(
    ("asked", "scheduling", "reserved"),
    [
        ({"flex_start_hours": 1.5}, {"strategy": "FLEX_START", "max_wait_duration": "5400s"}, []),
        ({"reservation": RESERVATION}, {}, [RESERVATION]),
    ],
)
def test_a_job_waits_for_scarce_machines_or_is_on_reserved_ones(asked, scheduling, reserved):
    """The machines that are not like the chief's are reserved by nobody."""
    chief = {"machine": "n1-standard-8", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2}}
    servers = {"machine": "n1-highmem-2", "count": 1}
    cluster = {
        "tier": "CUSTOM",
        "chief": chief,
        "workers": {**chief, "count": 3},
        "parameter_servers": servers,
        **asked,
    }
    training = {"model": "dense", "cluster": cluster, "runtime": {"image": "host/own-trainer:1"}}
    job = requests.training_job(make_plan(make_spec(training=training))).custom_job
    assert job["job_spec"]["scheduling"] == {"timeout": "21600s", **scheduling}
    found = [pool["machine_spec"].get("reservation_affinity", {}) for pool in job["job_spec"]["worker_pool_specs"]]
    assert [each.get("values", []) for each in found] == [reserved, reserved, []]
    pytest.importorskip("google.cloud.aiplatform_v1.types").CustomJob.from_json(json.dumps(job))


@pytest.mark.parametrize("jobs", [1, 2])
def test_after_two_jobs_that_got_no_machines_the_next_is_on_demand(jobs):
    cluster = {"tier": "BASIC_GPU", "flex_start_hours": 1}
    training = {"model": "dense", "cluster": cluster, "runtime": {"image": "host/own-trainer:1"}}
    job = requests.training_job(make_plan(make_spec(training=training))).custom_job
    scheduling = with_spot_fallback(job, [Failure.STOCKOUT] * jobs)["job_spec"]["scheduling"]
    waits = {"strategy": "FLEX_START", "max_wait_duration": "3600s"} if jobs < 2 else {}
    assert scheduling == {"timeout": "21600s", **waits}


def test_a_models_own_account_goes_before_the_shared_one():
    """Of every job; it is no other run for it."""
    own, shared = make_plan(make_spec(service_account="late@p.iam.gserviceaccount.com")), make_plan()
    for order in all_job_requests(own, service_account="a@b.c"):
        assert order.custom_job["job_spec"]["service_account"] == "late@p.iam.gserviceaccount.com"
    assert own.run_key == shared.run_key
    assert any(line.endswith(" late@p.iam.gserviceaccount.com") for line in explain(own))


def test_vertex_ai_takes_the_jobs_as_they_are(small_plan):
    types = pytest.importorskip("google.cloud.aiplatform_v1.types")
    for order in all_job_requests(small_plan, service_account="a@b.c"):
        job = types.CustomJob(order.custom_job)
        assert types.CustomJob.from_json(json.dumps(order.custom_job)) == job
        assert job.job_spec.scheduling.timeout.total_seconds() > 0


def test_champion_and_challenger_are_judged_alike(small_plan):
    request = requests.evaluation_job(small_plan, champion()).request
    assert isinstance(request, documents.EvaluateRequest)
    assert request.champion == champion()
    assert request.champion_skipped is None
    assert request.challenger.model_uri == f"{small_plan.results_uri}/training/model/1"
    assert (request.slices, request.bootstrap.confidence, request.metric) == (("carrier",), 0.95, "auc")


@pytest.mark.parametrize("later", [timedelta(0), timedelta(days=1)], ids=["as new", "newer"])
def test_a_champion_that_could_have_seen_the_test_days_is_not_dueled_with(small_plan, later):
    request = requests.evaluation_job(small_plan, champion(AS_OF + later)).request
    assert isinstance(request, documents.EvaluateRequest)
    assert request.champion is None
    assert request.champion_skipped is not None
    assert "could have seen" in request.champion_skipped


def test_the_first_model_has_nobody_to_beat(small_plan):
    request = requests.evaluation_job(small_plan, None).request
    assert isinstance(request, documents.EvaluateRequest)
    assert (request.champion, request.champion_skipped) == (None, None)


def test_importance_is_measured_unless_the_spec_says_no(small_plan):
    """Within three quarters of the job's time limit, so that it never ends the job."""
    asked = requests.evaluation_job(small_plan, None).request.importance
    timeout_s = planned_machines(small_plan, "evaluate").timeout_s
    assert (asked.rows, asked.repeats, asked.seconds, asked.ends_after) == (2000, 3, 120, timeout_s * 3 // 4)
    evaluation = spec_values()["evaluation"]
    without = make_plan(make_spec(evaluation={**evaluation, "importance": None}))
    assert requests.evaluation_job(without, None).request.importance is None
    assert "importance" not in small_plan.spec.evaluation.model_dump()  # plans of earlier releases keep their bytes
    rule = {"rows": 500, "repeats": 1, "max_seconds": 30}
    less = requests.evaluation_job(make_plan(make_spec(evaluation={**evaluation, "importance": rule})), None).request
    assert (less.importance.rows, less.importance.repeats, less.importance.seconds) == (500, 1, 30)


def test_values_of_single_examples_are_only_asked_for_where_the_spec_says_so(small_plan):
    assert requests.evaluation_job(small_plan, None).request.show_rows is False
    shown = make_plan(make_spec(report={"show_rows": True}))
    assert requests.evaluation_job(shown, None).request.show_rows is True


def test_the_export_names_the_spans_and_the_test_days(small_plan):
    request = requests.export_job(small_plan, make_snapshot(small_plan)).request
    assert isinstance(request, documents.ExportRequest)
    assert len(request.spans) == 3
    assert request.test_start == small_plan.window.test_start
    assert '"schema": [' in request.to_bytes().decode()


def test_the_export_is_told_which_days_are_left_out(small_plan):
    out = (date(2013, 11, 16),)
    request = requests.export_job(small_plan, make_snapshot(small_plan), quarantined=out).request
    assert isinstance(request, documents.ExportRequest)
    assert request.quarantined == out
    assert len(request.spans) == 3


def test_the_export_writes_what_training_reads():
    """Layout, format, and only the test days where training reads the run table itself."""
    spec = make_spec()
    data = {**spec.data.model_dump(mode="json"), "layout": {"numeric": "vector", "rows_per_record": 64}}
    packed = make_plan(make_spec(data=data))
    request = requests.export_job(packed, make_snapshot(packed)).request
    assert (request.layout.numeric, request.layout.rows_per_record) == (("distance",), 64)
    training = spec.training.model_dump(mode="json")
    cases = {"tfrecord": ("tfrecord", "all"), "csv": ("csv", "all"), "bigquery": ("tfrecord", "test")}
    for wanted, expected in cases.items():
        plan = make_plan(make_spec(training={**training, "input": wanted}))
        request = requests.export_job(plan, make_snapshot(plan)).request
        assert (request.format, request.only) == expected


def test_a_champion_that_was_trained_on_tonight_s_test_days_is_not_dueled_with(small_plan):
    """More test days than in the champion's run: its training days reach into them."""
    first = small_plan.window.test_start
    earlier = champion()
    skipped = requests.evaluation_job(small_plan, earlier, champion_trained_before=first + timedelta(days=1)).request
    assert skipped.champion is None
    assert "has seen some" in skipped.champion_skipped
    dueled = requests.evaluation_job(small_plan, earlier, champion_trained_before=first).request
    assert dueled.champion == earlier


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ({}, "trained with data.split: time, and this run has hash"),
        ({"split": "hash", "test_percent": 10}, "trained with data.test_percent: 10, and this run has 20"),
        ({"split": "hash", "test_percent": 20}, None),
        ({"split": "hash", "test_percent": 30}, None),
    ],
    ids=["by-time", "fewer-tested", "as-many", "more-tested"],
)
def test_a_champion_that_tested_on_other_keys_is_not_compared(then, words):
    """The test split of a smaller percentage is a part of a larger one's, so only its growth is a leak."""
    data = {"query": "late/examples.sql", "key": "id"}
    plan = make_plan(make_spec(data={**data, "split": "hash", "test_percent": 20}), sql="SELECT 1")
    its_data = make_spec(data={**data, **(then or {"event_time": "at"})}).data
    asked = requests.evaluation_job(
        plan, champion(), champion_trained_before=plan.window.test_start, champion_data=its_data
    ).request
    assert (asked.champion is None) == (words is not None)
    assert words is None or words in asked.champion_skipped

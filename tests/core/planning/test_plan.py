"""Making the plan."""

from __future__ import annotations

import json

import pytest

from retraining.core import documents, settings
from retraining.core.catalog import cost
from retraining.core.catalog.machines import planned_machines
from retraining.core.documents import digest
from retraining.core.errors import PlanError, SettingsError
from retraining.core.jobs import requests
from retraining.core.planning import plan
from tests.support.refusals import refuses
from tests.support.small_model import AS_OF, ENVIRON, SQL, make_plan, make_spec


def test_a_plan_holds_everything_a_run_needs(small_plan):
    assert small_plan.as_of == AS_OF
    assert str(small_plan.window.start) == "2013-11-09"
    assert small_plan.query.sql == SQL
    assert small_plan.query.sha256 == digest(SQL.encode())
    assert small_plan.run_uri == f"gs://my-retraining/late/runs/{small_plan.run_key}"
    assert small_plan.spec == make_spec()
    assert small_plan.attempt is None


def test_a_plan_survives_storage(small_plan):
    data = small_plan.to_bytes()
    again = documents.Plan.parse(data)
    assert again == small_plan
    assert again.digest() == digest(data)
    assert data.endswith(b"}\n")


def test_the_same_inputs_give_the_same_run_whoever_starts_it(small_plan):
    by_hand = make_plan(
        trigger=documents.Trigger(kind="manual", reason="because"), dag_run_id="manual__1", dag_id="other"
    )
    assert by_hand.run_key == small_plan.run_key


@pytest.mark.parametrize(
    "changes",
    [
        {"sql": SQL + " "},
        {"overrides": {"training.epochs": 1}},
        {"mode": "backfill"},
        {"deploy": False},
        {"force": True},
        {"spec": make_spec(description="another")},
        {"settings": settings.load({**ENVIRON, "RETRAINING_TRAINER_IMAGE": "host/trainer:0.2.0"})},
        {"settings": settings.load({**ENVIRON, "RETRAINING_SERVING_IMAGE": f"host/serving@sha256:{'a' * 64}"})},
        {"settings": settings.load({**ENVIRON, "RETRAINING_TRAINER_IMAGE": f"host/trainer@sha256:{'b' * 64}"})},
    ],
    ids=["sql", "override", "backfill", "no deploy", "force", "spec", "image", "serving image", "digest"],
)
def test_whatever_decides_the_result_changes_the_key(small_plan, changes):
    assert make_plan(**changes).run_key != small_plan.run_key


def test_an_image_by_digest_is_kept_as_it_is():
    images = {
        "RETRAINING_TRAINER_IMAGE": f"host/trainer@sha256:{'b' * 64}",
        "RETRAINING_SERVING_IMAGE": f"host:5000/serving@sha256:{'a' * 64}",
    }
    planned = make_plan(settings=settings.load({**ENVIRON, **images}))
    assert [planned.trainer_image, planned.serving_image] == list(images.values())
    own = {"image": f"host/own@sha256:{'c' * 64}"}
    planned = make_plan(make_spec(training={"model": "wide_deep", "runtime": own}))
    (pool,) = requests.training_job(planned, None).custom_job["job_spec"]["worker_pool_specs"]
    assert pool["container_spec"]["image_uri"] == own["image"]


@pytest.mark.parametrize("image", ["host/trainer", "trainer:1", "host/trainer@sha256:abc", "host/trainer@latest"])
def test_an_image_without_tag_or_whole_digest_is_refused(image):
    with pytest.raises(SettingsError, match="RETRAINING_SERVING_IMAGE is"):
        settings.load({**ENVIRON, "RETRAINING_SERVING_IMAGE": image})


def test_force_makes_one_attempt_per_dag_run():
    first = make_plan(force=True)
    assert first.attempt == first.dag_run_id
    assert make_plan(force=True).run_key == first.run_key
    assert make_plan(force=True, dag_run_id="manual__2").run_key != first.run_key


def test_a_backfill_never_deploys():
    assert make_plan(mode="backfill", deploy=True).deploy is False


def test_overrides_are_in_the_spec_and_on_record():
    found = make_plan(overrides={"data.window_days": 20})
    assert found.spec.data.window_days == 20
    assert found.overrides == {"data.window_days": 20}
    assert str(found.window.start) == "2013-10-30"


def test_an_override_that_does_not_fit_makes_no_plan():
    with pytest.raises(PlanError, match="window_days"):
        make_plan(overrides={"data.window_days": 1})


def test_the_log_says_what_will_be_done():
    prices = cost.load_prices(settings.include_path())
    lines = plan.explain(make_plan(overrides={"training.epochs": 1}, prices=prices))
    text = "\n".join(lines)
    assert "started by scheduled (cron 0 3 * * *)" in text
    assert "2013-11-20 03:00:00 UTC, from logical_date" in text
    assert "override training.epochs = 1" in text
    assert "USD at list prices" in text
    assert "lost and failed jobs" in text
    assert lines[-1] == (
        "an endpoint's n1-standard-2 in us-central1: 0.1092 USD an hour each, at least 1 of them (79.72 USD a month); "
        "as many for the version before, kept for 24 hours after each new one, 2.62 USD"
    )


def test_the_log_names_the_machines_of_a_try():
    """They are paid while it lasts."""
    spec = make_spec(deployment={"staging": True, "keep_previous_hours": 0})
    assert plan.explain(make_plan(spec))[-1].endswith("; as many on late-staging while a version is tried there")
    spec = make_spec(deployment={"staging": True, "shadow": {"hours": 6}, "keep_previous_hours": 0})
    sent = "is tried there, and up to 1,000 requests of the last 6 hours are sent to it"
    assert plan.explain(make_plan(spec))[-1].endswith(sent)


def test_the_log_says_that_no_price_is_known():
    """Nothing is not the same as nothing to pay."""
    job, endpoint = plan.explain(make_plan(prices=None))[-2:]
    assert job == "price unknown: no list price for n1-standard-4, pd-ssd in us-central1"
    assert endpoint == (
        "an endpoint's n1-standard-2 in us-central1: price unknown, at least 1 of them; "
        "as many for the version before, kept for 24 hours after each new one"
    )


def test_an_unknown_price_makes_a_plan_that_names_it_and_a_budget_refuses_it_by_name():
    prices, cluster = cost.load_prices(settings.include_path()), {"tier": "CUSTOM", "chief": {"machine": "m9-x-4"}}
    training = {"model": "dense", "cluster": cluster, "runtime": {"image": "host/own-trainer:1"}}
    found = make_plan(spec=make_spec(training=training), prices=prices)
    assert (found.estimate_usd, found.unknown_prices) == (None, ("m9-x-4",))
    assert any("price unknown" in line and "m9-x-4" in line for line in plan.explain(found))
    with refuses(PlanError, found="m9-x-4", way_out=("budget_usd", "over_budget")):
        make_plan(spec=make_spec(training=training, budget_usd=10.0), prices=prices)


def test_a_run_over_its_budget_has_no_plan_unless_it_may():
    prices, spec = cost.load_prices(settings.include_path()), make_spec(budget_usd=0.01)
    with refuses(PlanError, where="budget_usd", found="one attempt of each", way_out="over_budget"):
        make_plan(spec=spec, prices=prices)
    allowed = make_plan(spec=spec, prices=prices, over_budget=True)
    assert allowed.estimate_usd is not None
    assert allowed.estimate_usd.at_most > 0.01


def test_a_run_with_a_budget_and_no_price_has_no_plan_unless_it_may():
    spec = make_spec(budget_usd=1000.0)
    with pytest.raises(PlanError, match="no list price"):
        make_plan(spec=spec, prices=None)
    assert make_plan(spec=spec, prices=None, over_budget=True).estimate_usd is None


def test_the_machines_of_each_job_are_written_down():
    planned = make_plan(make_spec(training={"model": "dense", "cluster": {"tier": "BASIC", "timeout_hours": 3}}))
    assert planned.machines is not None
    assert list(planned.machines) == ["export", "train", "evaluate"]
    assert planned.machines["train"].timeout_s == 3 * 3600
    assert planned_machines(planned, "train") is planned.machines["train"]


def test_a_plan_of_an_earlier_release_has_the_machines_of_its_spec(small_plan):
    values = small_plan.to_json()
    del values["machines"]
    older = documents.Plan.parse(json.dumps(values))
    assert older.machines is None
    assert planned_machines(older, "export") == planned_machines(small_plan, "export")


def test_jobs_run_on_the_recorded_machines(small_plan):
    assert small_plan.machines is not None
    (pool,) = small_plan.machines["train"].pools
    other = small_plan.machines["train"].model_copy(update={"pools": (pool.model_copy(update={"machine": "n2-x-2"}),)})
    changed = small_plan.model_copy(update={"machines": {**small_plan.machines, "train": other}})
    (spec,) = requests.training_job(changed).custom_job["job_spec"]["worker_pool_specs"]
    assert spec["machine_spec"]["machine_type"] == "n2-x-2"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"window_days": 27, "test_days": 7}, "days"),
        ({"window_days": 26, "test_days": 7}, "auto"),
        ({"window_days": 17, "test_days": 7, "validation_percent": 20}, "days"),
        ({"window_days": 407, "test_days": 7}, "days"),
        ({"window_days": 408, "test_days": 7}, "auto"),
        ({"window_days": 60, "test_days": 7, "validation_by": "rows"}, "rows"),
        ({"window_days": 10, "test_days": 7, "validation_by": "days"}, "days"),
    ],
)
def test_whole_days_are_validation_where_there_are_enough(data, found):
    """What a plan says holds for its run; a plan that says nothing has rows, as those of earlier releases."""
    spec = make_spec(data={**make_spec().data.model_dump(mode="json"), **data})
    assert make_plan(spec).spec.data.validation_by == found
    stored = json.loads(make_plan(spec).to_bytes())["spec"]["data"]
    assert stored.get("validation_by", "auto") == found


def test_a_window_of_the_form_decides_anew():
    spec = make_spec(data={**make_spec().data.model_dump(mode="json"), "window_days": 60, "test_days": 7})
    assert make_plan(spec, overrides={"data.window_days": 20}).spec.data.validation_by == "auto"

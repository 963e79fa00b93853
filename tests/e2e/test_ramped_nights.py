"""Three nights behind a ramp, under a real scheduler: a better model, a sabotaged one, one that breaks while it serves.

After the first a person goes back, and pauses retraining. Customers ask all the while. Minutes are real here:
endpoints are measured by the minute, and what they measure is known three minutes later.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from demo.bundle import change_spec
from demo.customers import Customers, beside, read_instances
from demo.dag_run import DAG_ID, MODEL
from demo.system import LaptopSystem
from retraining_laptop.dag_run import Outcome, read_outcome, wait_for_dag
from retraining_laptop.progress import follow_run
from retraining_laptop.summary import ramp_lines
from tests.e2e.slot_watch import SlotWatch
from tests.e2e.test_nights import read_json, version_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(2400)]

SHARE, WRONG_BY, WRONG_OVER = 10, 0.5, 0.35
CANARY = {
    "percent": [SHARE, 100],
    "bake_minutes": 2,
    "min_requests": 20,
    "max_error_increase": 0.05,
    "max_latency_ratio": 100.0,
    "max_answer_shift": 0.5,
}
NO_NEWS = 600
RAMP_WITHIN_S = 900
LONGER = {"epochs": 40}
BEFORE, BETTER, PAUSED, SABOTAGED, BROKEN = (f"2013-11-{day:02d}T04:00:00Z" for day in range(20, 25))
LABEL = "CAST(flights.arr_delay > 15 AS INT64) AS arrived_late"
NOISE = (
    "IF(flights.scheduled_departure < TIMESTAMP_SUB(@window_end, INTERVAL 5 DAY), "
    "IF(MOD(ABS(FARM_FINGERPRINT(CONCAT('noise', CAST(flights.flight_id AS STRING)))), 100) < 20, 1, 0), "
    "CAST(flights.arr_delay > 15 AS INT64)) AS arrived_late"
)
"""Labels of the training days have nothing to do with their flights; those of the five test days are true."""


class RampedRuns:
    """The runs of one model, with customers at its endpoint.

    Args:
        laptop: The system.
    """

    def __init__(self, laptop: LaptopSystem) -> None:
        self.laptop, self.api = laptop, laptop.airflow.api()
        self.project = os.environ["RETRAINING_PROJECT"]
        self.customers: Customers | None = None
        self.outcomes: dict[str, Outcome] = {}

    def spec(self, **promote: float) -> None:
        """Write the spec with this canary, and the rule by which a challenger is promoted."""

        def change(spec: dict[str, Any]) -> None:
            spec["deployment"] |= {"canary": CANARY, "staging": True}
            spec["evaluation"]["promote"] |= promote

        change_spec(self.laptop.dags_path, MODEL, change)

    def sabotage(self, old: str, new: str) -> None:
        """Change the examples query."""
        path = self.laptop.dags_path / "include" / "sql" / MODEL / "examples.sql"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))

    def trigger(self, as_of: str, conf: dict[str, Any] | None = None) -> str:
        """Start a run."""
        wait_for_dag(self.api, DAG_ID)
        self.api.unpause(DAG_ID)
        return self.api.trigger(DAG_ID, logical_date=as_of, conf=conf)

    def follow(self, as_of: str, run_id: str) -> Outcome:
        """Wait until a run has ended well."""
        follow_run(self.api, DAG_ID, run_id, say=print, timeout_s=NO_NEWS + RAMP_WITHIN_S)
        outcome = self.outcomes[as_of] = read_outcome(self.api, DAG_ID, run_id, self.project)
        assert outcome.state == "success", str(outcome.failures)
        return outcome

    def watched(self, as_of: str, conf: dict[str, Any] | None = None) -> tuple[Outcome, SlotWatch]:
        """A run from its start to its end, and how long its `deploy` held a worker slot."""
        run_id = self.trigger(as_of, conf)
        watch = SlotWatch(api=self.laptop.airflow.api(), dag_id=DAG_ID, run_id=run_id, task_id="deploy")
        with watch.watching():
            outcome = self.follow(as_of, run_id)
        print(
            f"ramp: deploy took {watch.took_s:.0f} s and held a worker slot for {watch.sum_s:.1f} s of them, "
            f"{watch.longest_s:.1f} s at a time at most"
        )
        return outcome, watch

    def version_id(self, as_of: str) -> str:
        """Of the version that a night registered."""
        return str(version_of(self.outcomes[as_of].documents["plan"]["run_key"]).version_id)

    def rollout(self) -> dict[str, Any]:
        """How far the change of the champion is."""
        bucket = next(iter(self.outcomes.values())).documents["plan"]["bucket"]
        return read_json(f"gs://{bucket}/{MODEL}/rollout.json")


@pytest.fixture(scope="module")
def nights(laptop: LaptopSystem) -> Iterator[RampedRuns]:
    """A first champion, and customers who ask it."""
    made = RampedRuns(laptop)
    made.spec(min_gain=-0.08, max_loss_from_best=0.08)
    first = made.follow(BEFORE, made.trigger(BEFORE))
    print(f"before: {first.documents['decision']['words']}")
    assert first.documents["deployment"]["deployed"], first.documents["deployment"]["words"]
    instances = read_instances(first.documents["plan"], 200)
    made.customers = Customers(endpoint_name=first.documents["deployment"]["endpoint_name"], instances=instances)
    with made.customers.asking():
        yield made


def assert_tried_on_staging(deployment: dict[str, Any]) -> None:
    """It answered as the saved model on an endpoint that no customer asks, and was taken off there again."""
    tried = deployment["staging"]
    assert tried["passed"], tried
    assert tried["endpoint_name"] != deployment["endpoint_name"]
    from google.cloud import aiplatform_v1  # after the local cloud's variables are set

    options = {"api_endpoint": f"{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com"}
    client = aiplatform_v1.EndpointServiceClient(client_options=options)
    assert list(client.get_endpoint(name=tried["endpoint_name"]).deployed_models) == []


def break_while_it_serves(nights: RampedRuns, as_of: str) -> float:
    """Once the version has its share, let it answer wrongly; gives the moment."""

    def ramping() -> dict[str, Any] | None:
        found = nights.rollout()
        return found if found["state"] == "ramping" and found["steps"] and found["run_key"].startswith(as_of) else None

    rollout = wait_for("its share of the traffic", ramping, NO_NEWS)
    url = f"https://{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com/faults"
    headers = {"Authorization": f"Bearer {os.environ['GOOGLE_AUTH_TOKEN_FOR_TESTING']}"}
    target = f"DeployedModel.Predict {MODEL.replace('_', '-')}/{rollout['deployed_model_id']}"
    fault = {"target": target, "count": 0, "action": {"kind": "skew", "by": WRONG_BY}}
    requests.post(url, json=fault, headers=headers, timeout=60).raise_for_status()
    return time.monotonic()


class TestRampedNights:
    """In the order in which they happen; each needs those before."""

    def test_a_better_model_comes_to_all_traffic_step_by_step(self, nights: RampedRuns) -> None:
        """Promoted, all gates of the ramp passed, and customers are answered by it."""
        outcome, watch = nights.watched(BETTER, LONGER)
        deployment = outcome.documents["deployment"]
        assert deployment["deployed"], f"{outcome.documents['decision']['words']} {deployment['words']}"
        print(f"better: {outcome.documents['decision']['words']}")
        assert_tried_on_staging(deployment)
        (step,) = deployment["steps"]
        print("\n".join(ramp_lines(deployment["steps"])))
        assert [gate["passed"] for gate in step["gates"]] == [True] * 4
        assert max(deployment["traffic"].values()) == 100
        assert watch.longest_s < watch.sum_s  # it slept in between
        since = time.monotonic()
        wait_for("an answer of it", lambda: nights.customers.first_answer_by(nights.version_id(BETTER), since))

    def test_a_person_goes_back_within_seconds_and_pauses(self, nights: RampedRuns) -> None:
        """The version of the first night is deployed still; seconds from the click to its first answer."""
        wait_for_dag(nights.api, "rollback")
        nights.api.unpause("rollback")
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
        conf = {"model": MODEL, "reason": "complaints", "pause_until": tomorrow}
        since = time.monotonic()
        run_id = nights.api.trigger("rollback", conf=conf)
        before = nights.version_id(BEFORE)
        answer = wait_for("the version before", lambda: nights.customers.first_answer_by(before, since))
        print(f"rollback: the version before answered {answer.at - since:.1f} s after the trigger")
        state, _ = follow_run(nights.api, "rollback", run_id, say=print, timeout_s=300)
        assert state == "success"
        assert "champion" in version_of(nights.outcomes[BEFORE].documents["plan"]["run_key"]).version_aliases

    def test_a_paused_model_is_not_retrained_and_the_run_is_green(self, nights: RampedRuns) -> None:
        """Nothing but the plan and the teardowns; no job, no folder, and the log says until when and why."""
        run_id = nights.trigger(PAUSED)
        state, _ = follow_run(nights.api, DAG_ID, run_id, say=print, timeout_s=120)
        states = {ti["task_id"]: ti["state"] for ti in nights.api.task_instances(DAG_ID, run_id)}
        assert state == "success"
        ran = {task for task, said in states.items() if said == "success"}
        assert ran == {"plan", "report", "cancel_jobs", "conclude"}
        assert {said for task, said in states.items() if task not in ran} == {"skipped"}
        for task_id in ("plan", "conclude"):
            assert "because: complaints" in "\n".join(nights.api.log_lines(DAG_ID, run_id, task_id, 1))

    def test_the_pause_is_taken_away(self, nights: RampedRuns) -> None:
        """By the same DAG; the nights after this one run."""
        run_id = nights.api.trigger("rollback", conf={"model": MODEL, "to": "stay"})
        state, _ = follow_run(nights.api, "rollback", run_id, say=print, timeout_s=300)
        assert state == "success"

    def test_a_sabotaged_model_is_rejected(self, nights: RampedRuns) -> None:
        """Labels of the training days are noise: it never meets a request."""
        nights.sabotage(LABEL, NOISE)
        try:
            outcome = nights.follow(SABOTAGED, nights.trigger(SABOTAGED))
        finally:
            nights.sabotage(NOISE, LABEL)
        print(f"sabotaged: {outcome.documents['decision']['words']}")
        assert outcome.documents["decision"]["verdict"] == "reject"
        assert outcome.documents["deployment"]["deployed"] is False
        assert nights.customers.first_answer_by(nights.version_id(SABOTAGED), 0.0) is None

    def test_a_model_that_breaks_while_it_serves_goes_back_by_a_gate(self, nights: RampedRuns) -> None:
        """Who is told something wrong are at most its share of the requests, and then nobody."""
        champion, moments = nights.version_id(BEFORE), []
        as_of = datetime.fromisoformat(BROKEN).strftime("%Y%m%dt%H%M%Sz")

        def break_once() -> None:
            if not moments:
                moments.append(break_while_it_serves(nights, as_of))

        with beside(break_once, 1.0):
            outcome, _ = nights.watched(BROKEN)
        deployment = outcome.documents["deployment"]
        assert deployment["deployed"] is False
        assert f"at {SHARE} % of the traffic" in deployment["words"]
        print(f"broken: {deployment['words']}")
        wrong, asked = nights.customers.wrong_answers(champion, moments[0], WRONG_OVER)
        before, _ = nights.customers.wrong_answers(champion, 0.0, WRONG_OVER)
        print(f"broken: {wrong} of {asked} answers were wrong ({wrong / asked:.1%}), at a share of {SHARE} %")
        share = SHARE / 100
        assert 0 < wrong <= share * asked + 4 * math.sqrt(asked * share * (1 - share))
        assert before == wrong, "answers before the fault count as wrong: this measures nothing"
        since = time.monotonic()
        wait_for("200 more answers", lambda: nights.customers.wrong_answers(champion, since, 0.0)[1] >= 200)
        assert nights.customers.wrong_answers(champion, since, WRONG_OVER)[0] == 0

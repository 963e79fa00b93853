"""The ramp: a version's share grows step by step, each judged by what both versions answered in the same minutes.

In: the rollout, `ramping`. Out: the rollout, still `ramping`, `proven`, or turned back by a gate. Each poke looks and
sleeps; the step that is open stands in the rollout, so whoever dies, the next poke goes on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from retraining.core.documents import Plan, RampStep, Served
from retraining.core.errors import ConflictError
from retraining.core.monitoring import distributions, request_log
from retraining.core.naming import bigquery
from retraining.core.promotion import ramp
from retraining.core.promotion.versions import Version
from retraining.core.spec.deployment import Canary
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.ports import CloudPort
from retraining.operators.deployment.rollout_state import RolloutState, move_traffic

LOGGER = logging.getLogger(__name__)
NOTHING = Served(requests=0, errors=0, latency_ms=None)


class Ramp:
    """The growing share of one run's version.

    Args:
        cloud: The hooks.
        plan: The run.
        state: Of the model's rollout, `ramping`.
    """

    def __init__(self, cloud: CloudPort, plan: Plan, state: RolloutState) -> None:
        self._cloud = cloud
        self._plan = plan
        self._state = state
        self._id = state.current.deployed_model_id

    def advance(self, endpoint: Endpoint, champion: Version | None) -> None:
        """Go as far as this poke allows: judge the step that is open, take the next one.

        Args:
            endpoint: As it is now.
            champion: The version with that alias now.

        Raises:
            ConflictError: Somebody else changed the endpoint or the champion.
        """
        rollout, canary = self._state.current, self._plan.spec.deployment.canary
        step = ramp.open_step(rollout.steps)
        self._require_champion(champion)
        self._require_as_left(endpoint)
        if step is not None and canary is not None and not self._pass_step(endpoint, canary, step):
            return
        percent = ramp.next_percent(canary, rollout.before.traffic, self._state.current.steps)
        traffic = ramp.with_version(rollout.before, self._id, percent)

        def choose(seen: Endpoint) -> Mapping[str, int]:
            self._require_as_left(seen)
            return traffic

        move_traffic(self._cloud, self._state, endpoint, choose)
        LOGGER.info("%d %% of the traffic goes to %s", traffic[self._id], rollout.version_name)
        if percent == 100:
            self._state.change_rollout(state="proven")
        else:
            opened = RampStep(percent=percent, start=self._state.moment())
            self._state.change_rollout(steps=(*self._state.current.steps, opened))

    def _require_as_left(self, endpoint: Endpoint) -> None:
        """Refuse to go on with an endpoint that somebody else changed; a step may have begun without being noted."""
        rollout, canary = self._state.current, self._plan.spec.deployment.canary
        if self._id not in endpoint.deployed:
            raise ConflictError(
                endpoint.name,
                f"no deployed model {self._id}: somebody undeployed it during the ramp",
                rollout.version_name,
                "Clear the deploy task to begin again",
            )
        step, before = ramp.open_step(rollout.steps), rollout.before
        now = rollout.steps[-1].percent if rollout.steps else ramp.first_percent(before.traffic)
        due = {now} if step is not None else {now, ramp.next_percent(canary, before.traffic, rollout.steps)}
        expected = [ramp.with_version(before, self._id, percent) for percent in sorted(due)]
        if endpoint.traffic not in expected:
            raise ramp.changed_traffic(endpoint.name, endpoint.traffic, expected[0])

    def _require_champion(self, champion: Version | None) -> None:
        """Refuse to go on against another champion than the one that was decided against."""
        rollout = self._state.current
        holder = champion.version_id if champion else None
        if holder not in (rollout.before.champion_id, rollout.version_id):
            raise ConflictError(
                f"alias champion of {rollout.model}",
                f"version {holder}: somebody else moved it during the ramp",
                f"version {rollout.before.champion_id}",
                "Trigger the DAG with Force: a new attempt meets the champion of now",
            )

    def _pass_step(self, endpoint: Endpoint, canary: Canary, step: RampStep) -> bool:
        """Judge a step if its time is over; True: all gates passed, False: it lasts, or the rollout returns."""
        seen, main = ramp.window(step, self._cloud.clock.now()), ramp.main_model(self._state.current.before)
        if ramp.is_too_early(canary, seen):
            return False
        served = self._cloud.serving_metrics.served(endpoint.name, *seen)
        new, old = served.get(self._id, NOTHING), served.get(main, NOTHING)
        answers = self._logged_answers(seen, main, step)
        smoke_answers = None if new.requests or old.requests else self._smoke_answers(endpoint, seen[1])
        unmeasured = ramp.reason_unmeasured(new, len(answers.get(self._id, [])), smoke_answers)
        gates = ramp.judge(canary, seen, new, old, self._shift(canary, answers, main), unmeasured)
        if not gates:
            LOGGER.info("%d requests so far at %d %%: waiting for %d", new.requests, step.percent, canary.min_requests)
            return False
        for gate in gates:
            LOGGER.info("%d %%: %s %s (%s)", step.percent, gate.name, ramp.OUTCOMES[gate.passed], gate.message)
        judged = step.model_copy(update={"end": seen[1], "new": new, "old": old, "gates": gates})
        steps = (*self._state.current.steps[:-1], judged)
        if ramp.failed_gate(steps):
            self._state.change_rollout(state="returning", reason=ramp.refusal(steps), steps=steps)
            return False
        self._state.change_rollout(steps=steps)
        return True

    def _smoke_answers(self, endpoint: Endpoint, end: datetime) -> int | None:
        """Return how many requests of the version are measured since its smoke test; None: it was asked in none."""
        tests = [test.start for test in self._state.current.smoke_requests if test.deployed_model_id == self._id]
        if not tests:
            return None
        served = self._cloud.serving_metrics.served(endpoint.name, max(tests), end)
        return served.get(self._id, NOTHING).requests

    def _logged_answers(self, seen: tuple[datetime, datetime], main: str, step: RampStep) -> dict[str, list[float]]:
        """Return what both versions answered by the request log, by deployed-model id; nothing where there is none."""
        settings, plan = self._cloud.settings, self._plan
        table = bigquery.request_log_table(plan.project, plan.dataset, plan.model)
        if self._cloud.warehouse.table_schema(table) is None:
            return {}
        query = request_log.render_answers_sql(table, (self._id, main), *seen)
        asked = f"{step.percent}|{seen[1].isoformat()}"
        job_id = bigquery.ramp_job_id(settings.environment, plan.model, plan.run_key, asked)
        return request_log.read_answers(plan.spec, self._cloud.warehouse.run_query(query, job_id, "answers").rows)

    def _shift(self, canary: Canary, answers: dict[str, list[float]], main: str) -> float | None:
        """Return how differently both answered; None where too few answers are logged."""
        new, old = answers.get(self._id, []), answers.get(main, [])
        if min(len(new), len(old)) < canary.min_requests:
            return None
        return distributions.shift_of_answers(self._plan.spec, new, old)

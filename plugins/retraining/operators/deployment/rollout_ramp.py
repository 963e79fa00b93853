"""The ramp: a version's share grows step by step, each judged by what both versions answered in the same minutes.

In: the rollout, `ramping`. Out: the rollout, still `ramping`, `proven`, or turned back by a gate. Each poke looks and
sleeps; the step that is open stands in the rollout, so whoever dies, the next poke goes on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from retraining.core.documents import AnswerShift, Evaluation, Plan, RampStep, Served
from retraining.core.errors import ConflictError
from retraining.core.monitoring import distributions, request_log
from retraining.core.naming import bigquery
from retraining.core.promotion import ramp, ramp_gates
from retraining.core.promotion.latencies import Measured
from retraining.core.promotion.versions import Version
from retraining.core.spec.deployment import Canary
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.ports import CloudPort
from retraining.operators.deployment.rollout_state import RolloutState, move_traffic
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
HOUR_BEFORE = timedelta(hours=1)
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
        """Judge a step; True: all gates passed, False: it lasts, or the rollout returns."""
        main = ramp.main_model(self._state.current.before)
        step = self._note_looks(endpoint, canary, step, main)
        earlier = self._state.current.steps[:-1]
        gates = ramp_gates.judge(canary, (*earlier, step))
        if not gates:
            LOGGER.info("%d minutes so far at %d %%: no verdict yet", len(step.looks), step.percent)
            return False
        step = self._with_measures(endpoint, canary, step, main)
        gates = ramp_gates.judge(canary, (*earlier, step))
        for gate in gates:
            LOGGER.info("%d %%: %s %s (%s)", step.percent, gate.name, ramp.OUTCOMES[gate.passed], gate.message)
        judged = step.model_copy(update={"end": step.looks[-1].end, "gates": gates})
        steps = (*earlier, judged)
        if ramp.failed_gate(steps):
            self._state.change_rollout(state="returning", reason=ramp.refusal(steps), steps=steps)
            return False
        self._state.change_rollout(steps=steps)
        return True

    def _note_looks(self, endpoint: Endpoint, canary: Canary, step: RampStep, main: str) -> RampStep:
        """Write down what both versions answered since the last look; who dies before that looks again at the same."""
        due = ramp_gates.next_looks(canary, step, ramp.window(step, self._cloud.clock.now()))
        if not due:
            return step
        slow_ms = next((look.slow_ms for one in self._state.current.steps for look in one.looks if look.slow_ms), None)
        values: dict[str, object] = {}
        if slow_ms is None:
            old = self._answered_before(endpoint, step, main, due[0][0])
            if old.latencies.total >= canary.min_requests:
                slow_ms = old.latencies.slow_ms(canary.max_latency_ratio)
            if len(self._state.current.steps) == 1 and not step.looks:
                values["hour_before"] = ramp_gates.hour_before(old)
        measured = self._cloud.serving_metrics.measured(
            endpoint.name, due[0][0], due[-1][1], ramp_gates.look_length(canary)
        )
        looks = [
            ramp_gates.look(canary, minutes, by_id.get(self._id, Measured()), by_id.get(main, Measured()), slow_ms)
            for minutes, by_id in zip(due, measured, strict=True)
        ]
        noted = step.model_copy(update={**values, "looks": (*step.looks, *looks)})
        self._state.change_rollout(steps=(*self._state.current.steps[:-1], noted))
        return noted

    def _answered_before(self, endpoint: Endpoint, step: RampStep, main: str, end: datetime) -> Measured:
        """Return what the version before answered in the hour before the step, and in its looks so far."""
        begin = (step.looks[0].start if step.looks else end) - HOUR_BEFORE
        (found,) = self._cloud.serving_metrics.measured(endpoint.name, begin, end, end - begin)
        return found.get(main, Measured())

    def _with_measures(self, endpoint: Endpoint, canary: Canary, step: RampStep, main: str) -> RampStep:
        """Return a step whose minutes are over with what else it is judged by, and what people read of it."""
        seen = step.looks[0].start, step.looks[-1].end
        counts = ramp_gates.counted(step)
        served = self._cloud.serving_metrics.served(endpoint.name, *seen)
        new, old = (
            ramp_gates.served(count, served.get(key, NOTHING).latency_ms)
            for count, key in zip(counts, (self._id, main), strict=True)
        )
        answers = self._logged_answers(seen, main, step)
        smoke_answers = None if new.requests or old.requests else self._smoke_answers(endpoint, seen[1])
        unmeasured = ramp.reason_unmeasured(new, len(answers.get(self._id, [])), smoke_answers)
        shift = Shifts(self._cloud, self._plan).shift(canary, answers.get(self._id, []), answers.get(main, []))
        return step.model_copy(update={"new": new, "old": old, "answers": shift, "unmeasured": unmeasured})

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


class Shifts:
    """How far a version's answers are from others.

    Args:
        cloud: The hooks.
        plan: The run, whose evaluation says what its version answered to its test split.
    """

    def __init__(self, cloud: CloudPort, plan: Plan) -> None:
        self._cloud = cloud
        self._plan = plan

    def shift(self, canary: Canary, new: Sequence[float], old: Sequence[float]) -> AnswerShift:
        """Return how far the answers are from what was promised, and from those of before; of few, nothing."""
        shift = AnswerShift(new=len(new), old=len(old))
        if len(new) < canary.min_requests:
            return shift
        values: dict[str, float] = {}
        promised = self._promised_shift(new)
        if promised is not None:
            values |= {"promised": promised.value, "promised_low": promised.low}
        if len(old) >= canary.min_requests:
            before = distributions.shift_of_answers(self._plan.spec, new, old)
            values |= {"before": before.value, "before_low": before.low}
        return shift.model_copy(update=values)

    def _promised_shift(self, new: Sequence[float]) -> distributions.Distance | None:
        """Return how far the answers are from those to the version's test split; None: its evaluation has none."""
        evaluation = Record(self._cloud.artifacts, self._plan.run_uri).find_document(Evaluation)
        if evaluation is None or evaluation.run_key != self._plan.run_key or evaluation.challenger.counted is None:
            return None
        return distributions.shift_from_promise(self._plan.spec, evaluation.challenger.counted, new)

"""Shadow traffic on the endpoint for tries: logged requests are sent again, a chunk in each poke.

In: the rollout, `staging`, its version there and right by its smoke requests. Out: the rollout with the replay's gates.
Each request is sent once at most: how far the next chunk goes is written down before it is sent, so whoever dies has
lost answers and doubled none. The log is read by one job, whose name stands in the rollout before it is asked for.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from retraining.core.documents import Plan, ShadowTraffic, Signature, Staging
from retraining.core.monitoring import request_log
from retraining.core.naming import bigquery
from retraining.core.promotion import ramp, shadow
from retraining.core.promotion.latencies import Measured
from retraining.core.promotion.shadow import Log, LoggedRequest
from retraining.core.spec.deployment import Canary
from retraining.core.spec.deployment import Shadow as ShadowSection
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.ports import CloudPort
from retraining.hooks.predictions import Unanswered
from retraining.operators.deployment.rollout_ramp import Shifts
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState
from retraining.operators.record.own_requests import own_requests

LOGGER = logging.getLogger(__name__)
ANSWER_S = 30.0
"""So long a request is waited for; none is tried again, for a customer's may not be."""


class ShadowReplay:
    """The replay of one run's version.

    Args:
        cloud: The hooks.
        plan: The run.
        state: Of the model's rollout, `staging`.
        section: Of the spec.
        signature: Of the run's model; None: it is not known.
    """

    def __init__(
        self,
        cloud: CloudPort,
        plan: Plan,
        state: RolloutState,
        section: ShadowSection,
        signature: Signature | None,
    ) -> None:
        self._cloud = cloud
        self._plan = plan
        self._state = state
        self._section = section
        # An own container may take requests that lack an input.
        self._signature = None if plan.spec.deployment.container else signature
        self._canary = plan.spec.deployment.canary or Canary()

    def advance(self, endpoint: Endpoint) -> bool:
        """Send a chunk, or judge what was sent; True: it is judged.

        Args:
            endpoint: The one for tries.
        """
        staging, before = self._state.current.staging, self._state.current.before
        if staging is None or (staging.shadow is not None and staging.shadow.gates):
            return True
        now = self._state.moment()
        if not before.traffic:
            self._judge(ShadowTraffic(until=now, last_sent=now, requests=0, missing=shadow.NOBODY_SERVES))
            return True
        done = staging.shadow or self._note(ShadowTraffic(until=now, last_sent=now))
        main = ramp.main_model(before)
        log = self._log(main, done)
        if done.requests is None:
            done = self._note(shadow.begun(self._section, done, log))
        if done.values > 1:
            if not shadow.is_over(self._section, done, now):
                self._send(endpoint, done, log.requests)
                return False
            end = done.last_sent.replace(second=0, microsecond=0) + timedelta(minutes=1)
            if self._cloud.clock.now() < end + ramp.METRICS_LATE:
                return False  # what was sent is measured later
            done = self._look(endpoint, done, log.requests, main, end)
        self._judge(done)
        return True

    def _log(self, main: str, done: ShadowTraffic) -> Log:
        """Return the log; the same in each poke, for the query is one job by its id. Empty where nothing is sent."""
        plan = self._plan
        table = bigquery.request_log_table(plan.project, plan.dataset, plan.model)
        if done.requests is None:
            if self._cloud.warehouse.table_schema(table) is None:
                return Log(missing=f"there is no request log ({table})")
        elif done.values < 2:
            return Log()
        query = request_log.render_shadow_sql(table, main, done.until, self._section)
        asked = f"shadow|{done.until.isoformat()}"
        job_id = bigquery.ramp_job_id(self._cloud.settings.environment, plan.model, plan.run_key, asked)
        rows = self._cloud.warehouse.run_query(query, job_id, "shadow").rows
        start, bucket = done.until - timedelta(hours=self._section.hours), self._cloud.settings.bucket
        own = own_requests(self._cloud.artifacts, bucket, plan.model, start, done.until)
        return shadow.read_log(rows, (*self._state.current.smoke_requests, *own), self._signature)

    def _send(self, endpoint: Endpoint, done: ShadowTraffic, requests: Sequence[LoggedRequest]) -> None:
        """Send what is due; written down as sent before, with its answers after."""
        chunk, before = shadow.next_chunk(done, requests), done.sent
        done = self._note(done.model_copy(update={"sent": before + len(chunk), "last_sent": self._state.moment()}))
        clock, answers, errors, sent = self._cloud.clock, list[str](), Counter[str](), 0
        began = clock.monotonic()
        for after, request in chunk:
            if clock.monotonic() - began > shadow.LONGEST_CHUNK.total_seconds():
                break  # and the next poke goes on with this one, which was not sent
            if (wait := began + after.total_seconds() - clock.monotonic()) > 0:
                clock.sleep(wait)
            found = self._cloud.endpoints.predict_once(endpoint, request.instances, ANSWER_S)
            sent += 1
            if isinstance(found, Unanswered):
                errors[found.kind] += 1
            else:
                answers += [request_log.text_of_answer(each) for each in found.predictions]
        self._note(self._with_answers(done, before + sent, sent - errors.total(), errors.total(), answers))
        named = "".join(f", {number} {kind}" for kind, number in errors.most_common())
        LOGGER.info("shadow traffic: %d of %s requests sent%s", before + sent, done.requests, named)

    def _with_answers(
        self, done: ShadowTraffic, sent: int, answered: int, errors: int, answers: Sequence[str]
    ) -> ShadowTraffic:
        read = [request_log.number_of_answer(self._plan.spec, text) for text in answers]
        finite = [number for number in read if number is not None and math.isfinite(number)]
        values = {
            "sent": sent,
            "last_sent": self._state.moment(),
            "answered": done.answered + answered,
            "errors": done.errors + errors,
            "answers": (*done.answers, *finite)[: shadow.MOST_ANSWERS],
            "not_finite": done.not_finite + sum(number is not None for number in read) - len(finite),
        }
        return done.model_copy(update=values)

    def _look(
        self, endpoint: Endpoint, done: ShadowTraffic, requests: Sequence[LoggedRequest], main: str, end: datetime
    ) -> ShadowTraffic:
        """Return the replay with what its gates follow from: times of both versions, and answers of both."""
        spec, mine = self._plan.spec, self._state.current.deployed_model_id
        first = done.until.replace(second=0, microsecond=0)
        (new,) = self._cloud.serving_metrics.measured(endpoint.name, first, end, end - first)
        logged_time, serving = timedelta(hours=self._section.hours), self._cloud.endpoints.get(self._plan.model)
        old: dict[str, Measured] = {}
        if serving is not None:
            (old,) = self._cloud.serving_metrics.measured(serving.name, first - logged_time, first, logged_time)
        read = [request_log.number_of_answer(spec, text) for text in shadow.logged_answers(requests[: done.sent])]
        logged = [number for number in read if number is not None][: shadow.MOST_ANSWERS]
        answers = [*done.answers, *[math.nan] * done.not_finite]
        shift = Shifts(self._cloud, self._plan).shift(self._canary, answers, logged)
        done = shadow.looked_at(self._canary, done, end, new.get(mine, Measured()), old.get(main, Measured()))
        return done.model_copy(update={"answers_shift": shift})

    def _judge(self, done: ShadowTraffic) -> None:
        gates = shadow.judge_shadow(self._canary, done)
        for gate in gates:
            LOGGER.info("shadow traffic: %s %s (%s)", gate.name, ramp.OUTCOMES[gate.passed], gate.message)
        judged = shadow.judged(done, gates)
        if reason := shadow.refusal(gates):
            failed = self._staging().model_copy(update={"shadow": judged, "passed": False, "message": reason})
            self._state.change_rollout(state="returning", reason=reason, staging=failed)
        else:
            self._note(judged)

    def _note(self, done: ShadowTraffic) -> ShadowTraffic:
        self._state.change_rollout(staging=self._staging().model_copy(update={"shadow": done}))
        return done

    def _staging(self) -> Staging:
        """Return the try that the replay belongs to."""
        if staging := self._state.current.staging:
            return staging
        raise OvertakenError(self._state.uri, "no try of a version", "one that is under way", "The next poke begins it")

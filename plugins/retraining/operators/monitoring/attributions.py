"""The watcher of attributions: the champion is asked what each feature adds to its answers, and what it added before.

A monitor run asks at most once: what it will ask is written down first (`attribution_request.json`), and whoever finds
that written by somebody else asks nothing. So the predictions of a run are bounded whatever dies, and each later reader
of the request log can leave them out. Whatever the endpoint does, the other signals do not wait for it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from retraining.core.data.sql import Query
from retraining.core.documents import (
    AttributionBaseline,
    AttributionRequest,
    Plan,
    Report,
    RequestAttributions,
    SampledRequest,
    Signal,
    Snapshot,
    Statistics,
)
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.documents.document import format_time
from retraining.core.documents.monitoring import NamedState
from retraining.core.monitoring import attributions
from retraining.core.monitoring.attributions import CALL_ROWS, KIND, MEASURE, MIN_ROWS, Attribution, Explained
from retraining.core.monitoring.request_log import LogWindows
from retraining.core.monitoring.signals import not_judged
from retraining.core.naming import storage, vertex
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.run_keys import stamp
from retraining.core.promotion.explanations import baseline_of
from retraining.core.promotion.versions import Version
from retraining.core.spec.explanations import BaselineValue, Explanations, unexplained_feature
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.monitoring import AttributionDrift
from retraining.core.untyped import JsonObject
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.predictions import Unanswered
from retraining.operators.monitoring.watch import ByteLimit, Seen, Watch, unasked_for
from retraining.operators.record.own_requests import ASKED_AFTER
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
DEADLINE_S = 120.0
"""Of all that one monitor run asks."""
LOGGED_WITHIN = timedelta(minutes=2)
"""After the deadline: an answer is logged when it is given, by another clock."""


class NotJudgedError(Exception):
    """There is a reason why attributions are not judged.

    Args:
        reason: Its name.
        message: The whole of it.
    """

    def __init__(self, reason: NamedState, message: str) -> None:
        super().__init__(message)
        self.reason: NamedState = reason
        self.message = message


def watch_attributions(watch: Watch) -> Seen:
    """Return the signal of attributions: of what is asked now, or of the last time while that is not long ago."""
    section = watch.spec.monitoring.attributions
    if section is None:
        return Seen(signals=())
    try:
        asking = _Asking.begin(watch, section)
        last = asking.find_last()
        signal = asking.judge(last) if last else asking.ask()
    except NotJudgedError as found:
        signal = not_judged(KIND, MEASURE, found.reason, found.message, threshold=section.max_shift)
        return Seen(signals=(signal,))
    return Seen(signals=(signal,), bytes_read=asking.bytes_read)


@dataclass(kw_only=True)
class _Asking:
    """A monitor run that may ask the champion, on an endpoint where it alone answers."""

    watch: Watch
    section: AttributionDrift
    champion: Version
    run_key: str
    endpoint: Endpoint
    log_table: str
    bytes_read: int = 0

    @classmethod
    def begin(cls, watch: Watch, section: AttributionDrift) -> _Asking:
        """Return it.

        Raises:
            NotJudgedError: There is nobody to ask, or nothing to ask about.
        """
        champion, endpoint, model = watch.champion, watch.endpoint, watch.spec.name
        if champion is None or champion.run_key is None:
            raise NotJudgedError("no_champion", f"No champion of {model} serves.")
        if endpoint is None:
            raise NotJudgedError(
                "no_endpoint", f"{model} has no endpoint: it was deleted, or nothing was deployed yet."
            )
        if watch.log_table is None:
            raise NotJudgedError("no_traffic", "Nothing was logged yet.")
        return cls(
            watch=watch,
            section=section,
            champion=champion,
            run_key=champion.run_key,
            endpoint=endpoint,
            log_table=watch.log_table,
        )

    @cached_property
    def run(self) -> Record:
        """The record of the champion's run."""
        bucket, model = self.watch.cloud.settings.bucket, self.watch.spec.name
        return Record(self.watch.cloud.artifacts, storage.run_uri(bucket, model, self.run_key))

    @cached_property
    def plan(self) -> Plan:
        """The plan of the champion's run."""
        return self.run.read_document(Plan)

    @property
    def spec(self) -> ModelSpec:
        """What the champion was trained by."""
        return self.plan.spec

    @property
    def deployed_id(self) -> str:
        """What the endpoint calls the champion."""
        return vertex.deployed_model_id(self.run_key)

    @property
    def seed(self) -> str:
        """What is drawn in this run follows from it."""
        return f"{self.run_key}|{format_time(self.watch.as_of)}"

    def find_last(self) -> Record | None:
        """Return the monitor run, this one or an earlier one, that asked this champion less than `every_hours` ago."""
        watch, kind = self.watch, AttributionRequest
        if watch.record.find_document(kind) is not None:
            return watch.record
        folder = storage.monitors_uri(watch.cloud.settings.bucket, watch.spec.name)
        start = stamp(watch.as_of - timedelta(hours=self.section.every_hours) + timedelta(seconds=1))
        suffix = f"/{kind.kind_name()}.json"
        uris = watch.cloud.artifacts.list_uris(folder, start=start, end=stamp(watch.as_of), suffix=suffix)
        for uri, data in reversed(watch.cloud.artifacts.read_some(uris).items()):
            if kind.parse(data, uri).run_key == self.run_key:
                return Record(watch.cloud.artifacts, folder_of(uri))
        return None

    def judge(self, asked: Record) -> Signal:
        """Return the signal of what a monitor run was answered.

        Raises:
            NotJudgedError: It was not, for it began to ask and died.
        """
        found = asked.find_document(RequestAttributions)
        if found is None:
            message = (
                f"{storage.ledger_id(asked.folder_uri)} began to ask the endpoint and left no answers. It is asked "
                f"again after {self.section.every_hours} hours (monitoring.attributions.every_hours)."
            )
            raise NotJudgedError("not_asked", message)
        baseline = self.run.find_document(AttributionBaseline)
        return attributions.judge_attributions(self.watch.spec, found, baseline)

    def ask(self) -> Signal:
        """Draw instances, ask for them, store what came of it.

        Raises:
            NotJudgedError: Nothing may be asked, or there is nothing to ask for.
        """
        self._require_answers_of_the_champion()
        baselines = self._baselines()
        rows = attributions.rows_within(self.section.requests, len(baselines), self.section.max_predictions)
        if rows < MIN_ROWS:
            message = (
                f"{self.section.max_predictions} predictions explain {rows} requests and as many test examples of "
                f"{len(baselines)} features each, and {MIN_ROWS} are the fewest: raise "
                "monitoring.attributions.max_predictions."
            )
            raise NotJudgedError("too_expensive", message)
        requests, test_rows = self._draw(list(baselines), rows)
        claim = self._claim(baselines, requests, test_rows)
        done = _Answering(asking=self, claim=claim).run(test_rows, requests)
        self.watch.record.write_once(done)
        return self.judge(self.watch.record)

    def _require_answers_of_the_champion(self) -> None:
        """Refuse to ask where others would answer, and as of a time that is over.

        Raises:
            NotJudgedError: It is so.
        """
        if self.watch.cloud.clock.now() - self.watch.as_of > ASKED_AFTER:
            message = (
                f"The run is as of {format_time(self.watch.as_of)}: the endpoint is asked about the last day alone."
            )
            raise NotJudgedError("not_asked", message)
        if self.endpoint.traffic != {self.deployed_id: 100}:
            message = (
                f"The traffic of {self.endpoint.name} is {self.endpoint.traffic}: others than the champion answer."
            )
            raise NotJudgedError("not_asked", message)
        if problem := unexplained_feature(f"monitoring.{KIND}", self.spec.features):
            raise NotJudgedError("not_asked", f"The champion has another feature: {problem}.")

    def _baselines(self) -> dict[str, BaselineValue]:
        """Return the value that each feature is held against, as explanations have it."""
        known = self.run.read_document(Statistics).splits["train"].features
        report = self.run.find_document(Report)
        inputs = report.signature.inputs if report else None
        explanations = self.spec.deployment.explanations or Explanations()
        return {
            feature.name: baseline_of(feature, known.get(feature.name), explanations)
            for feature in self.spec.features
            if inputs is None or feature.name in inputs
        }

    def _draw(self, features: Sequence[str], rows: int) -> tuple[list[Explained], list[Explained]]:
        """Return instances of the window's requests and, where their attributions are not known, of test examples.

        Raises:
            NotJudgedError: There are too few, or they would be too expensive to read.
        """
        watch, windows = self.watch, LogWindows.before(self.watch.spec, self.watch.as_of)
        smokes = unasked_for(watch, windows.start, windows.end)
        queries = {
            KIND: attributions.render_instances_sql(self.log_table, windows, self.seed, rows, smokes),
            **self._test_rows_query(rows),
        }
        limit = ByteLimit(watch.spec.monitoring.max_gigabytes)
        if reason := limit.reason_to_refuse(watch.cloud.warehouse, queries):
            raise NotJudgedError("too_expensive", f"{reason}: raise it, or shorten window_hours.")
        answers = {
            name: limit.run(watch.cloud.warehouse, query, watch.job_id(name), name) for name, query in queries.items()
        }
        self.bytes_read = sum(answer.bytes_processed for answer in answers.values())
        requests = attributions.read_instances(answers[KIND].rows, features)
        key = self.spec.data.key if self.spec.deployment.key_input else None
        asked_of = [feature for feature in self.spec.features if feature.name in features]
        tested = [
            attributions.read_test_rows(answer.rows, asked_of, key) for name, answer in answers.items() if name != KIND
        ]
        self._require_enough(len(answers[KIND].rows), len(requests), [len(each) for each in tested])
        return requests, [one for each in tested for one in each]

    @staticmethod
    def _require_enough(logged: int, requests: int, tested: Sequence[int]) -> None:
        if logged >= MIN_ROWS > requests:
            message = f"{logged - requests} of {logged} logged instances have not every feature as a number or a text."
            raise NotJudgedError("garbage", message)
        if requests < MIN_ROWS:
            raise NotJudgedError("too_few", f"{requests} requests in the window are too few (at least {MIN_ROWS}).")
        if tested and min(tested) < MIN_ROWS:
            raise NotJudgedError("too_few", f"{min(tested)} test examples are too few (at least {MIN_ROWS}).")

    def _test_rows_query(self, rows: int) -> dict[str, Query]:
        """Return the query of test examples by its name, where their attributions are not known yet.

        Raises:
            NotJudgedError: The run's table has expired.
        """
        if self.run.find_document(AttributionBaseline) is not None:
            return {}
        snapshot = self.run.read_document(Snapshot)
        if self.watch.cloud.warehouse.table_schema(snapshot.table) is None:
            message = (
                f"{snapshot.table} has expired, so the champion's test examples are gone and what its features added "
                "there was not asked before: the next version's is. Raise data.keep_table_days where it expires within "
                "a day of its deployment."
            )
            raise NotJudgedError("no_reference", message)
        truths = [column.name for column in snapshot.columns if column.type in ("BOOLEAN", "BOOL")]
        query = attributions.render_test_rows_sql(self.plan, snapshot.table, truths, self.seed, rows)
        return {"attribution_test_rows": query}

    def _claim(
        self, baselines: dict[str, BaselineValue], requests: Sequence[Explained], test_rows: Sequence[Explained]
    ) -> AttributionRequest:
        """Write down what will be asked, as the only one who does.

        Raises:
            NotJudgedError: Somebody else asks right now.
        """
        start = self.watch.cloud.clock.now().replace(microsecond=0)
        end = start + timedelta(seconds=DEADLINE_S) + LOGGED_WITHIN
        features = len(baselines)
        claim = AttributionRequest(
            model=self.watch.spec.name,
            as_of=self.watch.as_of,
            run_key=self.run_key,
            asked_by=f"{self.watch.asked_by}|{uuid.uuid4().hex}",
            seed=self.seed,
            features=tuple(baselines),
            baselines=baselines,
            requests=tuple(SampledRequest(request_id=one.name[0], place=one.name[1]) for one in requests),
            test_rows=tuple(one.name[0] for one in test_rows),
            predictions=sum(attributions.predictions_of(len(each), features) for each in (test_rows, requests)),
            asked=SmokeRequest(deployed_model_id=self.deployed_id, instances=CALL_ROWS, start=start, end=end),
        )
        uri = self.watch.record.uri(AttributionRequest)
        if self.watch.cloud.artifacts.write_if(uri, claim.to_bytes(), 0) is None:
            raise NotJudgedError("not_asked", "Another try of this monitor run asks the endpoint right now.")
        LOGGER.info(
            "attributions: %d requests and %d test examples are explained by %d predictions of %s, in %d requests and "
            "at most %d s",
            *(len(requests), len(test_rows), claim.predictions, self.endpoint.name),
            *(claim.predictions // CALL_ROWS, DEADLINE_S),
        )
        return claim


@dataclass(kw_only=True)
class _Answering:
    """What was written down is asked, each request once, until the deadline."""

    asking: _Asking
    claim: AttributionRequest
    calls: int = 0

    def run(self, test_rows: Sequence[Explained], requests: Sequence[Explained]) -> RequestAttributions:
        """Return what each feature added to the answers to requests, or why that is not known; store the baseline."""
        clock = self.asking.watch.cloud.clock
        began, claim, rows, failed = clock.monotonic(), self.claim, list[Attribution](), None
        try:
            if test_rows:
                self._store_baseline(self._explain(test_rows, "test", began))
            rows = self._explain(requests, "requests", began)
        except NotJudgedError as error:
            failed = error
        return RequestAttributions(
            model=claim.model,
            as_of=claim.as_of,
            run_key=claim.run_key,
            features=claim.features,
            rows=tuple(rows),
            calls=self.calls,
            seconds=round(clock.monotonic() - began, 3),
            reason=failed.reason if failed else None,
            message=failed.message if failed else None,
        )

    def _store_baseline(self, rows: Sequence[Attribution]) -> None:
        claim = self.claim
        baseline = AttributionBaseline(
            model=claim.model,
            run_key=claim.run_key,
            request_uri=self.asking.watch.record.uri(AttributionRequest),
            features=claim.features,
            rows=tuple(rows),
        )
        self.asking.run.write_once(baseline)

    def _explain(self, explained: Sequence[Explained], what: str, began: float) -> list[Attribution]:
        """Return what each feature added to each answer.

        Raises:
            NotJudgedError: The endpoint gave no answers, not in time, or other things than numbers.
        """
        claim, seed = self.claim, f"{self.claim.seed}|{what}"
        instances = attributions.asked_instances(explained, claim.baselines, seed)
        filled = [*instances, *instances[:1] * (-len(instances) % CALL_ROWS)]
        answers: list[object] = []
        for start in range(0, len(filled), CALL_ROWS):
            answers += self._predict(filled[start : start + CALL_ROWS], began)
        found = attributions.attributions_of(self.asking.spec, claim.features, seed, answers[: len(instances)])
        if found is None:
            message = f"{self.asking.endpoint.name} answers with other things than numbers."
            raise NotJudgedError("endpoint_failed", message)
        return found

    def _predict(self, instances: Sequence[JsonObject], began: float) -> list[object]:
        asking, cloud = self.asking, self.asking.watch.cloud
        left, where = DEADLINE_S - (cloud.clock.monotonic() - began), asking.endpoint.name
        if left <= 0:
            done = f"{self.calls} of {self.claim.predictions // CALL_ROWS} requests"
            message = f"{where} answered {done} in {DEADLINE_S:.0f} s: lower monitoring.attributions.requests."
            raise NotJudgedError("endpoint_failed", message)
        self.calls += 1
        try:
            answer = cloud.endpoints.predict_once(asking.endpoint, instances, left)
        except Exception as error:  # whatever it is of, the monitor's other signals do not wait for it
            LOGGER.exception("the endpoint gave no attributions")
            raise NotJudgedError("endpoint_failed", f"{where} gave no answer: {type(error).__name__}.") from error
        if isinstance(answer, Unanswered):
            raise NotJudgedError("endpoint_failed", f"{where} gave no answer: {answer.kind}.")
        if answer.deployed_model_id != asking.deployed_id:
            message = (
                f"{where} answers by {answer.deployed_model_id}, not by the champion: its traffic changed meanwhile."
            )
            raise NotJudgedError("not_asked", message)
        if len(answer.predictions) != len(instances):
            message = f"{where} gave {len(answer.predictions)} answers to {len(instances)} instances."
            raise NotJudgedError("endpoint_failed", message)
        return answer.predictions

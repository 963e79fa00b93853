"""Documents of what happened to the model after the verdict: its version, its place on the endpoint."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from retraining.core.documents.document import (
    Amount,
    Count,
    Document,
    ModelId,
    Number,
    Positive,
    RunKey,
    Share,
    Text,
    UtcTime,
    Value,
)
from retraining.core.documents.plan import Trigger
from retraining.core.spec.features import is_empty, is_none


class Registration(Document):
    """The version in the registry, and its aliases."""

    written_by: ClassVar[str] = "register"
    read_by: ClassVar[str] = "deploy, report"
    kind: Literal["registration"] = "registration"
    model: ModelId
    run_key: RunKey
    model_name: Text
    version_id: Text
    version_name: Text
    aliases: tuple[str, ...]


class SmokeTest(Value):
    """Golden requests sent to the endpoint, and the largest distance from the saved model's own answers.

    All `requests` are sent together, `asked` times, until the new version gave `answers` of the answers.
    """

    requests: Count
    max_abs_error: Number
    answers: Positive = 1
    asked: Positive = 1


class Served(Value):
    """What a deployed model answered in some minutes: requests, errors among them, latency at the 95th percentile."""

    requests: Count
    errors: Count
    latency_ms: Amount | None


class RampGate(Value):
    """What must hold at a step of the ramp; `passed` is null where there was too little to judge."""

    name: Literal["requests", "errors", "latency", "answers"]
    passed: bool | None
    message: Text


class LookCounts(Value):
    """What a deployed model answered in the minutes of a look: requests, errors among them, and slow ones of the timed.

    Of the version before the slow ones are estimated between two bounds of the service's counts, so parts occur.
    """

    requests: Count
    errors: Count
    timed: Count = 0
    """Answers whose time is known: of another metric than the requests, so that it may be another number."""
    slow: Amount = 0.0

    @model_validator(mode="after")
    def _are_parts(self) -> Self:
        if self.errors > self.requests or self.slow > self.timed:
            raise ValueError(f"{self.errors} errors of {self.requests} requests, {self.slow} slow of {self.timed}")
        return self


class RampLook(Value):
    """Both versions in the same minutes, from `start` (exclusive) to `end`: what a step is judged by."""

    start: UtcTime
    end: UtcTime
    new: LookCounts
    old: LookCounts
    slow_ms: Amount | None = None
    """From which time on an answer of the new version is slow; of the old one it is that by `max_latency_ratio`.

    null: nobody knew yet how long the old one takes.
    """

    @model_validator(mode="after")
    def _goes_on(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"end {self.end} is not after start {self.start}")
        return self


class AnswerShift(Value):
    """How far the logged answers are from others: divergence, and the low end of its 95 % interval.

    `promised` are the new version's from what it answered to its test split, `before` both versions' from each other;
    null: one of both has too few.
    """

    new: Count
    """Logged answers that were looked at."""
    old: Count
    promised: Share | None = None
    promised_low: Share | None = None
    before: Share | None = None
    before_low: Share | None = None


class RampStep(Value):
    """A share of the traffic from `start` on, and what was seen in whole minutes of it: of the new version and the old.

    `end` is null while it is being looked at. Its gates follow from what stands here and in the steps before it.
    """

    percent: Annotated[int, Field(ge=1, le=100)]
    start: UtcTime
    end: UtcTime | None = None
    new: Served | None = None
    old: Served | None = None
    gates: tuple[RampGate, ...] = ()
    looks: Annotated[tuple[RampLook, ...], Field(max_length=240, exclude_if=is_empty)] = ()
    """Empty: of an earlier release, which held the sums against limits."""
    hour_before: Annotated[LookCounts | None, Field(exclude_if=is_none)] = None
    """Of the version before, in the hour before the first step; null: of a later step, or nobody asked it."""
    answers: Annotated[AnswerShift | None, Field(exclude_if=is_none)] = None
    """null: not looked at."""
    unmeasured: Annotated[str, Field(exclude_if=is_empty)] = ""
    """What shows that the new version answered where Cloud Monitoring has no request of it; empty: nothing does."""


class ShadowTraffic(Value):
    """Logged requests that were sent once more, to a version on the endpoint for tries; their answers met no user.

    `gates` are empty while it goes on. They follow from what else stands here.
    """

    until: UtcTime
    """When it began: the log is taken up to here."""
    requests: Count | None = None
    """Of the log, that are sent; null: it was not read yet."""
    values: Count = 0
    """How many of them differ; below 2 nothing is sent, and nothing judged."""
    unread: Count = 0
    """Logged requests that are not sent, for the version takes other inputs: a person accepted that."""
    inputs: Annotated[tuple[Text, ...], Field(max_length=2000)] = ()
    """Of the version, that such requests lack, or have as another type."""
    missing: str = ""
    """Why there is no request log; empty: there is one."""
    pace: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    """How many times as quick as they came."""
    sent: Count = 0
    """Written down before they are sent, so that none is sent twice."""
    last_sent: UtcTime
    answered: Count = 0
    errors: Count = 0
    answers: Annotated[tuple[Number, ...], Field(max_length=50_000)] = ()
    """Numbers, or the likeliest classes; of the first ones, and none once it is judged."""
    not_finite: Count = 0
    look: RampLook | None = None
    """Errors and times beside those that the version before had in the logged time."""
    answers_shift: AnswerShift | None = None
    gates: tuple[RampGate, ...] = ()

    @model_validator(mode="after")
    def _are_parts(self) -> Self:
        if self.sent > (self.requests or 0) or self.answered + self.errors > self.sent:
            raise ValueError(f"{self.answered} answered and {self.errors} not of {self.sent} sent of {self.requests}")
        return self


class Staging(Value):
    """The try of a version on an endpoint of its own, which no customer asks, before the one that serves is touched.

    `passed` is null until it has been asked, `smoke_test` unless its answers were right; `words` say why they were not.
    """

    endpoint_name: Text
    passed: bool | None = None
    smoke_test: SmokeTest | None = None
    message: str = ""
    shadow: Annotated[ShadowTraffic | None, Field(exclude_if=is_none)] = None
    """null: not asked for, or not begun."""


class Approval(Value):
    """Whether a version may be deployed, as far as a person has a say, and what that rests on.

    `asked` is false where no person was wanted, or nothing could be deployed. `person` and `answered` are null then,
    and where nobody answered in time, which is a no.
    """

    approved: bool
    asked: bool = True
    person: str | None = None
    answered: UtcTime | None = None
    message: Text


class ApprovalAnswer(Document):
    """[Whether a person approved](deployment.md#asking-a-person), who and when, or that nobody was asked.

    It counts for the DAG's run that asked, and for the task's try. `approval` is null while a person is asked.
    """

    written_by: ClassVar[str] = "approve, again when it asks again"
    read_by: ClassVar[str] = "deploy"
    kind: Literal["approval"] = "approval"
    model: ModelId
    run_key: RunKey
    dag_id: Text
    dag_run_id: Text
    task_try: Text
    """Airflow's id of the try that asks; no earlier one may answer."""
    approval: Approval | None
    generation: Count | None = None
    """Grows when the task is cleared; null: of an earlier release."""
    question: Text | None = None
    """SHA-256 of what the person decides on; null: Airflow does not hold the question yet.

    Once it does, another try of the same generation does not ask again.
    """


class Deployment(Document):
    """What the endpoint serves after this run, or one sentence why nothing changed; the smoke test; who approved."""

    written_by: ClassVar[str] = "deploy"
    read_by: ClassVar[str] = "people, report"
    kind: Literal["deployment"] = "deployment"
    model: ModelId
    run_key: RunKey
    deployed: bool
    """Whether anything was changed. It was not where a gate of the ramp failed, or the version in its staging."""
    message: Text
    """Where nothing was changed, why."""
    endpoint_name: str | None
    deployed_model_id: str | None
    traffic: dict[str, Annotated[int, Field(ge=0, le=100)]]
    version_name: str | None
    previous_version_name: str | None
    smoke_test: SmokeTest | None
    log_table: str | None
    steps: tuple[RampStep, ...] = ()
    """Of the ramp, with the numbers of its gates."""
    approval: Approval | None = None
    """null: the spec asks nobody."""
    staging: Staging | None = None
    """null: the spec wants none."""


RolloutState = Literal["staging", "going", "ramping", "proven", "done", "returning", "ended"]
"""How far a change of the champion has come.

`staging`: the version is tried on an endpoint of its own, and taken off it again. `going`: it is deployed where it
shall serve, and tested with a small share of the traffic. `ramping`: it passed, and its share grows. `proven`: it has
all traffic, the aliases are being moved. `done`: it is champion, the others leave, but for the one that is kept.
`returning`: all is brought back to what was before. `ended`: nothing is open.
"""


class SmokeRequest(Value):
    """A smoke test in the endpoint's request log: who answered, how many instances, from when until when."""

    deployed_model_id: Text
    instances: Annotated[int, Field(ge=1)]
    start: UtcTime
    end: UtcTime


class Before(Value):
    """What was so before the endpoint was touched; what cannot be completed is brought back to this.

    Version ids by alias (null: no version had it), name of the champion's version, and traffic by deployed model.
    `others` are those of them that no run made and that keep their share.
    """

    champion_id: str | None
    champion_name: str | None
    previous_id: str | None
    default_id: str | None
    traffic: dict[str, Annotated[int, Field(ge=0, le=100)]]
    others: tuple[str, ...] = ()


class Kept(Value):
    """The version that served before: it stays on the endpoint without traffic until then, for a quick way back."""

    version_name: Text
    until: UtcTime


class Rollout(Document):
    """How far the change of the champion has come, what was before it, when smoke tests asked the endpoint.

    It is the change that is under way, or the last one.
    """

    written_by: ClassVar[str] = "deploy, cancel_jobs, roll_back, end"
    read_by: ClassVar[str] = "deploy, cancel_jobs, roll_back, end, `monitor__<model>`"
    kind: Literal["rollout"] = "rollout"
    model: ModelId
    run_key: RunKey
    dag_run: Text
    version_id: Text
    version_name: Text
    deployed_model_id: Text
    state: RolloutState
    reason: str
    """Why all is brought back to `before`."""
    before: Before
    writer: str
    """Who wrote this."""
    changed: UtcTime
    asked: UtcTime
    """When the deployment was last asked for."""
    starts: Count
    """How often the deployment was asked for."""
    operation: str | None
    smoke_test: SmokeTest | None
    smoke_requests: tuple[SmokeRequest, ...]
    """Of this and of earlier rollouts: the monitor leaves them out."""
    steps: tuple[RampStep, ...] = ()
    keep_previous_hours: Count = 0
    """As the run's spec says."""
    kept: Kept | None = None
    """An earlier rollout's, until this one is done."""
    rollback: str | None = None
    """Name of the rollback that this change is; null: it is a run's."""
    stopped_by: str | None = None
    """Name of the rollback that ended it: then its run deploys nothing any more."""
    staging: Staging | None = None
    endpoint: Annotated[bool, Field(exclude_if=lambda value: value)] = True
    """Whether it is about traffic, too; false: of a model without an endpoint, whose aliases alone move."""
    outage: UtcTime | None = None
    """Since when a service does not answer that is needed to go on."""


class Rollback(Document):
    """Who went back, why, from which version to which."""

    written_by: ClassVar[str] = "roll_back"
    read_by: ClassVar[str] = "people"
    kind: Literal["rollback"] = "rollback"
    model: ModelId
    name: Text
    """Of its folder."""
    dag_run_id: Text
    trigger: Trigger
    to: Text
    reason: str = Field(alias="reason")
    stopped: bool
    """Whether a deployment was under way, and was brought back to what was before it."""
    version_name: str | None
    """null: none, as a first version was stopped."""
    from_version_name: str | None
    """It lost the traffic, all or what it had of it."""
    smoke_test: SmokeTest | None
    """null: the version's run left no smoke requests, or nothing was asked."""
    endpoint: Annotated[bool, Field(exclude_if=lambda value: value)] = True
    """Whether traffic moved, too; false: the model has no endpoint."""
    endpoint_name: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """Whose traffic moved; null: none moved, or the document is an earlier release's."""
    message: Text

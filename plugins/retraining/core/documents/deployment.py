"""Documents of what happened to the model after the verdict: its version, its place on the endpoint."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import (
    Amount,
    Count,
    Document,
    ModelId,
    Number,
    Positive,
    RunKey,
    Text,
    UtcTime,
    Value,
)
from retraining.core.documents.plan import Trigger


class Registration(Document):
    """The version in the registry."""

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


class RampStep(Value):
    """A share of the traffic from `start` on, and what was seen in whole minutes of it: of the new version and the old.

    `end` is null while it is being looked at.
    """

    percent: Annotated[int, Field(ge=1, le=100)]
    start: UtcTime
    end: UtcTime | None = None
    new: Served | None = None
    old: Served | None = None
    gates: tuple[RampGate, ...] = ()


class Staging(Value):
    """The try of a version on an endpoint of its own, which no customer asks, before the one that serves is touched.

    `passed` is null until it has been asked, `smoke_test` unless its answers were right; `words` say why they were not.
    """

    endpoint_name: Text
    passed: bool | None = None
    smoke_test: SmokeTest | None = None
    message: str = ""


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
    """What Airflow's question to a person came to, or that nobody was wanted; `approval` is null while one is asked.

    It counts for the run of the DAG that asked; `task_try` is Airflow's id of the try that asks, and no earlier one may
    answer. `question` is the SHA-256 of what the person decides on, null until Airflow holds the question: from then on
    another try of the same `generation` (grows when the task is cleared; null in earlier releases) does not ask again.
    """

    kind: Literal["approval"] = "approval"
    model: ModelId
    run_key: RunKey
    dag_id: Text
    dag_run_id: Text
    task_try: Text
    approval: Approval | None
    generation: Count | None = None
    question: Text | None = None


class Deployment(Document):
    """What the endpoint serves after this run; `deployed` is false when nothing was changed, and `words` says why.

    So it is when a gate of the ramp failed: `steps` has its numbers; and when the version was wrong in its `staging`.
    `approval` is null where the spec asks nobody, `staging` where it is not wanted.
    """

    kind: Literal["deployment"] = "deployment"
    model: ModelId
    run_key: RunKey
    deployed: bool
    message: Text
    endpoint_name: str | None
    deployed_model_id: str | None
    traffic: dict[str, Annotated[int, Field(ge=0, le=100)]]
    version_name: str | None
    previous_version_name: str | None
    smoke_test: SmokeTest | None
    log_table: str | None
    steps: tuple[RampStep, ...] = ()
    approval: Approval | None = None
    staging: Staging | None = None


RolloutState = Literal["staging", "going", "ramping", "proven", "done", "returning", "ended"]


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
    """The change of a model's champion that is under way, or the last one: one object per model, changed by generation.

    `staging`: the version is tried on an endpoint of its own (`staging`), and taken off it again. `going`: it is
    deployed where it shall serve, and tested with a small share of the traffic. `ramping`: it passed, and its share
    grows. `proven`: it has all traffic, the aliases are being moved. `done`: it is champion, the others leave, but for
    the one that is `kept`. `returning`: all is brought back to `before`, for the reason `because`. `ended`: nothing is
    open. `writer` is who wrote this; `asked` is when the deployment was last asked for, `starts` times so far.
    `smoke_requests` are of this and of earlier rollouts: the monitor leaves them out. `kept` is an earlier rollout's
    until this one is done; `keep_previous_hours` is what the run's spec says. `rollback` names the rollback that this
    change is, `stopped_by` the one that ended it: then its run deploys nothing any more. `outage` is since when a
    service does not answer that is needed to go on.
    """

    kind: Literal["rollout"] = "rollout"
    model: ModelId
    run_key: RunKey
    dag_run: Text
    version_id: Text
    version_name: Text
    deployed_model_id: Text
    state: RolloutState
    reason: str
    before: Before
    writer: str
    changed: UtcTime
    asked: UtcTime
    starts: Count
    operation: str | None
    smoke_test: SmokeTest | None
    smoke_requests: tuple[SmokeRequest, ...]
    steps: tuple[RampStep, ...] = ()
    keep_previous_hours: Count = 0
    kept: Kept | None = None
    rollback: str | None = None
    stopped_by: str | None = None
    staging: Staging | None = None
    outage: UtcTime | None = None


class Rollback(Document):
    """What a rollback did; `name` is its folder's. Versions are null where none is: a first version was stopped.

    `from_version_name` lost the traffic, all or what it had of it; `stopped` when its deployment was still under way,
    and was brought back to what was before it. `smoke_test` is null where the version's run left no smoke requests, or
    nothing was asked.
    """

    kind: Literal["rollback"] = "rollback"
    model: ModelId
    name: Text
    dag_run_id: Text
    trigger: Trigger
    to: Text
    reason: str = Field(alias="reason")
    stopped: bool
    version_name: str | None
    from_version_name: str | None
    smoke_test: SmokeTest | None
    message: Text

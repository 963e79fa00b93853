"""Documents of the Models page: all models in one object, and one object per model with its history.

They are derived: a task makes them again from the runs' and the monitor's documents. Nothing decides by them.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

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
    Uri,
    UtcTime,
    Value,
)
from retraining.core.documents.ending import Failure
from retraining.core.documents.evaluation import Difference
from retraining.core.documents.readiness import Readiness, RunFacts
from retraining.core.documents.spending import Month
from retraining.core.metrics import Metric

Role = Literal["champion", "challenger", "previous", "other"]
"""Of a version on the endpoint: whose the traffic is, whose share grows, what served before, and what nobody named."""
RunOutcome = Literal["promote", "reject", "record", "repeated", "stopped", "running"]
WatchOutcome = Literal["none", "warn", "retrain", "tune", "rollback"]
Percent = Annotated[int, Field(ge=0, le=100)]

Label = Annotated[str, Field(max_length=2000)]
"""Text of people or of services, as long as a page has room for."""


class TrafficShare(Value):
    """What a version on the endpoint gets of the requests."""

    version_id: Text
    role: Role
    percent: Percent


class ShownChampion(Value):
    """The version that serves; what no run of ours made has no key, no time and no score."""

    version_id: Text
    version_name: Text
    run_key: RunKey | None
    as_of: UtcTime | None
    score: Number | None


class ShownDecision(Value):
    """How the newest run ended that came to an end."""

    run_key: RunKey
    as_of: UtcTime
    outcome: RunOutcome
    deployed: bool
    message: Label


class ShownWatch(Value):
    """What the monitor came to last. `exceeded` names signals as `kind:subject`; `unjudged` counts the others."""

    as_of: UtcTime
    outcome: WatchOutcome
    severity: Literal["info", "warning", "critical"]
    message: Label
    requests: Count | None
    exceeded: tuple[Label, ...]
    named: tuple[Label, ...] = ()
    """Named states of the monitor's input, such as no_traffic."""
    unjudged: Count = 0


class MonthCost(Value):
    """List price of the runs whose time is in a month; `unpriced` of them have a part without a price."""

    month: Month
    usd: Amount
    runs: Count
    unpriced: Count


class MonthBudget(Value):
    """The model's own budget of a month, and what its runs and scorings of that month cost and may still cost."""

    month: Month
    usd: Amount
    spent: Amount
    reserved: Amount
    """Expected of what is under way."""
    unknown: Count
    """Runs of which a part has no list price."""
    warned: bool
    """Whether so much of it is gone that runs warn."""


class ModelSummary(Value):
    """One model's row.

    `refreshed` is when its documents were read, `moment` the time that ages are counted from: the same, or where data
    ended the newest time of its documents. `schedule` is null where no clock starts its runs, `endpoint_name` where it
    has no endpoint. `scores` are those of its newest live runs in `metric`, oldest first. `problem` says what of it
    could not be read.
    """

    model: ModelId
    description: Label
    owner: Label
    refreshed: UtcTime
    moment: UtcTime
    schedule: str | None
    metric: Metric
    champion: ShownChampion | None
    scores: tuple[Number, ...]
    endpoint_name: Text | None
    traffic: tuple[TrafficShare, ...]
    decision: ShownDecision | None
    watch: ShownWatch | None
    cost: MonthCost | None
    paused_until: UtcTime | None
    endpoint: Annotated[bool, Field(exclude_if=lambda value: value)] = True
    """Whether its file wants one."""
    budget: Annotated[MonthBudget | None, Field(exclude_if=lambda value: value is None)] = None
    """null: it has none of its own."""
    problem: Label | None = None
    failure: Failure | None = None
    """Why the newest run failed; null: it did not, or an earlier release wrote the row."""


class Overview(Document):
    """A row per model, by name; each task replaces its model's row."""

    written_by: ClassVar[str] = "report, show"
    read_by: ClassVar[str] = "the Models page"
    kind: Literal["overview"] = "overview"
    models: tuple[ModelSummary, ...]


class ShownVersion(Value):
    """A version of the registry."""

    version_id: Text
    version_name: Text
    run_key: RunKey | None
    as_of: UtcTime | None
    aliases: tuple[Label, ...]
    percent: Percent | None
    """Of the requests; null: it is not on the endpoint."""


class ShownRollback(Value):
    """A way back: who went it, when and why, from which version to which.

    `stopped`: a deployment under way was ended, and `from_version_id` never had all requests. `name` is its folder's.
    """

    name: Text
    at: UtcTime
    version_id: Text | None
    from_version_id: Text | None
    stopped: bool
    who: Label
    reason: Label = Field(alias="reason")


class ShownRun(Value):
    """A run, as far as it came. `ended` says that its documents are all there, so that they are not read again."""

    run_key: RunKey
    as_of: UtcTime
    run_uri: Uri
    dag_id: Label
    dag_run_id: Label
    trigger: Literal["manual", "scheduled", "backfill", "asset"]
    cause: Label | None
    reason: Label = Field(alias="reason")
    mode: Literal["live", "backfill"]
    ended: bool
    outcome: RunOutcome
    message: Label
    deployed: bool
    version_id: Text | None
    version_name: Text | None
    rows: Positive | None
    """Test examples."""
    score: Number | None
    champion_id: Text | None
    champion_score: Number | None
    difference: Difference | None
    usd: Amount | None
    unpriced: bool
    seconds: Amount | None
    failure: Failure | None = None
    """Why it failed; null: it did not, or an earlier release wrote this."""


class ShownSignal(Value):
    """One thing that was watched, as in the document `signals`, without its sentence."""

    kind: Label
    subject: Label
    state: Literal["ok", "exceeded", "not_judged"]
    reason: Label | None
    measure: Label
    value: Number | None
    low: Number | None = None
    high: Number | None = None
    threshold: Number | None
    examples: Count


class WatchRow(Value):
    """One row of the ledger, with what it was decided by.

    `key` is the name of its folder, by which later rows call it. `results` says in words what had come of what earlier
    rows ordered, by their key; the newest row has all of them.
    """

    key: Text
    results: dict[str, Label] = Field(default_factory=dict)
    as_of: UtcTime
    outcome: WatchOutcome
    severity: Literal["info", "warning", "critical"]
    reason: Label
    cause: Label | None
    message: Label
    requests: Count | None
    signals: tuple[ShownSignal, ...]
    left_out: Count = 0
    """Further signals, farther from their limit than these."""
    version_id: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """Of the champion that was looked at; null: there was none, or of an earlier release."""


class ModelOverview(Document):
    """A model's row, and its newest versions, rollbacks, runs and ledger rows, each newest first."""

    written_by: ClassVar[str] = "report, show"
    read_by: ClassVar[str] = "the Models page"
    kind: Literal["model_overview"] = "model_overview"
    project: Text
    bucket: Text
    summary: ModelSummary
    versions: tuple[ShownVersion, ...]
    rollbacks: tuple[ShownRollback, ...] = ()
    runs: tuple[ShownRun, ...]
    watches: tuple[WatchRow, ...]
    unreadable: dict[str, Label]
    """By folder, what could not be read."""
    readiness: Annotated[Readiness | None, Field(exclude_if=lambda value: value is None)] = None
    """Its [ML Test Score](ml-test-score.md); null: its file cannot be read, or of an earlier release."""
    tested: Annotated[RunFacts | None, Field(exclude_if=lambda value: value is None)] = None
    """What that score asks of the newest live run with an evaluation; null: there is none, or of an earlier release."""

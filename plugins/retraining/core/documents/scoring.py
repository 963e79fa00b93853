"""Documents of a scoring in bulk: what it will do, the instances, what the job left, and what came of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.document import (
    Amount,
    Count,
    Day,
    Document,
    ModelId,
    Positive,
    RunKey,
    TableName,
    Text,
    Uri,
    UtcTime,
    Value,
)
from retraining.core.documents.plan import Estimate, Query, Trigger
from retraining.core.spec.features import Feature


class ScoringSource(Value):
    """What is scored: a table, the rows of a query, or files of JSON lines."""

    table: TableName | None = None
    query: Query | None = None
    files: Uri | None = None


class ScoringVersion(Value):
    """Who scores; `asked` is the alias or id that was asked for."""

    asked: Text
    version_id: Text
    version_name: Text
    run_key: RunKey


class Destination(Value):
    """The table that is replaced; of a partitioned one the day. Or the folder that answers for files go into."""

    table: TableName | Uri
    day: Day | None = None


class ScoringLog(Value):
    """Where some rows and their answers are kept for the monitor, in the form of an endpoint's request log."""

    table: TableName
    share: Annotated[float, Field(gt=0, le=1)]
    """Of the rows, at most; fewer where that were more than 100,000."""


class ScoringPlan(Document):
    """What a scoring will do: source, version, destination, machines, cost estimate."""

    written_by: ClassVar[str] = "plan"
    read_by: ClassVar[str] = "every later task"
    kind: Literal["scoring_plan"] = "scoring_plan"
    model: ModelId
    run_key: RunKey
    """Of this scoring: its time, and a hash of what decides its result."""
    as_of: UtcTime
    as_of_source: Literal["param", "asset", "logical_date", "run_after"]
    trigger: Trigger
    dag_id: Text
    dag_run_id: Text
    attempt: Text | None = None
    project: Text
    region: Text
    bucket: Text
    dataset: Text
    environment: Text
    run_uri: Uri
    """Its folder."""
    source: ScoringSource
    version: ScoringVersion
    key: Text
    key_input: Annotated[Literal["INTEGER", "STRING"] | None, Field(exclude_if=lambda value: value is None)] = None
    """Type of the key that the version takes with each row; null: it takes none."""
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    """The version's own inputs, as it was trained with them."""
    output: Text
    """The version's output by name."""
    answer_size: Positive | None = None
    """How many numbers an answer has; null: one."""
    input_table: TableName
    destination: Destination
    machine: Text
    replicas: Positive
    batch_size: Positive
    timeout_s: Positive
    estimate_usd: Estimate | None = None
    service_account: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """The model's own, whom the job runs as; null: it has none."""
    log: Annotated[ScoringLog | None, Field(exclude_if=lambda value: value is None)] = None
    """null: the model has an endpoint, whose requests are watched; or files are scored."""


class ScoringInput(Document):
    """The instances, their number and fingerprint: a table of keys and what the model reads, or the source's files."""

    written_by: ClassVar[str] = "snapshot"
    read_by: ClassVar[str] = "predict, write"
    kind: Literal["scoring_input"] = "scoring_input"
    model: ModelId
    run_key: RunKey
    table: TableName | Uri
    key_type: Literal["INTEGER", "STRING"] | None
    """Of files it is not known."""
    rows: Positive
    fingerprint: Text
    """XOR over the rows' fingerprints; of files a digest of their names and generations."""
    keys: Text | None = None
    """Of files: tells the keys of their lines from any others. Null: of a table, or nobody looked."""
    bytes_processed: Count


class Predictions(Document):
    """The batch prediction's job, and what it left: tables of predictions and of errors, or a folder of files."""

    written_by: ClassVar[str] = "predict"
    read_by: ClassVar[str] = "write, clean_up"
    kind: Literal["predictions"] = "predictions"
    model: ModelId
    run_key: RunKey
    job: Text
    table: TableName | Uri
    errors_table: TableName | Uri
    """Is there only when rows have no answer."""
    seconds: Amount | None = None


class ScoringResult(Document):
    """What came of a scoring, whose destination holds an answer for each row: rows, version, seconds, price."""

    written_by: ClassVar[str] = "write"
    read_by: ClassVar[str] = "people"
    kind: Literal["scoring"] = "scoring"
    model: ModelId
    run_key: RunKey
    as_of: UtcTime
    version: ScoringVersion
    destination: Destination
    rows: Positive
    job: Text
    seconds: Amount | None = None
    cost_usd: Amount | None = None
    """Of the machines at list prices, while the job worked."""
    message: Text

"""What a run's tasks took: time, machines, and money at list prices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import Day, Document, ModelId, Number, RunKey, Text, Value


class TaskTiming(Value):
    """One task. `reused`: its result was there already. Money is null where no price is known, as for Airflow itself.

    `seconds` is what was paid for where the task ran a job, else its own duration; null when it is not known.
    """

    task: Text
    seconds: Annotated[Number, Field(ge=0)] | None
    reused: bool
    machine: str | None
    estimated_usd: Annotated[Number, Field(ge=0)] | None


class Timings(Document):
    """All tasks in the order in which they ran. `prices_date` is the price list's; null when there was none.

    `elapsed_seconds` is from the run's start until its tasks' times were noted, with all waiting; null: not known, as
    in documents of earlier releases.
    """

    kind: Literal["timings"] = "timings"
    model: ModelId
    run_key: RunKey
    prices_date: Day | None
    tasks: tuple[TaskTiming, ...]
    elapsed_seconds: Annotated[Number, Field(ge=0)] | None = None

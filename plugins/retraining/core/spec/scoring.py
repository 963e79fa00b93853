"""The section `scoring` of a model's YAML: what a version scores in bulk, and where its answers go."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.spec.cluster import MachineType
from retraining.core.spec.cron import Cron
from retraining.core.spec.section import Section

TABLE_PATTERN = r"^([a-z][a-z0-9.:-]{4,100}\.)?[A-Za-z0-9_]{1,1024}\.[A-Za-z0-9_-]{1,1024}$"
VERSION_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,126}[a-z0-9])?$"
SQL_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,190}\.sql$"
MAX_REPLICAS = 1000

Table = Annotated[str, StringConstraints(pattern=TABLE_PATTERN)]
"""`dataset.table`, or `project.dataset.table`."""


class Scoring(Section):
    """What `score__<model>` scores, by which version, and the table that its answers go to."""

    schedule: Cron | None = None
    query: Annotated[str, StringConstraints(pattern=SQL_PATTERN)] | None = None
    table: Table | None = None
    destination: Table
    partition: bool = True
    version: Annotated[str, StringConstraints(pattern=VERSION_PATTERN)] = "champion"
    machine: MachineType = "n1-standard-4"
    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 1
    batch_size: Annotated[int, Field(ge=1, le=10_000)] = 64
    timeout_hours: Annotated[float, Field(ge=0.1, le=168)] = 6

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.query is None) == (self.table is None):
            raise ValueError("expected query or table, and not both: what is scored")
        if self.table is not None and self.table.lower() == self.destination.lower():
            raise ValueError(f"destination is {self.destination}, which is the source: name another table")
        return self

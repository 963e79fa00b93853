"""The section `scoring` of a model's YAML: what a version scores in bulk, and where its answers go."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.spec.cluster import MachineType
from retraining.core.spec.section import Cron, Section

TABLE_PATTERN = r"^([a-z][a-z0-9.:-]{4,100}\.)?[A-Za-z0-9_]{1,1024}\.[A-Za-z0-9_-]{1,1024}$"
VERSION_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,126}[a-z0-9])?$"
SQL_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,190}\.sql$"
MAX_REPLICAS = 1000

_BUCKET = r"^gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]/"
_NAMED = r"[^*\x00-\x1f\x7f]"
"""A character of an address: none that ends a line, here or in a log."""
FILES_PATTERN = rf"{_BUCKET}{_NAMED}*\*?{_NAMED}*$"
FOLDER_PATTERN = rf"{_BUCKET}{_NAMED}*[^*/\x00-\x1f\x7f]$"
DESTINATION_PATTERN = f"{TABLE_PATTERN}|{FOLDER_PATTERN}"
PLACE_PATTERN = rf"{_BUCKET}({_NAMED}*/)?$|^([a-z][a-z0-9.:-]{{4,100}}\.)?[A-Za-z0-9_]{{1,1024}}$"

Table = Annotated[str, StringConstraints(pattern=TABLE_PATTERN)]
"""`dataset.table`, or `project.dataset.table`."""

Place = Annotated[str, StringConstraints(max_length=1024, pattern=PLACE_PATTERN)]
"""A folder `gs://bucket/folder/`, or a dataset `dataset` or `project.dataset`."""


class Scoring(Section):
    """What `score__<model>` scores in bulk, by which version, and where its answers go."""

    schedule: Cron | None = None
    """Of `score__<model>`, UTC; `null`: only by hand."""
    query: Annotated[str, StringConstraints(pattern=SQL_PATTERN)] | None = None
    """Path below `include/sql`: one SELECT with the key and the features of each row; it may use `@as_of`."""
    table: Table | None = None
    """Instead of a query."""
    files: Annotated[str, StringConstraints(max_length=1024, pattern=FILES_PATTERN)] | None = None
    """Instead of query or table: [JSON lines](deployment.md#lines-of-files) as plain text, `gs://` with one `*` at
    most."""
    destination: Annotated[str, StringConstraints(max_length=1024, pattern=DESTINATION_PATTERN)]
    """Table of the answers; made where there is none, refused where it holds anything else. Of files a folder,
    `gs://bucket/folder`."""
    allow_sources: tuple[Place, ...] = ()
    """What else [a run's form may name](deployment.md#what-a-form-may-name) as `table` or `files`. Datasets (`dataset`,
    `project.dataset`) and folders (`gs://bucket/folder/`)."""
    allow_destinations: tuple[Place, ...] = ()
    """What else a run's form may name as `destination`."""
    partition: bool = True
    """Whether only the day of the run's `as_of` is replaced; `false`: the whole table."""
    version: Annotated[str, StringConstraints(pattern=VERSION_PATTERN)] = "champion"
    """Alias or id of the version that scores."""
    machine: MachineType = "n1-standard-4"
    """Of the job: a type that endpoints take."""
    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 1
    """Machines of the job."""
    batch_size: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Rows that the model is sent at once."""
    timeout_hours: Annotated[float, Field(ge=0.1, le=168)] = 6
    """Hours after which the job is given up and cancelled."""

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if [self.query, self.table, self.files].count(None) != 2:
            raise ValueError("expected query, table or files, one of them: what is scored")
        into_folder = self.destination.startswith("gs://")
        if (self.files is not None) != into_folder:
            kinds = ("files", "a folder gs://bucket/folder") if self.files else ("a table or query", "a table")
            raise ValueError(f"destination is {self.destination}, and answers for {kinds[0]} go into {kinds[1]}")
        if self.table is not None and self.table.lower() == self.destination.lower():
            raise ValueError(f"destination is {self.destination}, which is the source: name another table")
        if self.files is not None and self.files.endswith(".gz"):
            raise ValueError(f"files is {self.files}: unpack them, a batch prediction reads JSON lines as plain text")
        if self.files is not None and self._meet(self.files.partition("*")[0]):
            raise ValueError(f"destination is {self.destination}, where files {self.files} lie: name another folder")
        return self

    def _meet(self, read: str) -> bool:
        written = f"{self.destination}/"
        return read.startswith(written) or ("*" in str(self.files) and written.startswith(read))

"""Everything the local Vertex AI remembers, in one SQLite file that outlives the server.

Resources are kept as the bytes of their protobuf beside the few columns they are found by. One connection, one lock:
this is a server for one machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from google.cloud.aiplatform_v1 import types
from google.longrunning import operations_pb2

from localcloud.statements import statement
from localcloud.vertex.wire.errors import AlreadyExists, NotFound
from localcloud.vertex.wire.methods import Message, message_bytes, raw

_SCHEMA = """
CREATE TABLE IF NOT EXISTS resources (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    parent TEXT NOT NULL,
    state TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS resources_by_parent ON resources (kind, parent, sequence);
CREATE INDEX IF NOT EXISTS resources_by_state ON resources (kind, state);
CREATE TABLE IF NOT EXISTS documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    shelf TEXT NOT NULL,  -- the collection, by its name in state directories that exist
    key TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS documents_by_shelf ON documents (shelf, key, id);
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A family of resources: the collection in its names, its message type, and what people call it."""

    collection: str
    type: Any
    noun: str

    def read_message(self, data: bytes) -> Message:
        """Return the message in its bytes."""
        return self.type.deserialize(data) if hasattr(self.type, "deserialize") else self.type.FromString(data)


CUSTOM_JOBS = Kind("customJobs", types.CustomJob, "CustomJob")
TUNING_JOBS = Kind("hyperparameterTuningJobs", types.HyperparameterTuningJob, "HyperparameterTuningJob")
BATCH_JOBS = Kind("batchPredictionJobs", types.BatchPredictionJob, "BatchPredictionJob")
TRAINING_PIPELINES = Kind("trainingPipelines", types.TrainingPipeline, "TrainingPipeline")
STUDIES = Kind("studies", types.Study, "Study")
TRIALS = Kind("trials", types.Trial, "Trial")
MODELS = Kind("models", types.Model, "Model")
MODEL_VERSIONS = Kind("modelVersions", types.Model, "Model version")
EVALUATIONS = Kind("evaluations", types.ModelEvaluation, "ModelEvaluation")
EVALUATION_SLICES = Kind("slices", types.ModelEvaluationSlice, "ModelEvaluationSlice")
PERSISTENT_RESOURCES = Kind("persistentResources", types.PersistentResource, "PersistentResource")
METADATA_STORES = Kind("metadataStores", types.MetadataStore, "MetadataStore")
CONTEXTS = Kind("contexts", types.Context, "Context")
ARTIFACTS = Kind("artifacts", types.Artifact, "Artifact")
TENSORBOARDS = Kind("tensorboards", types.Tensorboard, "Tensorboard")
TENSORBOARD_EXPERIMENTS = Kind("tensorboardExperiments", types.TensorboardExperiment, "TensorboardExperiment")
TENSORBOARD_RUNS = Kind("tensorboardRuns", types.TensorboardRun, "TensorboardRun")
TENSORBOARD_SERIES = Kind("tensorboardTimeSeries", types.TensorboardTimeSeries, "TensorboardTimeSeries")
SERIES_POINTS = Kind("timeSeriesData", types.TimeSeriesData, "TimeSeriesData")
DEPLOYMENT_RESOURCE_POOLS = Kind("deploymentResourcePools", types.DeploymentResourcePool, "DeploymentResourcePool")
ENDPOINTS = Kind("endpoints", types.Endpoint, "Endpoint")
OPERATIONS = Kind("operations", operations_pb2.Operation, "Operation")


def now() -> datetime.datetime:
    """Return the wall clock, UTC: what create, start, end and update times are taken from."""
    return datetime.datetime.now(datetime.UTC)


class Store:
    """The resources of the local Vertex AI.

    Args:
        path: SQLite file, made when missing.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._depth = 0
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Give the file back; nothing may be called afterwards."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Return all or nothing, and nobody else in between; may be nested."""
        with self._lock:
            self._depth += 1
            try:
                if self._depth == 1:
                    self._connection.execute("BEGIN IMMEDIATE")
                yield
                if self._depth == 1:
                    self._connection.execute("COMMIT")
            except BaseException:  # a transaction that did not reach its end is undone, whatever ended it
                if self._depth == 1:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def insert(self, kind: Kind, name: str, parent: str, message: Message) -> None:
        """Add a resource.

        Raises:
            AlreadyExists: The name is taken.
        """
        row = (name, kind.collection, parent, _state_of(message), message_bytes(message))
        with self.transaction():
            try:
                self._connection.execute(
                    "INSERT INTO resources (name, kind, parent, state, body) VALUES (?, ?, ?, ?, ?)", row
                )
            except sqlite3.IntegrityError:
                raise AlreadyExists(f"{kind.noun} {name} already exists.") from None

    def find_resource(self, kind: Kind, name: str) -> Message | None:
        """Return the resource, or None."""
        with self._lock:
            row = self._connection.execute(
                "SELECT body FROM resources WHERE name = ? AND kind = ?", (name, kind.collection)
            ).fetchone()
        return None if row is None else kind.read_message(row[0])

    def get(self, kind: Kind, name: str) -> Message:
        """Return the resource.

        Raises:
            NotFound: There is none of that name.
        """
        resource = self.find_resource(kind, name)
        if resource is None:
            raise NotFound(f"The {kind.noun} {name} does not exist.")
        return resource

    @contextlib.contextmanager
    def change(self, kind: Kind, name: str) -> Iterator[Message]:
        """Read, let the block change it, write it back; nothing is written when the block raises.

        Raises:
            NotFound: There is none of that name.
        """
        with self.transaction():
            message = self.get(kind, name)
            yield message
            self._connection.execute(
                "UPDATE resources SET state = ?, body = ? WHERE name = ?",
                (_state_of(message), message_bytes(message), name),
            )

    def delete(self, kind: Kind, name: str) -> None:
        """Remove a resource.

        Raises:
            NotFound: There is none of that name.
        """
        with self.transaction():
            done = self._connection.execute(
                "DELETE FROM resources WHERE name = ? AND kind = ?", (name, kind.collection)
            )
            if done.rowcount == 0:
                raise NotFound(f"The {kind.noun} {name} does not exist.")

    def list_under(self, kind: Kind, parent: str) -> list[Message]:
        """Return all resources under a parent, newest first."""
        return self._select(kind, "parent = ?", parent)

    def list_in_state(self, kind: Kind, *states: str) -> list[Message]:
        """Return all resources in one of these states (names of the state enum), newest first."""
        return self._select(kind, f"state IN ({', '.join('?' * len(states))})", *states)

    def list_all(self, kind: Kind) -> list[Message]:
        """Return all resources of a kind, newest first."""
        return self._select(kind, "TRUE")

    def _select(self, kind: Kind, condition: str, *values: str) -> list[Message]:
        query = statement(
            "SELECT body FROM resources WHERE kind = ? AND {condition} ORDER BY sequence DESC", condition=condition
        )
        with self._lock:
            rows = self._connection.execute(query, (kind.collection, *values)).fetchall()
        return [kind.read_message(row[0]) for row in rows]

    def put_document(self, collection: str, key: str, body: dict[str, Any]) -> int:
        """Keep a JSON document (a fault, a process, a row waiting for BigQuery); gives its number."""
        with self.transaction():
            done = self._connection.execute(
                "INSERT INTO documents (shelf, key, body) VALUES (?, ?, ?)", (collection, key, json.dumps(body))
            )
        return int(done.lastrowid or 0)

    def list_documents(
        self, collection: str, limit: int = -1, max_characters: int | None = None, but: Iterable[str] = ()
    ) -> list[tuple[int, str, dict[str, Any]]]:
        """Return (number, key, body) of a collection, oldest first; of long bodies fewer, but one at least.

        Args:
            collection: Which.
            limit: How many at most; -1: all.
            max_characters: Of all bodies together, from which on no further one comes; None: any number.
            but: Keys whose documents are left out.
        """
        first = (
            "SELECT id, key, body FROM documents WHERE shelf = ?"
            " AND key NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?"
        )
        values: tuple[str | int, ...] = (collection, json.dumps(sorted(but)), limit)
        if max_characters is not None:
            first = statement(
                "SELECT id, key, body FROM (SELECT *, SUM(LENGTH(body)) OVER (ORDER BY id) - LENGTH(body) AS before"
                " FROM ({documents})) WHERE before < ? ORDER BY id",
                documents=first,
            )
            values = (*values, max_characters)
        with self._lock:
            rows = self._connection.execute(first, values).fetchall()
        return [(row[0], row[1], json.loads(row[2])) for row in rows]

    def delete_documents(self, collection: str, *numbers: int) -> int:
        """Remove documents by number, or the whole collection when none is given; gives how many went."""
        with self.transaction():
            if not numbers:
                return self._connection.execute("DELETE FROM documents WHERE shelf = ?", (collection,)).rowcount
            done = self._connection.executemany(
                "DELETE FROM documents WHERE shelf = ? AND id = ?", [(collection, n) for n in numbers]
            )
            return done.rowcount


def _state_of(message: Message) -> str:
    inner = raw(message)
    if "done" in inner.DESCRIPTOR.fields_by_name:
        return "DONE" if inner.done else "RUNNING"
    field = inner.DESCRIPTOR.fields_by_name.get("state")
    return field.enum_type.values_by_number[inner.state].name if field is not None and field.enum_type else ""

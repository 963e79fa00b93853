"""Faults as a resource: what goes wrong on purpose, when, and how often, in every server of the local cloud.

A fault is a JSON document, made by `POST /faults` on Vertex AI's REST port, the one way in for all services:

    {"target": "storage.objects.insert gs://*/spans/*", "count": 3, "action": {"kind": "error", "code": "UNAVAILABLE"}}

`target` is a shell pattern over an event, alone or followed by a space and what it concerns:
  `<Service>.<Method>`            a call of Vertex AI (`JobService.*`)
  `<Service>.<Method>/operation`  the long-running work behind it (`EndpointService.DeployModel/operation`)
  `Job.Start`, `Replica.Run`      a custom job about to get its machines; a running replica of one
  `Job.StartOnPersistentResource`  a custom job that holds machines of a persistent resource, about to run on them
  `DeployedModel.Predict <endpoint>/<deployed model>`  a request to the serving process of a deployed model
  `PscAutomation.Connect <network>`   a private endpoint about to get an address in a network
  `storage.objects.insert gs://bucket/name`    a call of Cloud Storage, by the method's id in its discovery document
  `bigquery.tables.get project.dataset.table`  a call of BigQuery's REST API, likewise
  `Query.Run SELECT …`                         a query that was accepted and is about to run (its text on one line)
  `BigQueryRead.ReadRows project.dataset.table`   a call of the Storage Read API, also in its v1beta1 form
  `LoggingServiceV2.ListLogEntries projects/p`    a call of any other service, by its name in `service.json`
`filter` (optional) is a list filter over the job of `Job.Start` and `Replica.Run`: `display_name:"*__train__*"`.
`skip` events pass unharmed first; `count` are hit (default 1; 0: until it is deleted).
`action.kind`:
  `error`          answer `code` (default UNAVAILABLE) with `message`; a job, an operation and a query end with it
  `lost_response`  do the work, then answer `code`: the caller does not learn that it worked
  `delay`          wait `seconds` first
  `skew`           (DeployedModel.Predict) add `by` to each number of the answer
  `break`          (ReadRows) send `after` rows, then end the stream with `code`
  `split`          (CreateReadSession) cut the table into as many streams as the client asks for, however small it is;
                   into `streams` of them when that is not 0
  `preempt`        (Replica.Run) after `seconds`, SIGTERM to `replica` (default workerpool0-0), SIGKILL `grace_seconds`
                   later
`action.reason` is BigQuery's word for the error (`rateLimitExceeded`); by default it follows from the code.

Comes in: documents, and events of any server process. Goes out: the action of the first fault that an event meets. The
store is one SQLite file in the state directory, so that faults survive a restart and every process sees them at once.
"""

from __future__ import annotations

import asyncio
import fnmatch
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

from localcloud.calls import FILE_NAME, OK, CallCounts
from localcloud.codes import HTTP_STATUS
from localcloud.errors import CallError

ActionKind = Literal["error", "lost_response", "delay", "skew", "break", "split", "preempt"]
Fault = dict[str, Any]
"""A checked fault: target, filter, skip, count, action."""
Action = dict[str, Any]
"""What to do: kind, code, message, reason, seconds, by, after, streams, grace_seconds, replica."""

CODES = tuple(code for code in HTTP_STATUS if code != "OK")
_KEYS = {"target", "filter", "skip", "count", "action"}
ACTION_DEFAULTS: Action = {
    "code": "UNAVAILABLE",
    "message": "",
    "reason": "",
    "seconds": 0.0,
    "by": 0.0,
    "after": 0,
    "streams": 0,
    "grace_seconds": 0.0,
    "replica": "workerpool0-0",
}
_WAIT_FOR_OTHERS_S = 10.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS faults (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL)"


class FaultError(ValueError):
    """The document is not a fault; `field` is the key at fault, "" for the whole."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InjectedError(CallError):
    """A fault's answer to a call, for its server to put into the form of its service."""

    def __init__(self, action: Action) -> None:
        super().__init__(str(action["message"]), str(action["code"]))
        self.reason = str(action["reason"])


class Interception:
    """What a fault does to an event, as a context around the work that the event stands for; `async with` works too.

    It waits before the work (`delay`), or raises `InjectedError` before it (`error`) or after it (`lost_response`).

    Args:
        action: The fault's action; None when the event meets no fault.
        wait: Waits so many seconds, where the work is not asynchronous.
    """

    def __init__(self, action: Action | None, wait: Callable[[float], object] = time.sleep) -> None:
        self._action = action
        self._wait = wait

    @property
    def loses_response(self) -> bool:
        """Whether the work is done and nobody may hear of it."""
        return self._action is not None and self._action["kind"] == "lost_response"

    def __enter__(self) -> None:
        if self._action is not None and self._action["kind"] == "delay":
            self._wait(float(self._action["seconds"]))
        self._raise_for("error")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._raise_for("lost_response")

    async def __aenter__(self) -> None:
        if self._action is not None and self._action["kind"] == "delay":
            await asyncio.sleep(float(self._action["seconds"]))
        self._raise_for("error")

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._raise_for("lost_response")

    def _raise_for(self, kind: ActionKind) -> None:
        if self._action is not None and self._action["kind"] == kind:
            raise InjectedError(self._action)


class FaultStore:
    """The faults in force, for all threads of one process and all processes of a local cloud.

    Args:
        path: The SQLite file (`State.faults_path`).
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=_WAIT_FOR_OTHERS_S, check_same_thread=False)
        self._connection.isolation_level = None  # transactions are begun by hand: taking is read and write in one
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(_SCHEMA)
        self._seen_version = -1
        self._seen_any = False
        self._counts = CallCounts(path.with_name(FILE_NAME))

    def add(self, fault: Fault) -> int:
        """Put a checked fault in force; gives its number."""
        with self._change() as connection:
            return int(connection.execute("INSERT INTO faults (body) VALUES (?)", (json.dumps(fault),)).lastrowid or 0)

    def list_all(self) -> list[tuple[int, Fault]]:
        """Return the faults in force with their numbers, oldest first; used up ones are gone."""
        with self._lock:
            return self._read_faults()

    def delete(self, number: int | None = None) -> int:
        """Take one fault back, or all of them; gives how many went."""
        with self._change() as connection:
            if number is None:
                return connection.execute("DELETE FROM faults").rowcount
            return connection.execute("DELETE FROM faults WHERE id = ?", (number,)).rowcount

    def is_empty(self) -> bool:
        """Return whether nothing is in force: costs microseconds while no process changes anything."""
        with self._lock:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            if version != self._seen_version:
                self._seen_version = version
                self._seen_any = bool(self._connection.execute("SELECT 1 FROM faults LIMIT 1").fetchone())
            return not self._seen_any

    def take(
        self,
        event: str,
        about: str = "",
        *,
        kinds: tuple[str, ...] = ("error", "lost_response", "delay"),
        passes: Callable[[str], bool] = lambda expression: not expression,
    ) -> Action | None:
        """Return the action of the first fault that hits this event, or None; counts it.

        Args:
            event: What is about to happen, for example `storage.objects.insert`.
            about: What it concerns, for example `gs://bucket/name`.
            kinds: Action kinds that the caller can carry out.
            passes: Whether the event is within a fault's filter; by default filters are for jobs only.
        """
        if self.is_empty():
            return None
        with self._change() as connection:
            for number, fault in self._read_faults():
                if fault["action"]["kind"] in kinds and _matches(fault, event, about) and passes(fault["filter"]):
                    if fault["skip"] > 0:
                        _write(connection, number, {**fault, "skip": fault["skip"] - 1})
                        continue
                    _use_up(connection, number, fault)
                    action: Action = fault["action"]
                    return action
        return None

    def intercept(
        self, event: str, about: str = "", *, kinds: tuple[str, ...] = ("error", "lost_response", "delay")
    ) -> Interception:
        """Return what the first fault that hits this event does to it; counts it."""
        return Interception(self.take(event, about, kinds=kinds))

    def count(self, event: str, status: str = OK) -> None:
        """Count a call that was answered, whether a fault met it or not; `localcloud calls` prints the counts.

        Args:
            event: The call's method, as faults name it.
            status: A name of google.rpc.Code.
        """
        self._counts.count(event, status)

    def close(self) -> None:
        """Close the files."""
        self._connection.close()
        self._counts.close()

    def _read_faults(self) -> list[tuple[int, Fault]]:
        rows = self._connection.execute("SELECT id, body FROM faults ORDER BY id").fetchall()
        return [(number, json.loads(body)) for number, body in rows]

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:  # whatever ends the block, an open transaction would lock the file for all servers
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
            self._seen_version = -1  # data_version does not tell of one's own changes


def check(body: object) -> Fault:
    """Return a fault with its defaults filled in.

    Raises:
        FaultError: The document is not a fault.
    """
    example = '{"target": "JobService.GetCustomJob", "count": 1, "action": {"kind": "error"}}'
    if (
        not isinstance(body, dict)
        or not isinstance(body.get("target"), str)
        or not isinstance(body.get("action"), dict)
    ):
        raise FaultError(f"A fault is {example}.")
    known = {*ACTION_DEFAULTS, "kind"}
    strangers = sorted((set(body) - _KEYS) | (set(body["action"]) - known))
    if strangers:
        raise FaultError(
            f"faults: unknown key {strangers[0]!r}. Expected {sorted(_KEYS)}, in action {sorted(known)}.", strangers[0]
        )
    action = {**ACTION_DEFAULTS, **body["action"]}
    if action.get("kind") not in get_args(ActionKind) or action["code"] not in CODES:
        raise FaultError(
            f"faults: action {body['action']!r}. Expected kind one of {', '.join(get_args(ActionKind))},"
            f" and code a name of google.rpc.Code.",
            "action",
        )
    action["message"] = action["message"] or f"Injected fault ({action['kind']})."
    return {
        "target": body["target"],
        "filter": str(body.get("filter", "")),
        "skip": int(body.get("skip", 0)),
        "count": int(body.get("count", 1)),
        "action": action,
    }


def _matches(fault: Fault, event: str, about: str) -> bool:
    target = fault["target"]
    return fnmatch.fnmatchcase(event, target) or (bool(about) and fnmatch.fnmatchcase(f"{event} {about}", target))


def _use_up(connection: sqlite3.Connection, number: int, fault: Fault) -> None:
    if fault["count"] == 1:
        connection.execute("DELETE FROM faults WHERE id = ?", (number,))
    elif fault["count"] > 1:
        _write(connection, number, {**fault, "count": fault["count"] - 1})


def _write(connection: sqlite3.Connection, number: int, fault: Fault) -> None:
    connection.execute("UPDATE faults SET body = ? WHERE id = ?", (json.dumps(fault), number))

"""Faults as a resource: what goes wrong on purpose, when, and how often.

A fault is a JSON document, made by `POST /faults` on the REST port:

    {"target": "JobService.GetCustomJob", "count": 3, "action": {"kind": "error", "code": "UNAVAILABLE"}}

`target` is a shell pattern over these events:
  `<Service>.<Method>`            a call (`JobService.*`)
  `<Service>.<Method>/operation`  the long-running work behind a call (`EndpointService.DeployModel/operation`)
  `Job.Start`                     a custom job about to get its machines
  `Replica.Run`                   a running replica of a custom job, `workerpool0-0`
`filter` (optional) is a list filter over the job for the last two: `display_name:"*__train__*"`, `labels.x=y`.
`skip` events pass unharmed first; `count` are hit (default 1; 0: until it is deleted).
`action.kind`:
  `error`          answer `code` (default UNAVAILABLE) with `message`; for Job.Start the job fails with it (a stockout:
                   RESOURCE_EXHAUSTED); for an operation it ends with it
  `lost_response`  do the work, then answer `code`: the caller does not learn that it worked
  `delay`          wait `seconds` first
  `preempt`        (Replica.Run) after `seconds`, SIGTERM to `replica` (default workerpool0-0), SIGKILL `grace_seconds`
                   later
"""

from __future__ import annotations

import fnmatch
import threading
from typing import Any, Literal, get_args

from localcloud.vertex.errors import HTTP_STATUS, InvalidArgument, NotFound
from localcloud.vertex.filters import compile_filter
from localcloud.vertex.listing import JOB_FIELDS
from localcloud.vertex.methods import Message
from localcloud.vertex.store import Store

ActionKind = Literal["error", "lost_response", "delay", "preempt"]
_SHELF = "faults"
_KEYS = {"target", "filter", "skip", "count", "action"}
_ACTION_KEYS = {"kind", "code", "message", "seconds", "grace_seconds", "replica"}


class Faults:
    """The faults in force, kept in the store.

    Args:
        store: Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._any = bool(store.list_documents(_SHELF, limit=1))

    def create(self, body: object) -> dict[str, Any]:
        """Put a fault in force; gives it back with its `id`.

        Raises:
            InvalidArgument: The document is not a fault.
        """
        fault = _check(body)
        number = self._store.put_document(_SHELF, fault["target"], fault)
        self._any = True
        return {"id": number, **fault}

    def list_all(self) -> list[dict[str, Any]]:
        """All faults in force, oldest first; used up ones are gone."""
        return [{"id": number, **body} for number, _, body in self._store.list_documents(_SHELF)]

    def delete(self, number: int | None = None) -> None:
        """Take one fault back, or all of them.

        Raises:
            NotFound: There is none of that number.
        """
        gone = self._store.delete_documents(_SHELF) if number is None else self._store.delete_documents(_SHELF, number)
        if number is not None and gone == 0:
            raise NotFound(f"The fault {number} does not exist (a fault is gone once it hit `count` times).")

    def take(
        self, event: str, subject: Message = None, kinds: tuple[str, ...] = get_args(ActionKind)
    ) -> dict[str, Any] | None:
        """The action of the first fault that hits this event, or None; counts it.

        Args:
            event: What is about to happen, in the form of `target`.
            subject: The job it happens to, for the fault's filter.
            kinds: Action kinds that the caller can carry out.
        """
        if not self._any:
            return None
        with self._lock:
            documents = self._store.list_documents(_SHELF)
            self._any = bool(documents)
            for number, _, fault in documents:
                if fault["action"]["kind"] in kinds and _matches(fault, event, subject):
                    if fault["skip"] > 0:
                        self._store.replace_document(number, {**fault, "skip": fault["skip"] - 1})
                        continue
                    self._use_up(number, fault)
                    action: dict[str, Any] = fault["action"]
                    return action
        return None

    def _use_up(self, number: int, fault: dict[str, Any]) -> None:
        if fault["count"] == 1:
            self._store.delete_documents(_SHELF, number)
        elif fault["count"] > 1:
            self._store.replace_document(number, {**fault, "count": fault["count"] - 1})


def _matches(fault: dict[str, Any], event: str, subject: Message) -> bool:
    if not fnmatch.fnmatchcase(event, fault["target"]):
        return False
    if not fault["filter"]:
        return True
    return subject is not None and compile_filter(fault["filter"], JOB_FIELDS)(subject)


def _check(body: object) -> dict[str, Any]:
    if (
        not isinstance(body, dict)
        or not isinstance(body.get("target"), str)
        or not isinstance(body.get("action"), dict)
    ):
        raise InvalidArgument(
            'A fault is {"target": "JobService.GetCustomJob", "count": 1, "action": {"kind": "error"}}.'
        )
    strangers = sorted((set(body) - _KEYS) | (set(body["action"]) - _ACTION_KEYS))
    if strangers:
        raise InvalidArgument(
            f"faults: unknown key {strangers[0]!r}. Expected {sorted(_KEYS)}, in action {sorted(_ACTION_KEYS)}.",
            field=strangers[0],
        )
    action = {
        "code": "UNAVAILABLE",
        "message": "",
        "seconds": 0.0,
        "grace_seconds": 0.0,
        "replica": "workerpool0-0",
        **body["action"],
    }
    if action.get("kind") not in get_args(ActionKind) or action["code"] not in HTTP_STATUS:
        raise InvalidArgument(
            f"faults: action {body['action']!r}. Expected kind one of {', '.join(get_args(ActionKind))},"
            f" and code a name of google.rpc.Code.",
            field="action",
        )
    action["message"] = action["message"] or f"Injected fault ({action['kind']})."
    expression = str(body.get("filter", ""))
    compile_filter(expression, JOB_FIELDS)
    return {
        "target": body["target"],
        "filter": expression,
        "skip": int(body.get("skip", 0)),
        "count": int(body.get("count", 1)),
        "action": action,
    }

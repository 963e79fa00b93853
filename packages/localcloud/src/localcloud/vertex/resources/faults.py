"""Vertex AI's side of the faults (`localcloud.faults`): its REST resource, its errors, and filters over jobs.

Comes in: documents from `/faults`, and events of this server. Goes out: the action of the first fault that an event
meets.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, get_args

from localcloud.faults import ActionKind, FaultError, FaultStore, InjectedError, Interception, check
from localcloud.vertex.wire.errors import ApiError, InvalidArgument, NotFound
from localcloud.vertex.wire.filters import compile_filter
from localcloud.vertex.wire.listing import JOB_FIELDS
from localcloud.vertex.wire.methods import Message


class Faults:
    """The faults in force.

    Args:
        faults: Where all servers of the local cloud keep them.
    """

    def __init__(self, faults: FaultStore) -> None:
        self._faults = faults

    def create(self, body: object) -> dict[str, Any]:
        """Put a fault in force, for whichever service; gives it back with its `id`.

        Raises:
            InvalidArgument: The document is not a fault.
        """
        try:
            fault = check(body)
        except FaultError as error:
            raise InvalidArgument(str(error), field=error.field or None) from error
        compile_filter(fault["filter"], JOB_FIELDS)
        return {"id": self._faults.add(fault), **fault}

    def list_all(self) -> list[dict[str, Any]]:
        """Return all faults in force, oldest first; used up ones are gone."""
        return [{"id": number, **fault} for number, fault in self._faults.list_all()]

    def delete(self, number: int | None = None) -> None:
        """Take one fault back, or all of them.

        Raises:
            NotFound: There is none of that number.
        """
        if self._faults.delete(number) == 0 and number is not None:
            raise NotFound(f"The fault {number} does not exist (a fault is gone once it hit `count` times).")

    def count(self, event: str, status: str) -> None:
        """Count a call that was answered with a status, a name of google.rpc.Code."""
        self._faults.count(event, status)

    def apply(self, event: str, wait: Callable[[float], object], subject: Message = None) -> None:
        """Let the first fault of this event happen: its error, or its delay.

        Args:
            event: What is about to happen.
            wait: Waits so many seconds.
            subject: The job it happens to.

        Raises:
            ApiError: The fault's error.
        """
        with self.intercept(event, subject, kinds=("error", "delay"), wait=wait):
            pass

    def fail(self, event: str, about: str) -> None:
        """Raise the error of the first fault that hits this event about something; nothing where none does.

        Raises:
            ApiError: The fault's error.
        """
        if action := self.take(event, kinds=("error",), about=about):
            raise ApiError(str(action["message"]), code=str(action["code"]))

    @contextlib.contextmanager
    def intercept(
        self,
        event: str,
        subject: Message = None,
        *,
        kinds: tuple[str, ...] = ("error", "lost_response", "delay"),
        wait: Callable[[float], object] = time.sleep,
    ) -> Iterator[None]:
        """Do what the block does, as the first fault of this event wants it.

        Raises:
            ApiError: The fault's error, before the block or after it.
        """
        try:
            with Interception(self.take(event, subject, kinds), wait):
                yield
        except InjectedError as error:
            raise ApiError(error.message, code=error.code) from None

    def take(
        self, event: str, subject: Message = None, kinds: tuple[str, ...] = get_args(ActionKind), about: str = ""
    ) -> dict[str, Any] | None:
        """Return the action of the first fault that hits this event, or None; counts it.

        Args:
            event: What is about to happen, in the form of `target`.
            subject: The job it happens to, for the fault's filter.
            kinds: Action kinds that the caller can carry out.
            about: What it concerns, as `target` may name it after the event.
        """

        def passes(expression: str) -> bool:
            return not expression or (subject is not None and compile_filter(expression, JOB_FIELDS)(subject))

        return self._faults.take(event, about, kinds=kinds, passes=passes)

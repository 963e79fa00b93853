"""Long-running work of Vertex AI, as its services tell of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.longrunning.operations_pb2 import Operation as Message


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Long-running work. `error` is empty unless it ended badly."""

    name: str
    done: bool
    error: str = ""


def operation_of(operation: Message) -> Operation:
    """Return the service's message as a value."""
    failed = operation.done and operation.HasField("error")
    return Operation(name=operation.name, done=bool(operation.done), error=operation.error.message if failed else "")

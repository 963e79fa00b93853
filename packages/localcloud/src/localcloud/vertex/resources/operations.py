"""Long-running operations: work that goes on after its call was answered, and the service that tells how it stands.

Comes in: a resource, metadata, and a function. Goes out: `google.longrunning.Operation`, with the real response and
metadata types packed inside, kept in the store.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.cloud.aiplatform_v1 import types
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.resources.faults import Faults
from localcloud.vertex.resources.store import OPERATIONS, Store, now
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition
from localcloud.vertex.wire.listing import list_page
from localcloud.vertex.wire.methods import Message, raw

LOGGER = logging.getLogger(__name__)
# Most work takes milliseconds here: wait this long for it, so that the caller need not poll.
_PATIENCE_S = 0.05
_WAIT_LIMIT_S = 60.0


class Cancelled(Exception):
    """Raised by work that saw that it was cancelled."""


class Progress:
    """What running work may ask."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Ask the work to end."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the work shall end."""
        return self._cancelled.is_set()

    def check(self) -> None:
        """Go on, or not.

        Raises:
            Cancelled: The work shall end.
        """
        if self._cancelled.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> bool:
        """Wait, but not longer than the work goes on; gives whether it shall end."""
        return self._cancelled.wait(seconds)

    def sleep(self, seconds: float) -> None:
        """Wait.

        Raises:
            Cancelled: The work shall end.
        """
        if self.wait(seconds):
            raise Cancelled


class Operations:
    """Starts, finishes and remembers operations.

    Args:
        store: Where they are kept.
        faults: May slow them down or end them.
    """

    def __init__(self, store: Store, faults: Faults) -> None:
        self._store = store
        self._faults = faults
        self._pool = ThreadPoolExecutor(16, thread_name_prefix="operation")
        self._changed = threading.Condition()
        self._running: dict[str, Progress] = {}

    def start(
        self,
        call: str,
        resource: str,
        metadata: Message,
        work: Callable[[Progress], Any],
        failed: Callable[[str, ApiError], None] | None = None,
    ) -> operations_pb2.Operation:
        """Begin the work of a call.

        Args:
            call: Name of the call, `JobService.DeleteCustomJob`: faults meet the work as `…/operation`.
            resource: Name of what is worked on; the operation's name begins with it.
            metadata: Its operation metadata, whose times are filled in here.
            work: Gives the response; an ApiError from it becomes the operation's error.
            failed: Is told of the resource whose work failed, and why.
        """
        name = f"{resource}/operations/{names.new_id()}"
        moment = now()
        metadata.generic_metadata = types.GenericOperationMetadata(create_time=moment, update_time=moment)
        operation = operations_pb2.Operation(name=name)
        operation.metadata.Pack(raw(metadata))
        self._store.insert(OPERATIONS, name, resource, operation)
        progress = self._running[name] = Progress()
        on_error = functools.partial(failed, resource) if failed else None
        self._pool.submit(self._run_work, name, f"{call}/operation", metadata, work, progress, on_error)
        return self.wait(name, _PATIENCE_S)

    def _run_work(
        self,
        name: str,
        event: str,
        metadata: Message,
        work: Callable[[Progress], Any],
        progress: Progress,
        on_error: Callable[[ApiError], None] | None,
    ) -> None:
        response, error = None, None
        try:
            self._faults.apply(event, progress.sleep)
            response = work(progress)
        except Cancelled:
            error = ApiError("The operation was cancelled.", code="CANCELLED")
        except ApiError as refusal:
            error = refusal
        except Exception as problem:  # the thread's last line: the caller polls until the operation has an end
            LOGGER.exception("%s failed", name)
            error = ApiError(
                f"{type(problem).__name__}: {problem}. See the log of the local Vertex AI.", code="INTERNAL"
            )
        if error is not None and error.code != "CANCELLED" and on_error is not None:  # else a restart goes on with it
            on_error(error)
        self._finish(name, metadata, response, error)

    def _finish(self, name: str, metadata: Message, response: Message, error: ApiError | None) -> None:
        metadata.generic_metadata.update_time = now()
        try:
            with self._store.change(OPERATIONS, name) as operation:
                operation.done = True
                operation.metadata.Pack(raw(metadata))
                if error is not None:
                    operation.error.CopyFrom(error.to_status())
                else:
                    operation.response.Pack(raw(response))
        except ApiError:
            LOGGER.info("%s was deleted while it ran", name)
        with self._changed:
            self._running.pop(name, None)
            self._changed.notify_all()

    def wait(self, name: str, timeout_s: float) -> operations_pb2.Operation:
        """Return the operation once it is done, or as it stands when the time is up."""
        with self._changed:
            self._changed.wait_for(lambda: name not in self._running, timeout_s)
        return self._store.get(OPERATIONS, name)

    def cancel(self, name: str) -> None:
        """Ask running work to end; what is done stays done."""
        with self._changed:
            if name in self._running:
                self._running[name].cancel()

    def resume(self) -> None:
        """After a restart: whatever was running is over."""
        for operation in self._store.list_in_state(OPERATIONS, "RUNNING"):
            lost = ApiError("The local cloud was stopped while the operation ran. Ask for it again.", code="ABORTED")
            with self._store.change(OPERATIONS, operation.name) as changed:
                changed.done = True
                changed.error.CopyFrom(lost.to_status())

    def close(self) -> None:
        """Cancel what runs and wait for it."""
        with self._changed:
            for progress in self._running.values():
                progress.cancel()
        self._pool.shutdown(wait=True)


class OperationService:
    """Answers what is asked of operations.

    Args:
        store: Where they are kept.
    """

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store = store
        self._operations = operations

    def get_operation(self, request: operations_pb2.GetOperationRequest) -> operations_pb2.Operation:
        """Return the operation as it stands."""
        return self._store.get(OPERATIONS, request.name)

    def list_operations(self, request: operations_pb2.ListOperationsRequest) -> operations_pb2.ListOperationsResponse:
        """Return the operations on a resource or anywhere under it, newest first."""
        inside = request.name.rstrip("/") + "/"
        operations = [operation for operation in self._store.list_all(OPERATIONS) if operation.name.startswith(inside)]
        page, token = list_page(operations, request, {"done": "done"})
        return operations_pb2.ListOperationsResponse(operations=page, next_page_token=token)

    def wait_operation(self, request: operations_pb2.WaitOperationRequest) -> operations_pb2.Operation:
        """Return the operation once it is done, or when the timeout (at most a minute) is up."""
        self._store.get(OPERATIONS, request.name)
        asked = request.timeout.ToNanoseconds() / 1e9 if request.HasField("timeout") else _WAIT_LIMIT_S
        return self._operations.wait(request.name, min(asked, _WAIT_LIMIT_S))

    def cancel_operation(self, request: operations_pb2.CancelOperationRequest) -> empty_pb2.Empty:
        """Ask the operation to end; it may be too late."""
        self._store.get(OPERATIONS, request.name)
        self._operations.cancel(request.name)
        return empty_pb2.Empty()

    def delete_operation(self, request: operations_pb2.DeleteOperationRequest) -> empty_pb2.Empty:
        """Forget a finished operation."""
        with self._store.transaction():
            operation = self._store.get(OPERATIONS, request.name)
            if not operation.done:
                raise FailedPrecondition(
                    f"The operation {request.name} is still running. Cancel it, or wait until it is done."
                )
            self._store.delete(OPERATIONS, request.name)
        return empty_pb2.Empty()

"""A worker's process at the local cloud in which something happens, once, at one of its calls to Vertex AI.

Between Google's client and the network: what is tried is the operator, with whatever its client does about it. A worker
is a process of its own, and is killed as one.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import multiprocessing
import os
import signal
import sys
import traceback
import uuid
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import grpc
from google.api_core import grpc_helpers, grpc_helpers_async

from tests.operators.conftest import FakeRun
from tests.support.airflow_release import AirflowRescheduleException, TaskDeferred

DONE, FAILED, WAITS, KILLED = 0, 1, 75, -signal.SIGKILL
SUCCEEDED = 4
"""`JOB_STATE_SUCCEEDED` of Vertex AI."""
PROCESSES = multiprocessing.get_context("forkserver")


@dataclasses.dataclass(frozen=True)
class Strike:
    """What happens at a call, once.

    Attributes:
        name: For the table.
        at: `create`; `look`: a question after it; `done`: the answer that it is done.
        after: Whether the call still does its work.
        killed: Else it is answered with 503.
    """

    name: str
    at: str
    after: bool = False
    killed: bool = True


class Unavailable(grpc.RpcError):
    """503, as a call without an answer raises it."""

    def code(self) -> grpc.StatusCode:
        """As of every such error."""
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        """For the log."""
        return "struck"

    def trailing_metadata(self) -> tuple[()]:
        """None."""
        return ()


class Striker(grpc.UnaryUnaryClientInterceptor):
    """Strikes at the call that is meant, once in the life of a wish.

    Args:
        strike: What happens; None: nothing.
        creates: The call that is paid for.
        marks: A folder, where the processes of one wish note that it was made and that it was struck.
    """

    def __init__(self, strike: Strike | None, creates: str, marks: Path) -> None:
        self._creates, self._marks = creates, marks
        self.strike = None if (marks / "struck").exists() else strike

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """Let a call pass, or strike before or after it."""
        due = self._is_due(details)
        if due and self.strike and not self.strike.after:
            self.happen(Unavailable)
        answer = continuation(details, request)
        if (due and self.strike) or (self.strike and self.strike.at == "done" and is_end(answer.result())):
            self.happen(Unavailable)
        return answer

    async def intercept_later(self, continuation: Any, details: Any, request: Any) -> Any:
        """The same in the triggerer."""
        if self._is_due(details):
            self.happen(unavailable_later)
        return await continuation(details, request)

    def _is_due(self, details: Any) -> bool:
        method = details.method if isinstance(details.method, str) else details.method.decode()
        call = method.rpartition("/")[2]
        made = (self._marks / "made").exists()
        if call == self._creates:
            (self._marks / "made").touch()
        if self.strike is None:
            return False
        if self.strike.at == "create":
            return call == self._creates
        return self.strike.at == "look" and made and call.startswith(("Get", "List"))

    def happen(self, error: Callable[[], BaseException] = Unavailable) -> None:
        """Strike, and never again."""
        strike, self.strike = self.strike, None
        (self._marks / "struck").touch()
        if strike is not None and strike.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        if strike is not None:
            raise error()


def is_end(answer: Any) -> bool:
    """Whether an answer says that what was wished for is done: a job, an operation, or a list that has it."""
    listed = [*getattr(answer, "custom_jobs", ()), *getattr(answer, "hyperparameter_tuning_jobs", ())]
    if any(int(job.state) == SUCCEEDED for job in listed) or list(getattr(answer, "models", ())):
        return True
    return getattr(answer, "done", False) is True or int(getattr(answer, "state", 0)) == SUCCEEDED


def unavailable_later() -> grpc.aio.AioRpcError:
    """503, as an asynchronous call raises it."""
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, nothing, nothing, details="struck")


class LaterStriker(grpc.aio.UnaryUnaryClientInterceptor):
    """A striker on asynchronous channels."""

    def __init__(self, striker: Striker) -> None:
        self._striker = striker

    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """As the striker has it."""
        return await self._striker.intercept_later(continuation, details, request)


def stand_between(striker: Striker) -> None:
    """Put a striker on every channel that this process makes from now on."""
    make, make_later = grpc_helpers.create_channel, grpc_helpers_async.create_channel

    def create_channel(*args: Any, **kwargs: Any) -> Any:
        return grpc.intercept_channel(make(*args, **kwargs), striker)

    def create_later(*args: Any, **kwargs: Any) -> Any:
        channel = make_later(*args, **kwargs)
        channel._unary_unary_interceptors.append(LaterStriker(striker))
        return channel

    grpc_helpers.create_channel = create_channel
    grpc_helpers_async.create_channel = create_later


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wish:
    """What a task is to have done once, whichever processes it takes.

    Attributes:
        make: Makes the operator, of the wish's name.
        name: Of this wish alone.
        creates: The call that is paid for.
        folder: What its processes leave: marks, logs, and as Airflow's database has it a deferred task's trigger.
        strike: What happens to one of its processes; None: nothing.
    """

    make: Callable[[str], Any]
    name: str
    creates: str
    folder: Path
    strike: Strike | None

    def run(self, try_number: int) -> int:
        """Run one process of the task to its end; return how it ended."""
        said = self.folder / uuid.uuid4().hex
        self.start(try_number, said).join()
        return int(said.read_text()) if said.exists() else KILLED

    def start(self, try_number: int, said: Path) -> Any:
        """Start one, which writes into a file how it ended; without that it was killed."""
        process = PROCESSES.Process(target=work, args=(self, try_number, said))
        process.start()
        return process

    @property
    def deferred(self) -> Path:
        """Where a deferred task's trigger lies, and later what came of it."""
        return self.folder / "deferred"

    def is_deferred(self) -> bool:
        """Whether the next process is a triggerer's: a death of that costs no try."""
        return self.deferred.exists() and "trigger" in _read(self.deferred)


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def _make_trigger(classpath: str, values: dict[str, Any]) -> Any:
    module, _, name = classpath.rpartition(".")
    return getattr(import_module(module), name)(**values)


def work(wish: Wish, try_number: int, said: Path) -> NoReturn:
    """The process: a try of the task, a wake of it, or what it left to the triggerer."""
    with (wish.folder / "log.txt").open("a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    striker = Striker(wish.strike, wish.creates, wish.folder)
    stand_between(striker)
    code = FAILED
    try:
        code = _wake(wish, try_number, striker)
    finally:
        if code == FAILED:  # as Airflow's: whatever it was, the try has failed
            traceback.print_exc()
        sys.stdout.flush()
        said.write_text(str(code))
        os._exit(code)


def _wake(wish: Wish, try_number: int, striker: Striker) -> int:
    run = FakeRun(run_id=f"scheduled__{wish.name}", dag_id=wish.name)
    task = wish.make(wish.name)
    noted = _read(wish.deferred) if wish.deferred.exists() else {}
    if "trigger" in noted:
        event = asyncio.run(_first_event(_make_trigger(*noted["trigger"])))
        wish.deferred.write_text(json.dumps({"method": noted["method"], "event": event}, default=str))
        return WAITS
    # Airflow forgets it with the try (`clear_next_method_args`): the next one begins from the beginning.
    wish.deferred.unlink(missing_ok=True)
    try:
        if noted:
            if striker.strike and striker.strike.at == "done":
                striker.happen()
            getattr(task, noted["method"])(run.context(task, try_number=try_number, max_tries=3), event=noted["event"])
        else:
            run.execute(task, try_number=try_number, max_tries=3)
    except AirflowRescheduleException:
        return WAITS
    except TaskDeferred as deferred:
        noted = {"trigger": deferred.trigger.serialize(), "method": deferred.method_name}
        wish.deferred.write_text(json.dumps(noted))
        return WAITS
    return DONE


async def _first_event(trigger: Any) -> Any:
    async for event in trigger.run():
        return event.payload
    raise RuntimeError("a trigger that ends without an event")

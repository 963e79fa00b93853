"""How long a call of a hook may take, and how much it may read: one limit around each, whatever the server does.

In: seconds and bytes, by `session.call` and by `notifiers.py`. Out: what is left of them, for the transports
(`transports.py`, `mail.py`), which ask at each send and at each piece that they read: so a server that says nothing and
one that drips a byte a second end alike, and a call without a limit is refused before it is sent.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from retraining.core.errors import ContractError

CALL_S = 60.0
"""Of a call, with its retries."""
SILENCE_S = 60.0
"""Until the next piece of an answer, or a whole one of gRPC: of calls that may take longer in all."""
LISTING_S = 600.0
"""Of a listing, all pages of it: a folder of a million objects has a thousand."""
TRANSFER_S = 1800.0
"""Of many objects or a large one: a model's files, rows to load."""
ENDPOINT_S = 300.0
"""Until a new endpoint is there."""
STATEMENT_S = 7200.0
"""Until a statement on BigQuery is done and read; it goes on without its task, whose retry joins it."""
MAX_BYTES = 256_000_000
"""Of all answers to a call; the largest document has 64 MB, a listing of a million objects some 200 MB."""
MAX_STATEMENT_BYTES = 2_000_000_000
"""Of a statement's pages, which are read one by one."""

_T = TypeVar("_T")
_S = TypeVar("_S")


class OutOfTimeError(TimeoutError):
    """A call had no whole answer within its limit; another one may."""


@dataclass(kw_only=True)
class Limit:
    """What is left of a call. `end` is a time of `time.monotonic`."""

    seconds: float
    end: float
    max_bytes: int
    read: int = 0

    def left(self, what: str) -> float:
        """Return how long may be waited for the next piece.

        Raises:
            OutOfTimeError: No longer.
        """
        left = self.end - time.monotonic()
        if left <= 0:
            raise OutOfTimeError(f"{what}: no whole answer within {self.seconds:g} seconds")
        return min(left, SILENCE_S)

    def take(self, size: int, what: str) -> None:
        """Note bytes that were read.

        Raises:
            ContractError: They are more than the call may read.
        """
        self.read += size
        self.require(self.read, what)

    @property
    def exceeded(self) -> str | None:
        """What was too much, with nothing of either side in it; None: the call is within its limit."""
        if time.monotonic() >= self.end:
            return f"not done within {self.seconds:g} seconds"
        return f"its answer has more than {self.max_bytes:,} bytes" if self.read > self.max_bytes else None

    def require(self, size: int, what: str) -> None:
        """Refuse an answer of more bytes than the call may read."""
        if size > self.max_bytes:
            raise ContractError(
                what,
                f"an answer of more than {self.max_bytes} bytes",
                "one that a worker can keep in memory",
                "Look what the service has there, and take away what is not needed",
            )


_CURRENT: contextvars.ContextVar[Limit | None] = contextvars.ContextVar("limit", default=None)


@contextmanager
def limited(seconds: float, max_bytes: int = MAX_BYTES) -> Iterator[Limit]:
    """Limit what is asked within; a limit around this one holds too."""
    outer = _CURRENT.get()
    end = time.monotonic() + seconds
    limit = Limit(seconds=seconds, end=end, max_bytes=max_bytes)
    if outer is not None and outer.end < end:
        limit = Limit(seconds=outer.seconds, end=outer.end, max_bytes=max_bytes)
    token = _CURRENT.set(limit)
    try:
        yield limit
    finally:
        _CURRENT.reset(token)


def current(what: str) -> Limit:
    """Return the limit of the call that is under way.

    Raises:
        RuntimeError: There is none: a hook asks without `session.call`.
    """
    limit = _CURRENT.get()
    if limit is None:
        raise RuntimeError(f"{what} is asked without a limit of time: ask it within retraining.hooks.session.call")
    return limit


def call_in_thread(function: Callable[[], _T]) -> _T:
    """Call a function within the limit that is under way, and wait no longer than that, in a thread of its own.

    So the caller goes on whatever a name server, a proxy or a TLS handshake does.

    Raises:
        OutOfTimeError: It was not done in time. Its thread ends with its next read or wait.
    """
    done: Future[_T] = Future()

    def work() -> None:
        try:
            done.set_result(function())
        except Exception as error:  # noqa: BLE001 - it is raised again, where it is waited for
            done.set_exception(error)

    left = current("A call").left("A call")
    threading.Thread(target=contextvars.copy_context().run, args=(work,), name="limited-call", daemon=True).start()
    try:
        return done.result(left)
    except TimeoutError:
        if done.done():  # the function's own
            raise
        raise OutOfTimeError(f"no whole answer within {left:g} seconds") from None


def ask_all(function: Callable[[_S], _T], items: Iterable[_S], at_once: int, seconds: float = TRANSFER_S) -> list[_T]:
    """Call a function with each item, several at once; return its answers in their order.

    The first error ends it: what has not begun by then does not begin.
    """
    asked = list(items)
    if not asked:
        return []
    with limited(seconds), ThreadPoolExecutor(min(at_once, len(asked))) as pool:
        begun = [pool.submit(contextvars.copy_context().run, function, item) for item in asked]
        try:
            return [one.result() for one in begun]
        except BaseException:  # an end of the task too: whatever it is goes on, and nothing more begins
            pool.shutdown(wait=False, cancel_futures=True)
            raise

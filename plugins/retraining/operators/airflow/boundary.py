"""The edge between this package and Airflow: what must not be retried fails for good, with its whole message."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from retraining.core.errors import RetrainingError, is_final
from retraining.hooks.airflow_exceptions import AirflowException, AirflowFailException
from retraining.hooks.session import explain, is_transient
from retraining.operators.airflow.failures import leave_failure

LOGGER = logging.getLogger(__name__)
_Method = TypeVar("_Method", bound=Callable[..., Any])


class FailedForGoodError(AirflowFailException):
    """What Airflow does not retry, whatever it is.

    Args:
        error: With the message for people.
        is_left: Whether the run's record has it already.
    """

    def __init__(self, error: RetrainingError, *, is_left: bool = False) -> None:
        super().__init__(str(error))
        self.error, self.is_left = error, is_left


def fail_for_good(method: _Method) -> _Method:
    """Decorate `execute` or `poke`: an error that a retry cannot mend becomes `AirflowFailException`.

    Retried are `JobError`, `ConflictError`, and whatever neither this package nor Google explains as permanent. The
    message is what the task's log ends with, and stays in the run's record; how it came to it stands above.
    """

    @functools.wraps(method)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except FailedForGoodError as failed:  # raised where no further try may follow, as after a job's last one
            if not failed.is_left:
                failed.is_left = True
                leave_failure(args[0] if args else None, _context(args, kwargs), failed.error, for_good=True)
            raise
        except AirflowException:
            raise
        except Exception as error:  # Google's have no common class; what is not explained is raised again
            explained = error if isinstance(error, RetrainingError) else explain(error)
            if explained is not None and explained is not error:
                explained.__cause__ = error
            leave_failure(args[0] if args else None, _context(args, kwargs), explained or error)
            if explained is None:
                raise
            # Airflow prints an error with all that it came of, the message first and the cause last.
            LOGGER.error("How it came to %s:", type(explained).__name__, exc_info=error)
            if is_final(explained):
                raise FailedForGoodError(explained, is_left=True) from None
            raise explained from None

    return guarded  # type: ignore[return-value]  # functools.wraps keeps the signature


def _context(args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    """Return Airflow's context among a method's arguments: Airflow gives it by name."""
    return kwargs.get("context", args[1] if len(args) > 1 else None)


def sleep_over(passes: Callable[[BaseException], bool]) -> Callable[[_Method], _Method]:
    """Decorate a sensor's `poke`: what passes by itself (503, a broken connection) is left to the next poke.

    A failed task would use up one of Airflow's tries, and after the last one a running job would be cancelled. How long
    a sensor goes on is its `timeout`, by default seven days.

    Args:
        passes: Whether an error is such.
    """

    def decorate(poke: _Method) -> _Method:
        @functools.wraps(poke)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return poke(*args, **kwargs)
            except Exception as error:  # the network's have no common class; what does not pass is raised again
                if not passes(error):
                    raise
                LOGGER.warning("%s: %s; the next poke goes on", type(error).__name__, error)
                return False

        return guarded  # type: ignore[return-value]  # functools.wraps keeps the signature

    return decorate


sleep_over_outages = sleep_over(is_transient)
"""A quota that is used up passes too: a job is made once there are machines."""

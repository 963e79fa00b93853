"""The edge between this package and Airflow: what must not be retried fails for good, with its whole message."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from retraining.core.errors import RetrainingError, is_final
from retraining.hooks.airflow_exceptions import AirflowException, AirflowFailException
from retraining.hooks.session import explain, is_transient

LOGGER = logging.getLogger(__name__)
KIND_KEY = "error_kind"
"""XCom of a task that failed: the class of its error, for `conclude` to tell of."""
_Method = TypeVar("_Method", bound=Callable[..., Any])


def fail_for_good(method: _Method) -> _Method:
    """Decorate `execute` or `poke`: an error that a retry cannot mend becomes `AirflowFailException`.

    Retried are `JobError`, `ConflictError`, and whatever neither this package nor Google explains as permanent.
    """

    @functools.wraps(method)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except AirflowException:
            raise
        except RetrainingError as error:
            _leave_kind(_context(args, kwargs), error)
            if not is_final(error):
                raise
            raise AirflowFailException(str(error)) from error
        except Exception as error:  # Google's have no common class; what is not explained is raised again
            explained = explain(error)
            _leave_kind(_context(args, kwargs), explained or error)
            if explained is None:
                raise
            raise AirflowFailException(str(explained)) from error

    return guarded  # type: ignore[return-value]  # functools.wraps keeps the signature


def _context(args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    """Return Airflow's context among a method's arguments: Airflow gives it by name."""
    return kwargs.get("context", args[1] if len(args) > 1 else None)


def _leave_kind(context: object, error: BaseException) -> None:
    """Leave the class of the error in XCom, where the decorated method was given Airflow's context."""
    if not isinstance(context, Mapping) or "ti" not in context:
        return
    try:
        context["ti"].xcom_push(key=KIND_KEY, value=type(error).__name__)
    except Exception as failure:  # the error itself must come out
        LOGGER.warning("no XCom %s: %s", KIND_KEY, failure, exc_info=True)


def sleep_over_outages(poke: _Method) -> _Method:
    """Decorate a sensor's `poke`: what passes by itself (503, a broken connection) is left to the next poke.

    A failed task would use up one of Airflow's tries, and after the last one a running job would be cancelled. How long
    a sensor goes on is its `timeout`, by default seven days.
    """

    @functools.wraps(poke)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return poke(*args, **kwargs)
        except Exception as error:  # the network's have no common class; what does not pass is raised again
            if not is_transient(error):
                raise
            LOGGER.warning("%s: %s; the next poke goes on", type(error).__name__, error)
            return False

    return guarded  # type: ignore[return-value]  # functools.wraps keeps the signature

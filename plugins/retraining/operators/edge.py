"""The edge between this package and Airflow: what must not be retried fails for good, with its whole message."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, TypeVar

from airflow.sdk import Context

from retraining.core.errors import ConflictError, JobError, RetrainingError
from retraining.hooks.airflow_exceptions import AirflowException, AirflowFailException
from retraining.hooks.session import explain

RETRYABLE = (JobError, ConflictError)
_Method = TypeVar("_Method", bound=Callable[..., Any])


SECONDS_KEY = "seconds"


def timed(method: _Method) -> _Method:
    """Decorate `execute`: leave its duration in XCom, for the report."""

    @functools.wraps(method)
    def measured(self: Any, context: Context) -> Any:  # noqa: ANN401 - passes through what the method takes and gives
        started = time.monotonic()
        result = method(self, context)
        context["ti"].xcom_push(key=SECONDS_KEY, value=round(time.monotonic() - started, 3))
        return result

    return measured  # type: ignore[return-value]  # functools.wraps keeps the signature


def fail_for_good(method: _Method) -> _Method:
    """Decorate `execute` or `poke`: an error that a retry cannot mend becomes `AirflowFailException`.

    Retried are `JobError`, `ConflictError`, and whatever neither this package nor Google explains as permanent.
    """

    @functools.wraps(method)
    def guarded(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passes through what the method takes and gives
        try:
            return method(*args, **kwargs)
        except (AirflowException, *RETRYABLE):
            raise
        except RetrainingError as error:
            raise AirflowFailException(str(error)) from error
        except Exception as error:
            explained = explain(error)
            if explained is None:
                raise
            raise AirflowFailException(str(explained)) from error

    return guarded  # type: ignore[return-value]  # functools.wraps keeps the signature

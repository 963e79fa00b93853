"""Schedules, by what Airflow reads them with: what it takes is taken, what it refuses shows in `make check-models`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from croniter import croniter  # type: ignore[import-untyped]  # it has no types; it comes with Airflow
from pydantic import AfterValidator

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
"""Airflow's own names, which it turns into expressions itself."""
_MAX_CHARACTERS = 200
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


def check_cron(expression: str) -> str:
    """Return the expression unchanged when Airflow can schedule by it.

    Raises:
        ValueError: It cannot be read, or never comes (30 February); the message says why.
    """
    if expression in PRESETS:
        return expression
    if len(expression) > _MAX_CHARACTERS:
        raise ValueError(f"a cron expression of {len(expression)} characters; expected at most {_MAX_CHARACTERS}")
    try:
        croniter(expression, _ANY_DAY).get_next()
    except (ValueError, KeyError, IndexError, AttributeError, TypeError) as error:  # its own errors are ValueErrors
        raise ValueError(
            f"{expression!r} is no time that Airflow knows ({error}); expected a cron expression, minute hour "
            f"day-of-month month day-of-week, for example '0 3 * * *', or one of {', '.join(PRESETS)}"
        ) from error
    return expression


Cron = Annotated[str, AfterValidator(check_cron)]

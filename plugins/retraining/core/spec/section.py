"""What the sections of a model's YAML file share: frozen, unknown keys refused; columns, shares, counts, schedules."""

from __future__ import annotations

import keyword
import re
from datetime import UTC, datetime
from typing import Annotated

from croniter import croniter  # type: ignore[import-untyped]  # it has no types; it comes with Airflow
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


class Section(BaseModel):
    """A part of the spec: frozen, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        protected_namespaces=(),
        defer_build=True,  # those inside others are built once, with the whole
    )


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
RESERVED_COLUMNS = frozenset({"span", "part", "shard", "shards", "row_hash", "split"})


def _identifier(name: str) -> str:
    if keyword.iskeyword(name) or name.lower() in RESERVED_COLUMNS:
        raise ValueError(f"{name!r} is reserved: give the column another name in the query")
    return name


def column_name_for(name: str) -> str:
    """Return the name of a column itself, or where no spec can have that the nearest one that it can."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name)[:120] if not _PLAIN.fullmatch(name) else name
    plain = plain.strip("_") or "column" if plain != name else plain
    plain = plain if _PLAIN.fullmatch(plain) else f"column_{plain}"
    return f"{plain}_column" if keyword.iskeyword(plain) or plain.lower() in RESERVED_COLUMNS else plain


ColumnName = Annotated[str, StringConstraints(pattern=f"^{_PLAIN.pattern}$"), AfterValidator(_identifier)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=10**12)]
"""Of rows, or of requests."""


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

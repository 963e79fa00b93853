"""What the sections of a model's YAML file share: frozen, unknown keys refused; names of columns, shares, counts."""

from __future__ import annotations

import keyword
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


class Section(BaseModel):
    """A part of the spec: frozen, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        protected_namespaces=(),
    )


RESERVED_COLUMNS = frozenset({"span", "part", "shard", "shards", "row_hash", "split"})


def _identifier(name: str) -> str:
    if keyword.iskeyword(name) or name.lower() in RESERVED_COLUMNS:
        raise ValueError(f"{name!r} is reserved: give the column another name in the query")
    return name


ColumnName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"), AfterValidator(_identifier)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=10**12)]
"""Of rows, or of requests."""

"""What the sections of a model's YAML file share: frozen, unknown keys refused; names of columns, shares, counts."""

from __future__ import annotations

import keyword
import re
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

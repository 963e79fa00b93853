"""Parts that documents are made of: a frozen value, and the numbers in it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(allow_inf_nan=False, ge=0)]
Share = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1)]

STORED_NAMES = {"message": "words", "reason": "because"}
"""Names in JSON of fields that have another one in Python: what releases have stored stays readable."""


class Value(BaseModel):
    """A frozen part of a document. Unknown keys are refused, and nothing is converted on the way in."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        protected_namespaces=(),
        defer_build=True,  # a task reads few of the classes that it imports
        alias_generator=lambda name: STORED_NAMES.get(name, name),
        populate_by_name=True,
        serialize_by_alias=True,
    )

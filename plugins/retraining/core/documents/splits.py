"""The three splits of a data set, as documents name them: all of them, or it is no data set."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field

SplitName = Literal["train", "validation", "test"]
ManifestSplitName = Literal["train", "validation", "test", "golden"]
"""`golden` is the frozen set."""


_S = TypeVar("_S", bound=str)
_T = TypeVar("_T")


def all_three(splits: dict[_S, _T]) -> dict[_S, _T]:
    """Return splits that are all there.

    Raises:
        ValueError: One is missing.
    """
    for name in ("train", "validation", "test"):
        if name not in splits:
            raise ValueError(f"has no key {name!r}")
    return splits


AllSplits = Annotated[
    dict[SplitName, _T],
    AfterValidator(all_three),
    Field(json_schema_extra={"required": ["train", "validation", "test"]}),
]
ManifestSplits = Annotated[
    dict[ManifestSplitName, _T],
    AfterValidator(all_three),
    Field(json_schema_extra={"required": ["train", "validation", "test"]}),
]

"""The part of `statistics.json` that training needs: means, deviations and vocabularies of the training split.

They were computed in BigQuery, in one pass, so TensorFlow needs no adapt pass over the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from trainer.contract.documents import Feature
from trainer.errors import DataError


@dataclass(frozen=True, kw_only=True)
class ValueCount:
    """A category and how often it occurs."""

    value: str
    count: int


@dataclass(frozen=True, kw_only=True)
class FeatureStatistics:
    """Of one feature in one split; which fields are set depends on `kind`. Those of images and texts are not read.

    Mean, deviation and values of a sequence are those of its elements.
    """

    kind: Literal["numeric", "categorical", "image", "sequence", "text"]
    nulls: int
    mean: float | None = None
    stddev: float | None = None
    top: tuple[ValueCount, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SplitStatistics:
    """Of one split."""

    rows: int
    features: Mapping[str, FeatureStatistics]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Of one run's examples, by split."""

    kind: ClassVar[str] = "statistics"
    model: str
    run_key: str
    splits: Mapping[str, SplitStatistics]

    def of(self, feature: Feature) -> FeatureStatistics:
        """Give a feature's statistics over the training split.

        Raises:
            DataError: There are none, or they are of another kind.
        """
        found = self.splits["train"].features.get(feature.name) if "train" in self.splits else None
        if found is None or found.kind != feature.kind:
            raise DataError(
                f"statistics of run {self.run_key}, split train",
                f"nothing about feature {feature.name!r}" if found is None else f"{feature.name!r} is {found.kind}",
                f"a {feature.kind} feature, as in the request",
                "Delete statistics.json, then clear the run's check_data task and what follows it",
            )
        return found

"""The part of `statistics.json` that training needs: means, deviations and vocabularies of the training split.

They were computed in BigQuery, in one pass, so TensorFlow needs no adapt pass over the data.
"""

from __future__ import annotations

from typing import overload

from trainer.contract.documents import (
    CategoricalFeature,
    CategoricalStatistics,
    Feature,
    FeatureStatistics,
    NumericFeature,
    NumericStatistics,
    SequenceFeature,
    SequenceStatistics,
    Statistics,
    TimeFeature,
    TimeStatistics,
)
from trainer.errors import DataError


@overload
def statistics_of(feature: NumericFeature, statistics: Statistics) -> NumericStatistics: ...
@overload
def statistics_of(feature: CategoricalFeature, statistics: Statistics) -> CategoricalStatistics: ...
@overload
def statistics_of(feature: SequenceFeature, statistics: Statistics) -> SequenceStatistics: ...
@overload
def statistics_of(feature: TimeFeature, statistics: Statistics) -> TimeStatistics: ...
def statistics_of(feature: Feature, statistics: Statistics) -> FeatureStatistics:
    """Return a feature's statistics over the training split.

    Raises:
        DataError: There are none, or they are of another kind.
    """
    known = statistics.splits["train"].features.get(feature.name) if "train" in statistics.splits else None
    if known is None or known.kind != feature.kind:
        raise DataError(
            f"statistics of run {statistics.run_key}, split train",
            f"nothing about feature {feature.name!r}" if known is None else f"{feature.name!r} is {known.kind}",
            f"a {feature.kind} feature, as in the request",
            "Delete statistics.json, then clear the run's check_data task and what follows it",
        )
    return known

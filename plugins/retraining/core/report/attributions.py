"""What each feature added to an answer, in lines for a terminal.

In: attributions as an endpoint gives them, the instances that they are of. Out: lines, the largest attribution first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retraining.core.untyped import JsonObject


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """What each feature added to one output of one instance's answer; together the answer less the baseline's.

    Attributes:
        output: Name of the output, with its class or quantile where it is one of several.
        answer: Of the instance.
        baseline: Of the baselines of all features.
        features: By name.
        error: By the service's measure, 0 where nothing is left to chance.
    """

    output: str
    answer: float
    baseline: float
    features: Mapping[str, float]
    error: float


def describe_attributions(instances: Sequence[JsonObject], explained: Sequence[Sequence[Attribution]]) -> Iterator[str]:
    """Yield lines on each instance: its answer beside the baseline's, then each feature with its value."""
    for number, (instance, attributions) in enumerate(zip(instances, explained, strict=True), 1):
        for one in attributions:
            yield (
                f"instance {number}: {one.output} {one.answer:.6g}, of the baseline {one.baseline:.6g}, "
                f"error {one.error:.2g}"
            )
            width = max(map(len, one.features), default=0)
            for name, added in sorted(one.features.items(), key=lambda item: -abs(item[1])):
                yield f"  {added:+12.6g}  {name:<{width}}  {json.dumps(instance.get(name), ensure_ascii=False)}"

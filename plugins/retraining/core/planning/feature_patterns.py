"""Which features a run has where the file names them by patterns: the query's columns decide, once, in the plan."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from retraining.core.errors import PlanError
from retraining.core.spec.messages import explain
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.yaml_file import SpecText


def resolve_patterns(spec: ModelSpec, columns: Sequence[str]) -> tuple[ModelSpec, dict[str, tuple[str, ...]]]:
    """Return a spec that names each of its features, and which columns each pattern gave.

    Args:
        spec: As in the file.
        columns: Of its query, in its order.

    Raises:
        PlanError: A pattern names no column, or the features are none that a model can have.
    """
    if not spec.patterns:
        return spec, {}
    resolved, matched = spec.resolve(columns)
    for pattern, found in matched.items():
        if not found:
            raise PlanError(
                f"{spec.name}.yaml, features",
                f"names {pattern!r}, which no column of {spec.data.source_name} has that is free",
                f"a pattern of these: {', '.join(columns)}",
                "Correct it, or remove it. Key, event time, label and what stands there by its name are taken",
            )
    try:
        return ModelSpec.model_validate(resolved), matched
    except ValidationError as error:
        finding = explain(error, SpecText(f"{spec.name} with the columns of its query", resolved, {}), ModelSpec)
        raise PlanError(
            finding.where, finding.found, finding.expected, finding.way_out or "Correct features or the query"
        ) from error

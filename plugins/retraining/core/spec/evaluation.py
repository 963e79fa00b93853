"""The section `evaluation` of a model's YAML: how a model is judged, and when it replaces the champion."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from retraining.core.spec.section import ColumnName, Count, Section

Metric = Literal["auc", "accuracy", "log_loss", "brier"]
HIGHER_IS_BETTER: frozenset[str] = frozenset({"auc", "accuracy"})


class Promote(Section):
    """When a challenger replaces the champion.

    The lower end of the gain's interval at `confidence` must lie strictly above `min_gain` (negative: that much
    loss is tolerated). No slice of at least `min_slice_examples` rows may lose more than `max_slice_loss`.
    """

    min_gain: Annotated[float, Field(ge=-1, le=1)] = 0.0
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    max_slice_loss: Annotated[float, Field(ge=0, le=1000)] = 0.03
    min_examples: Count = 1000
    min_slice_examples: Count = 200


class Evaluation(Section):
    """How a model is judged. The floor is `min_value` where higher is better, `max_value` where lower is."""

    metric: Metric = "auc"
    min_value: float | None = None
    max_value: float | None = None
    slices: Annotated[tuple[ColumnName, ...], Field(max_length=100)] = ()
    promote: Promote = Field(default_factory=Promote)

    @model_validator(mode="after")
    def _has_its_floor(self) -> Self:
        needed, other = ("min_value", "max_value") if self.metric in HIGHER_IS_BETTER else ("max_value", "min_value")
        if getattr(self, needed) is None or getattr(self, other) is not None:
            raise ValueError(f"metric {self.metric} needs {needed}, and no {other}")
        return self

    @property
    def floor(self) -> float:
        """The bound that must be reached: a lower one where higher is better, else an upper one."""
        value = self.min_value if self.min_value is not None else self.max_value
        assert value is not None  # noqa: S101 - the validator above made sure; this tells the type checker
        return value

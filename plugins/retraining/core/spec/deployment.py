"""The section `deployment` of a model's YAML: where the champion serves."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from retraining.core.spec.cluster import MachineType
from retraining.core.spec.section import Section


class Deployment(Section):
    """Where the champion serves. `canary_percent` other than [100] is refused in a file: steps are not built yet."""

    machine: MachineType = "n1-standard-2"
    min_replicas: Annotated[int, Field(ge=1, le=1000)] = 1
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = 1
    canary_percent: tuple[Annotated[int, Field(ge=1, le=100)], ...] = (100,)
    approval: bool = False

    @model_validator(mode="after")
    def _ends_with_all(self) -> Self:
        steps = list(self.canary_percent)
        if not steps or steps[-1] != 100 or steps != sorted(set(steps)):
            raise ValueError(f"canary_percent must rise and end with 100, got {steps}")
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas {self.max_replicas} is below min_replicas {self.min_replicas}")
        return self

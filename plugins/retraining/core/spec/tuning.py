"""The section `tuning` of a model's YAML: when hyperparameters are searched, over what, and with how many trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.metrics import HIGHER_IS_BETTER, METRICS
from retraining.core.spec.features import AuxiliaryLabel, Label, deciding_metrics
from retraining.core.spec.section import Section

HyperparameterName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Trials = Annotated[int, Field(ge=1, le=1000)]
"""More of them is a slip of the pen, not a search."""
Search = Literal["auto", "always", "never"]
Goal = Literal["maximize", "minimize"]

_METRICS = ("loss", *METRICS)


def reported_metrics(label: Label, auxiliary: Sequence[AuxiliaryLabel] = ()) -> list[str]:
    """Return every metric that our trainer can report of an epoch; `ModelSpec` holds `metric` to it.

    They are those that may decide in the evaluation, and the loss, which is `log_loss` where there are classes.
    """
    others = [f"val_{item.name}_{metric}" for item in auxiliary for metric in _metrics_of(item)]
    return [*(f"val_{metric}" for metric in _metrics_of(label)), *others, "loss"]


def _metrics_of(label: Label | AuxiliaryLabel) -> list[str]:
    return [
        "loss",
        *(
            metric
            for metric in deciding_metrics(label)
            if not METRICS[metric].is_loss and not METRICS[metric].of_groups
        ),
    ]


def goal_of(metric: str) -> Goal | None:
    """Return whether a metric of our trainer is to be low or high; None: it is of no kind that is known."""
    if metric != "loss" and not metric.startswith("val_"):
        return None
    name = next((name for name in _METRICS if metric == name or metric.endswith(f"_{name}")), None)
    return None if name is None else "maximize" if name in HIGHER_IS_BETTER else "minimize"


class Condition(Section):
    """A parameter exists only in trials in which another one, categorical or discrete, has one of the values."""

    parameter: HyperparameterName
    """The other one, of kind `categorical` or `discrete`."""
    values: Annotated[tuple[float | str, ...], Field(min_length=1)]
    """Those of its values with which this parameter exists."""


class TuningParameter(Section):
    """One searched hyperparameter: bounds for double and integer, values for categorical and discrete."""

    name: HyperparameterName
    """A hyperparameter that stands in `training.hyperparameters`, or one of the architecture's [own
    space](tuning.md#without-parameters)."""
    kind: Literal["double", "integer", "categorical", "discrete"]
    """Bounds belong to `double` and `integer`, values to `categorical` and `discrete`."""
    min: float | None = None
    """Least value, of `double` and `integer`."""
    max: float | None = None
    """Greatest value, of `double` and `integer`."""
    scale: Literal["linear", "log", "reverse_log"] = "linear"
    """How values are spread between the bounds."""
    values: Annotated[tuple[float | str, ...], Field(max_length=1000)] = ()
    """All values, of `categorical` and `discrete`."""
    when: Condition | None = None
    """Only in trials in which another parameter has one of some values."""

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        bounded = self.kind in ("double", "integer")
        if bounded and (self.min is None or self.max is None or not self.min < self.max or self.values):
            raise ValueError(f"a parameter of kind {self.kind} needs min below max, and no values")
        if not bounded and (not self.values or self.min is not None or self.max is not None):
            raise ValueError(f"a parameter of kind {self.kind} needs values, and no min or max")
        if self.scale != "linear" and self.kind == "categorical":
            raise ValueError("a categorical parameter has no scale: its values have no order")
        if self.scale != "linear" and min(self.numbers, default=1.0) <= 0:
            raise ValueError(f"scale {self.scale} needs min above 0, and so every value")
        if self.kind == "integer" and (self.min != int(self.min or 0) or self.max != int(self.max or 0)):
            raise ValueError(f"an integer's bounds are whole numbers, got {self.min} and {self.max}")
        if self.kind == "discrete" and list(self.values) != sorted(set(self.numbers)):
            raise ValueError(f"discrete values are rising numbers, each once, got {list(self.values)}")
        if self.kind == "categorical" and not all(isinstance(value, str) for value in self.values):
            raise ValueError(f"categorical values are text (write numbers in quotes), got {list(self.values)}")
        return self

    @property
    def numbers(self) -> tuple[float, ...]:
        """Bounds, or values that are numbers."""
        if self.kind in ("double", "integer"):
            return (self.min or 0.0, self.max or 0.0)
        return tuple(value for value in self.values if not isinstance(value, str))


class Tuning(Section):
    """When hyperparameters are searched, with how many trials, over what."""

    search: Search = "auto"
    """`auto`: by age and the champion's quality. The Param `tune` decides for one run."""
    every_days: Annotated[int, Field(ge=1, le=3650)] = 7
    """Days: a study this old is followed by another."""
    max_trials: Trials = 12
    """Trials of a study."""
    parallel_trials: Trials = 3
    """Trials at a time."""
    recall: Annotated[int, Field(ge=0, le=20)] = 3
    """How many of the trials repeat the best ones of earlier studies, so that a study starts from what is known."""
    max_failed_trials: Trials = 3
    """How many failed trials of the search fail the study; repeated ones may all fail."""
    metric: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")] = "val_auc"
    """By which trials are compared, on the validation split: `val_loss`, or `val_<metric>` of each that
    `evaluation.metric` can be. Of classes `val_loss` is the `log_loss`; of an auxiliary label they are
    `val_<name>_<metric>`; `loss` is the training's, all labels together. An image of your own
    (`training.runtime.image`) may report others."""
    goal: Goal = "maximize"
    """Follows from the metric: `minimize` for losses, `mae` and `rmse`, else `maximize`; another is refused. Required
    for a metric of your own image."""
    algorithm: Literal["bayesian", "grid", "random"] = "bayesian"
    """How Vizier chooses the trials."""
    early_stopping: Literal["none", "median", "decay"] = "median"
    """How Vizier ends trials that lag behind."""
    spot: bool = True
    """Whether trials are on spot machines, whatever the final training uses."""
    parameters: Annotated[tuple[TuningParameter, ...], Field(min_length=1, max_length=100)] = ()
    """Hyperparameters that are searched. Required, but with `boosted_trees` and `random_forest`: without it the
    architecture's [own space](tuning.md#without-parameters)."""

    @model_validator(mode="before")
    @classmethod
    def _goal_of_metric(cls, values: Any) -> Any:  # noqa: ANN401 - what the file has, before it is checked
        if not isinstance(values, Mapping) or "goal" in values:
            return values
        goal = goal_of(str(values.get("metric", cls.model_fields["metric"].default)))
        return {**values, "goal": goal} if goal else values

    @model_validator(mode="after")
    def _goal_fits_metric(self) -> Self:
        expected = goal_of(self.metric) or self.goal
        if self.goal != expected:
            raise ValueError(
                f"goal is {self.goal}, but metric {self.metric} is better where it is "
                f"{'lower' if expected == 'minimize' else 'higher'}; expected {expected}. Remove the key"
            )
        return self

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        known = {parameter.name: parameter for parameter in self.parameters}
        if len(known) != len(self.parameters):
            raise ValueError("a parameter stands twice")
        for parameter in self.parameters:
            if parameter.when is None:
                continue
            parent = known.get(parameter.when.parameter)
            if parent is None or parent is parameter or parent.kind not in ("categorical", "discrete"):
                raise ValueError(
                    f"{parameter.name}.when names {parameter.when.parameter!r}; expected another parameter of kind "
                    "categorical or discrete"
                )
            if parent.when is not None:
                raise ValueError(f"{parameter.name} depends on {parent.name}, which depends on another: one level only")
            if missing := [value for value in parameter.when.values if value not in parent.values]:
                raise ValueError(f"{parameter.name}.when has {missing}, which {parent.name} never is")
        if self.parallel_trials > self.max_trials:
            raise ValueError(f"parallel_trials {self.parallel_trials} is more than max_trials {self.max_trials}")
        if self.recall >= self.max_trials:
            raise ValueError(f"recall {self.recall} leaves no trial of max_trials {self.max_trials} to search with")
        if self.algorithm == "grid" and any(p.kind == "double" for p in self.parameters):
            raise ValueError("a grid needs values: give the double parameters as discrete ones")
        return self

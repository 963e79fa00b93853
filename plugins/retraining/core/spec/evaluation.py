"""The section `evaluation` of a model's YAML: how a model is judged, and when it replaces the champion."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from retraining.core.metrics import HIGHER_IS_BETTER, IN_UNIT, METRICS, Metric
from retraining.core.spec.costs import ErrorCosts
from retraining.core.spec.section import ColumnName, Count, Section

_RULE = r"^(max_f1|(recall|precision) ?>= ?(0?\.[0-9]{0,9}[1-9]|1|1\.0))$"
_EXPECTED = (
    "expected a number between 0 and 1, max_f1, recall>=0.9, precision>=0.8 or {false_positive: …, false_negative: …}"
)

RuleText = Annotated[str, StringConstraints(pattern=_RULE)]
RuleName = Literal["recall", "precision", "max_f1"]


Threshold = Annotated[float, Field(gt=0, lt=1)] | RuleText | ErrorCosts
"""A text is `max_f1`, or the least recall or precision that is wanted; of costs the least over the validation split."""


def require_rule(value: object) -> object:
    """Return what the file gives.

    Raises:
        ValueError: A text that is no rule.
    """
    if isinstance(value, str) and not re.fullmatch(_RULE, value):
        raise ValueError(f"{value!r} is no rule; {_EXPECTED}")
    return value


def read_rule(text: RuleText) -> tuple[RuleName, float | None]:
    """Return a rule's name and the least recall or precision that it asks for."""
    name, _, least = text.replace(" ", "").partition(">=")
    names: dict[str, RuleName] = {"recall": "recall", "precision": "precision", "max_f1": "max_f1"}
    return names[name], float(least) if least else None


OWN_FUNCTION = r"^([A-Za-z0-9_][A-Za-z0-9_/-]*\.py:[A-Za-z_][A-Za-z0-9_]*|[A-Za-z_][A-Za-z0-9_.-]*)$"
BaselineName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
CONSTANT_BASELINES = ("mean", "median")


class Promote(Section):
    """When a challenger replaces the champion."""

    min_gain: Annotated[float, Field(ge=-(10**12), le=10**12)] = 0.0
    """The lower end of the gain's interval must lie strictly above; negative: that much loss is tolerated."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    """Of the gain's interval (paired bootstrap of 500 samples)."""
    max_slice_loss: Annotated[float, Field(ge=0, le=10**12)] = 0.03
    """No slice may surely lose more (at `confidence`, with Holm's correction over all slices). Must be written where
    the [metric](#metrics) has a unit of its own and there are slices."""
    max_loss_from_best: Annotated[float | None, Field(ge=0, le=10**12, exclude_if=lambda value: value is None)] = None
    """A challenger that surely loses more against the [best champion of late](evaluation.md#the-best-champion-of-late)
    is stopped (at `confidence`), in the metric. Default: 0.01 where higher is better, else 1 % of that champion's
    value."""
    min_examples: Count = 1000
    """Test rows needed to judge at all."""
    min_slice_examples: Count = 200
    """Test rows of a slice: smaller ones are not judged, nor those with [too few of a
    class](evaluation.md#enough-evidence)."""
    below_reference: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Promote also a model that surely loses to a [reference line](evaluation.md#reference-lines)."""


class ImportanceRule(Section):
    """What is spent on [feature importance](evaluation.md#feature-importance)."""

    rows: Annotated[int, Field(ge=20, le=100_000)] = 2000
    """At most so many test rows, drawn at random, take values of other rows."""
    repeats: Annotated[int, Field(ge=1, le=20)] = 3
    """How often each feature's values change rows."""
    max_seconds: Annotated[int, Field(ge=1, le=3600)] = 120
    """What is not measured by then is left out, and the run's page says so."""


class OwnGate(Section):
    """A function of one's own that [a version must pass](evaluation.md#your-own-gates)."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,60}$")]
    """What the decision calls it, `own.` before it."""
    function: Annotated[str, StringConstraints(max_length=300, pattern=OWN_FUNCTION)]
    """`file.py:name` of a function in a file of the folder `gates` in `include`, or the name of an entry point
    `retraining.gates` of an installed package."""
    severity: Literal["block", "warn"] = "block"
    """Whether a version that does not pass is rejected, or promoted with a warning."""


class Evaluation(Section):
    """How a model is judged. The floor is `min_value` where higher is better, `max_value` where lower is."""

    metric: Metric = "auc"
    """One of the [metrics](#metrics) of the label's kind; a regression must name one."""
    min_value: float | None = None
    """Floor; needed where higher is better."""
    max_value: float | None = None
    """Ceiling; needed where lower is better."""
    threshold: Threshold | None = None
    """From which score on a binary answer is a yes; it decides nothing. A number, or how it is [chosen on the
    validation split](evaluation.md#threshold): `recall>=0.9`, `precision>=0.8`, `max_f1`, or what the two errors cost.
    Precision, recall, F1 and the confusion there are measured for both models."""
    slices: Annotated[tuple[ColumnName | tuple[ColumnName, ColumnName], ...], Field(max_length=100)] = ()
    """Features by whose values quality is also measured; two in brackets are crossed: `[carrier, [carrier,
    origin]]`."""
    group: ColumnName | None = None
    """Column of the query whose rows with one value belong together, as `tailnum`. They are resampled together, because
    they are not independent; a row without a value stands for itself."""
    by_day: Annotated[bool, Field(exclude_if=lambda value: value)] = True
    """Whether the rows of a test day are resampled together, from [14 test days](evaluation.md#days) on. A `group`
    takes the day's place; without a time there are no days."""
    baselines: Annotated[dict[BaselineName, ColumnName], Field(max_length=20)] = Field(default_factory=dict)
    """Further answers of a regression that need no model, by name: numeric columns of the query. As
    `same_hour_last_week: departures_last_week`."""
    reference: Annotated[bool, Field(exclude_if=lambda value: value)] = True
    """Hold each model against [reference lines](evaluation.md#reference-lines): a linear model and small boosted trees,
    trained by the evaluation job in at most a minute."""
    promote: Promote = Field(default_factory=Promote)
    importance: Annotated[ImportanceRule | None, Field(exclude_if=lambda value: value == ImportanceRule())] = (
        ImportanceRule()
    )
    """How much each model relies on [each feature](evaluation.md#feature-importance), measured on test rows by the
    evaluation job; `null`: it is not measured."""
    gates: Annotated[tuple[OwnGate, ...], Field(max_length=20, exclude_if=lambda value: not value)] = ()
    """[Gates of one's own](evaluation.md#your-own-gates), in Python."""

    @field_validator("threshold", mode="before")
    @classmethod
    def _rule_is_known(cls, value: object) -> object:
        return require_rule(value)

    @model_validator(mode="after")
    def _has_its_floor(self) -> Self:
        needed, other = ("min_value", "max_value") if self.metric in HIGHER_IS_BETTER else ("max_value", "min_value")
        if getattr(self, needed) is None or getattr(self, other) is not None:
            raise ValueError(f"metric {self.metric} needs {needed}, and no {other}")
        return self

    @model_validator(mode="after")
    def _amounts_fit_the_metric(self) -> Self:
        if self.metric not in IN_UNIT and abs(self.promote.min_gain) > 1:
            raise ValueError(f"promote.min_gain {self.promote.min_gain:g} of {self.metric}: expected -1 to 1")
        if self.metric in IN_UNIT and self.slices and "max_slice_loss" not in self.promote.model_fields_set:
            raise ValueError(
                f"metric {self.metric} is in {METRICS[self.metric].unit}, of which promote.max_slice_loss has no "
                "default: say how much a slice may lose"
            )
        if taken := [name for name in self.baselines if name in CONSTANT_BASELINES]:
            raise ValueError(f"baselines names {taken[0]!r}, which every regression is held against: remove it")
        return self

    @model_validator(mode="after")
    def _slices_are_distinct(self) -> Self:
        for first, second in self.crossed_slices:
            if first == second:
                raise ValueError(f"slices crosses {first!r} with itself: name another column")
        if twice := [name for name in self.slice_names if self.slice_names.count(name) > 1]:
            raise ValueError(f"slices names {twice[0]!r} twice: once is enough")
        return self

    @model_validator(mode="after")
    def _gates_are_told_apart(self) -> Self:
        names = [gate.name for gate in self.gates]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"gates has the name {twice!r} twice: rename one of them")
        return self

    @property
    def needs_validation(self) -> bool:
        """Whether the threshold is chosen on the validation split."""
        return self.threshold is not None and not isinstance(self.threshold, float)

    @property
    def plain_slices(self) -> tuple[str, ...]:
        """Those of one column."""
        return tuple(item for item in self.slices if isinstance(item, str))

    @property
    def crossed_slices(self) -> tuple[tuple[str, str], ...]:
        """Those of two columns at once."""
        return tuple(item for item in self.slices if not isinstance(item, str))

    @property
    def slice_columns(self) -> tuple[str, ...]:
        """Every column that a slice is cut by, once."""
        return tuple(dict.fromkeys([*self.plain_slices, *(name for pair in self.crossed_slices for name in pair)]))

    @property
    def slice_names(self) -> list[str]:
        """What the slices are called."""
        return [item if isinstance(item, str) else " & ".join(item) for item in self.slices]

    @property
    def floor(self) -> float:
        """The bound that must be reached: a lower one where higher is better, else an upper one."""
        value = self.min_value if self.min_value is not None else self.max_value
        assert value is not None  # noqa: S101 - the validator above made sure; this tells the type checker
        return value

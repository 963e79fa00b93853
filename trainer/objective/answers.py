"""The form of a model's answers: what tells whether two models answer the same question."""

from __future__ import annotations

from dataclasses import dataclass

SCORE = "score"
SCORES = "scores"
PREDICTION = "prediction"
QUANTILES = "quantiles"
OUTPUTS = (SCORE, SCORES, PREDICTION, QUANTILES)
CLASS = "class"
"""A further output, of labels whose classes have names. No column has this name."""
_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a model answers with.

    Attributes:
        output: Name in the signature: `score` [batch], the probability of 1; `scores` [batch, classes], probabilities;
            `prediction` [batch], a number; `quantiles` [batch, quantiles], numbers that do not fall.
        classes: How many; None: two by one score, or a number.
        quantiles: Which, of `quantiles`.
        names: Of the classes, in the order of their numbers; empty: they have none. With them there is a second output
            `class` [batch], the name of the likeliest class, of two that of 1 where its probability is 0.5 or more.
    """

    output: str
    classes: int | None = None
    quantiles: tuple[float, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """Say it in a sentence."""
        if self.output == PREDICTION:
            return "a number"
        if self.output == QUANTILES:
            return f"quantiles {', '.join(f'{level:g}' for level in self.quantiles)}"
        named = f" in the order {', '.join(map(repr, self.names[:_SHOWN]))}" if self.names else ""
        named += ", …" if len(self.names) > _SHOWN else ""
        return f"{2 if self.classes is None else self.classes} classes{named}"

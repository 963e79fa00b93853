"""The form of a model's answers: what tells whether two models answer the same question."""

from __future__ import annotations

from dataclasses import dataclass

SCORE = "score"
SCORES = "scores"
PREDICTION = "prediction"
QUANTILES = "quantiles"
OUTPUTS = (SCORE, SCORES, PREDICTION, QUANTILES)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a model answers with.

    Attributes:
        output: Name in the signature: `score` [batch], the probability of 1; `scores` [batch, classes], probabilities;
            `prediction` [batch], a number; `quantiles` [batch, quantiles], numbers that do not fall.
        classes: How many; None: two by one score, or a number.
        quantiles: Which, of `quantiles`.
    """

    output: str
    classes: int | None = None
    quantiles: tuple[float, ...] = ()

    @property
    def description(self) -> str:
        """Say it in a sentence."""
        if self.output == PREDICTION:
            return "a number"
        if self.output == QUANTILES:
            return f"quantiles {', '.join(f'{level:g}' for level in self.quantiles)}"
        return f"{2 if self.classes is None else self.classes} classes"

"""A model's ML Test Score, as a part of documents: 28 tests in four sections, what satisfies each, and what would."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from retraining.core.documents.document import Amount, Count, Number, RunKey, Text, UtcTime, Value
from retraining.core.spec.reviews import TestName

RubricSection = Literal["data", "model", "infrastructure", "monitoring"]
Needs = Literal["file", "run", "monitor", "person"]
"""Who can satisfy a test: a key of the model's file, a further run, the monitor's next runs, or a person alone."""
Points = Annotated[float, Field(ge=0, le=1, multiple_of=0.5)]

_MEANINGS = (
    (0.0, "research, and no product yet"),
    (1.0, "not untested, and yet large gaps are likely"),
    (2.0, "the first steps of a product: more is worth doing"),
    (3.0, "tested well enough, and more of it could be made by itself"),
    (5.0, "strongly tested and watched, fit for what matters"),
    (7.0, "tested and watched exceptionally well"),
)
"""By the most points of the final score."""


class ScoredTest(Value):
    """A test: 1 point where it is made by itself again and again, 0.5 where it was made by hand and written down."""

    name: TestName
    section: RubricSection
    title: Text
    points: Points
    satisfied_by: Text | None
    """null: nothing satisfies it."""
    would_be_satisfied_by: Text | None
    """What brings the whole point; null: it has it."""
    needs: Needs | None
    """Who can do that; null: it has the whole point."""
    where: Text | None = None
    """Where a person wrote the result down; null: it was not made by hand."""


class OlderModel(Value):
    """A champion of older data beside a challenger, on the same test rows: challenger minus champion in a metric."""

    days: Annotated[Number, Field(gt=0)]
    """How much older its data are."""
    metric: Text
    mean: Number
    low: Number
    high: Number


class AskedModel(Value):
    """What came of asking the stored model as an endpoint does."""

    rows: Count
    """Requests of one row whose answers were held against the comparison's."""
    strange: Count
    """Requests with values that are missing or that no example has."""
    problem: str = ""
    """What was wrong, or why nothing was asked; empty: all was answered."""


class RunFacts(Value):
    """What the newest live run with an evaluation left, as far as tests ask for it."""

    run_key: RunKey
    registered: bool = False
    """Whether it came to a version."""
    ended: bool = False
    """Whether it went through all tasks, whatever it decided."""
    seconds: Amount | None = None
    """From its start to its end; null: it has not ended."""
    findings: tuple[Text, ...] = ()
    """Names of the checks of the data that found something."""
    features_measured: Count = 0
    """Features whose importance was measured."""
    harmful: tuple[Text, ...] = ()
    """Those of them whose values surely make the answers worse."""
    lines: dict[Text, bool] = Field(default_factory=dict)
    """By reference line that was judged, whether it is surely better than the model."""
    lines_not_judged: str = ""
    """Why there is none; empty: nothing was said."""
    slices: Count = 0
    """Slices that were measured."""
    older: OlderModel | None = None
    """The champion beside it."""
    asked: AskedModel | None = None
    """null: an earlier release did not ask the stored model."""
    worst: Count = 0
    """Test examples with the largest errors that were kept."""
    shows_values: bool = False
    """Whether they are there with their features' values."""
    trials: Count = 0
    """Of the study that it made; 0: it made none."""


class Readiness(Value):
    """All 28 tests of a model, as of a time."""

    as_of: UtcTime
    run_key: Text | None
    """The newest run whose documents were read; null: there was none."""
    tests: Annotated[tuple[ScoredTest, ...], Field(min_length=28, max_length=28)]

    @property
    def sections(self) -> dict[RubricSection, float]:
        """Return the points of each section, at most 7."""
        return {
            section: sum(test.points for test in self.tests if test.section == section)
            for section in get_args(RubricSection)
        }

    @property
    def points(self) -> float:
        """Return the score: the least of the sections."""
        return min(self.sections.values())

    @property
    def meaning(self) -> str:
        """Return what the paper takes such a score for."""
        return next(meaning for most, meaning in _MEANINGS if self.points <= most)

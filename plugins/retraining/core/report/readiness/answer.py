"""What a test of the ML Test Score comes to: a whole point, half a point, or none with the way to it."""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.documents.readiness import Needs
from retraining.core.program import command_line
from retraining.core.spec.model import ModelSpec

WHOLE, HALF, NONE = 1.0, 0.5, 0.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A test's answer; `way` is the way to the whole point, and empty where it is reached."""

    points: float
    satisfied_by: str = ""
    way: str = ""
    needs: Needs | None = None


def met(satisfied_by: str) -> Answer:
    """Return the answer of a test that is made by itself, again and again."""
    return Answer(points=WHOLE, satisfied_by=satisfied_by)


def by_hand(satisfied_by: str, way: str, needs: Needs) -> Answer:
    """Return the answer of a test that was made by hand, with its result written down."""
    return Answer(points=HALF, satisfied_by=satisfied_by, way=way, needs=needs)


def unmet(way: str, needs: Needs) -> Answer:
    """Return the answer of a test that nothing satisfies."""
    return Answer(points=NONE, way=way, needs=needs)


def a_run(spec: ModelSpec, what: str) -> Answer:
    """Return the answer of a test that a run satisfies, of a model of which none is stored."""
    return unmet(f"A run ({command_line('run', spec.name)}): {what}", "run")


def judged_by_a_person(what: str, test: str) -> Answer:
    """Return the answer of a test that only a person can make."""
    return unmet(
        f"{what}. Write the result down and name it in the file: reviews: [{{test: {test}, by: …, day: …, where: …}}] "
        "(half a point for a year; no machine makes this test)",
        "person",
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 feature`, `13 features`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

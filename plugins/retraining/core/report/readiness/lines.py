"""A model's ML Test Score in lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.documents.readiness import Readiness


def list_score(model: str, score: Readiness) -> Iterator[str]:
    """Yield the score, and by section each test with what satisfies it and what would."""
    read = f"run {score.run_key}" if score.run_key else "no run with an evaluation"
    yield f"{model}: ML Test Score {score.points:g} of 7, the least of its sections: {score.meaning} ({read})"
    for section, points in score.sections.items():
        yield f"{section} {points:g} of 7"
        for test in score.tests:
            if test.section != section:
                continue
            yield f"  {test.points:<3g} {test.name}: {test.title}"
            if test.satisfied_by:
                where = f", {test.where}" if test.where else ""
                yield f"        satisfied by: {test.satisfied_by}{where}"
            if test.would_be_satisfied_by:
                yield f"        would be by ({test.needs}): {test.would_be_satisfied_by}"

"""The scores that docs/ml-test-score.md prints, of the shipped models and of what `make new-model` writes."""

from __future__ import annotations

import dataclasses
import re
from datetime import date
from pathlib import Path
from typing import get_args

import pytest

from retraining.core import settings
from retraining.core.documents.readiness import _MEANINGS, Readiness, RubricSection
from retraining.core.report.readiness.facts import Facts
from retraining.core.report.readiness.model import missing_keys
from retraining.core.report.readiness.score import TESTS, score_model
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import find_specs
from tests.core.data.test_new_model import profile, write
from tests.core.report.readiness.test_score import RUN, STORED

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "ml-test-score.md").read_text(encoding="utf-8")
SHIPPED = find_specs(settings.include_path())
COMPARED = {"numeric", "categorical"}


def both(spec: ModelSpec) -> tuple[Readiness, Readiness]:
    """The score by the file alone, and with every run and look that could still come."""
    looks, live, run = dict(STORED.looks), STORED.live, RUN
    if not any(feature.kind in COMPARED for feature in spec.features):  # images have no distance and no reference line
        del looks["skew"], looks["drift"]
        run = run.model_copy(update={"lines": {}})
    if missing_keys(spec):  # no label finds its answer
        del looks["performance"]
        live = ()
    if spec.tuning is None:
        run = run.model_copy(update={"trials": 0})
    best = dataclasses.replace(STORED, recipients=0, looks=looks, live=live, run=run)
    return score_model(spec, Facts(day=date(2026, 11, 27))), score_model(spec, best)


def row_of(name: str, spec: ModelSpec) -> str:
    """The row of the page."""
    alone, most = both(spec)
    cells = [f"{alone.sections[section]:g} → {most.sections[section]:g}" for section in get_args(RubricSection)]
    return f"| `{name}` | {' | '.join(cells)} | {alone.points:g} → {most.points:g} |"


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_the_page_has_the_score_of_each_shipped_model(path: Path) -> None:
    """As the command prints it."""
    assert row_of(path.stem, load_spec(path)) in PAGE


def test_the_page_has_the_score_of_a_first_file(tmp_path: Path) -> None:
    """Of a table of numbers and categories with a time."""
    path = tmp_path / "late.yaml"
    path.write_text(write(profile()).yaml, encoding="utf-8")
    assert row_of("make new-model", load_spec(path)) in PAGE


def test_the_page_has_every_test_and_meaning() -> None:
    """In the order of the table, under the section."""
    assert re.findall(r"^\| `([a-z_]+)` \| (data|model|infrastructure|monitoring) \|", PAGE, re.MULTILINE) == [
        (name, test.section) for name, test in TESTS.items()
    ]
    assert all(f"| {meaning} |" in PAGE for _, meaning in _MEANINGS)

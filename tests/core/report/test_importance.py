"""Which features the models rely on, on the run's page and in the model card."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import Evaluation
from retraining.core.report.importance import importance_table, most_important
from retraining.core.report.page import render
from tests.support.contracts import EXAMPLES, STORED

ENOUGH = {"units": "positives", "count": 200, "effective": 200.0, "needed": 20}


def rise(mean: float, half: float = 0.01) -> dict[str, float]:
    return {"mean": mean, "low": mean - half, "high": mean + half}


def item(feature: str, challenger: float | None, champion: float | None = None, **changes: Any) -> dict[str, Any]:
    both = challenger is not None and champion is not None
    return {
        "feature": feature,
        "challenger": None if challenger is None else rise(challenger),
        "champion": None if champion is None else rise(champion),
        "change": rise(challenger - champion, 0.005) if both else None,
        **changes,
    }


def importance(*features: dict[str, Any], **changes: Any) -> dict[str, Any]:
    found = {"loss": "log_loss", "rows": 2000, "repeats": 3, "confidence": 0.95, "drawn_by": "days"}
    return {**found, "evidence": ENOUGH, "features": list(features), "not_judged": None, **changes}


@pytest.fixture
def documents() -> dict[str, dict[str, Any]]:
    """A plan and a judged run."""
    names = (("plan", "scheduled"), ("evaluation", "duel"))
    return {kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text()) for kind, what in names}


def page_with(documents: dict[str, dict[str, Any]], found: dict[str, Any] | None) -> str:
    documents["evaluation"]["importance"] = found
    return render(documents)


def test_the_page_has_rises_bars_and_the_change(documents) -> None:
    found = importance(item("distance", 0.2, 0.15), item("carrier", 0.05), item("old", None, 0.3))
    page = page_with(documents, found)
    assert "By how much the log loss on 2,000 test rows rises" in page
    assert "Mean of 3 exchanges, with 95 % intervals that take test days as independent" in page
    assert "Of two features that say the same each shows little" in page
    assert "0.2000<small>0.1900 to 0.2100</small>" in page
    assert "+0.0500<small>+0.0450 to +0.0550</small>" in page
    assert 'style="width: 100.0%"' in page
    assert 'style="width: 25.0%"' in page
    assert page.index("distance</td>") < page.index("carrier</td>") < page.index("old</td>")


def test_without_a_champion_there_are_no_columns_of_it(documents) -> None:
    documents["evaluation"] |= {"champion": None, "difference": None}
    page = page_with(documents, importance(item("distance", 0.2)))
    table = page[page.index("<h3>Feature importance") :].split("</table>")[0]
    assert "Champion" not in table
    assert "Change" not in table


def test_names_and_reasons_are_escaped(documents) -> None:
    attack = "<script>alert('x')</script>"
    page = page_with(documents, importance(item(attack, None, not_judged=attack), not_judged=attack))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 3


def test_too_little_evidence_says_what_is_missing(documents) -> None:
    short = {"units": "positives", "count": 7, "effective": 7.0, "needed": 20}
    page = page_with(documents, importance(rows=0, repeats=0, evidence=short))
    assert "Not judged: among the rows drawn there are 7 positives, 20 are needed." in page


def test_what_there_was_no_time_for_is_said(documents) -> None:
    page = page_with(documents, importance(item("distance", 0.2), not_judged="120 seconds were over"))
    assert "Not judged in full: 120 seconds were over." in page


def test_many_features_are_folded(documents) -> None:
    page = page_with(documents, importance(*(item(f"feature_{place:02d}", 1 / (1 + place)) for place in range(40))))
    assert "<summary>25 more</summary>" in page
    assert "feature_39" in page


@pytest.mark.parametrize("means", [(0.0, 0.0), (-0.02, -0.03)])
def test_where_nothing_matters_there_is_no_bar(documents, means) -> None:
    documents["evaluation"]["importance"] = importance(*(item(f"x{place}", mean) for place, mean in enumerate(means)))
    table = importance_table(Evaluation.parse(json.dumps(documents["evaluation"])))
    assert [row.width for row in table.features] == [0, 0]


@pytest.mark.parametrize("path", [EXAMPLES / "evaluation__duel.json", STORED / "evaluation.json"], ids=lambda p: p.stem)
def test_an_evaluation_without_it_has_no_such_section(documents, path) -> None:
    assert importance_table(Evaluation.parse(path.read_bytes())) is None
    assert "Feature importance" not in render(documents)


def test_the_card_names_what_is_surely_relied_on() -> None:
    found = importance(*(item(f"x{place}", 0.1 - 0.016 * place) for place in range(8)))
    values = json.loads((EXAMPLES / "evaluation__duel.json").read_text()) | {"importance": found}
    stored = Evaluation.parse(json.dumps(values)).importance
    assert most_important(stored) == ("x0", "x1", "x2", "x3", "x4")
    assert most_important(stored, 20) == ("x0", "x1", "x2", "x3", "x4", "x5")
    assert most_important(None) == ()

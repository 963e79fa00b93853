"""The run's page: from documents alone, the same bytes each time, everything escaped, whatever is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import KINDS
from retraining.core.errors import ContractError
from retraining.core.report import render

EXAMPLES = Path(__file__).resolve().parents[2] / "include" / "contracts" / "examples" / "valid"
WHOLE_RUN = {
    "plan": "scheduled",
    "snapshot": "one_changed",
    "statistics": "two_features",
    "checks": "passed",
    "manifest": "three_spans",
    "train_request": "wide_deep",
    "report": "first_attempt",
    "evaluate_request": "duel",
    "evaluation": "duel",
    "decision": "promote",
    "registration": "challenger",
    "deployment": "champion",
    "timings": "run",
}
ATTACK = "<script>alert('x')</script>"


@pytest.fixture
def documents() -> dict[str, dict[str, Any]]:
    """One document of every kind that the page shows."""
    return {kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text()) for kind, what in WHOLE_RUN.items()}


def test_same_documents_give_the_same_bytes(documents):
    """No clock and no order of a dictionary gets into the page."""
    assert render(documents) == render(dict(reversed(documents.items())))


def test_the_page_says_what_the_documents_say(documents):
    """Verdict, reason, metrics, gates and digests stand on it."""
    page = render(documents)
    assert documents["decision"]["words"].replace("'", "&#39;") in page
    assert f"{documents['evaluation']['champion']['metrics']['auc']:.4f}" in page
    assert KINDS["evaluation"].parse(json.dumps(documents["evaluation"])).digest()[:16] in page
    for gate in documents["decision"]["gates"]:
        assert gate["words"].replace("'", "&#39;") in page


def test_nothing_is_loaded_from_elsewhere(documents):
    """One file: no script, no style sheet, no picture from another address."""
    page = render(documents)
    assert not re.search(r"<(script|link|img|iframe)|@import|url\(", page)


@pytest.mark.parametrize("missing", [kind for kind in WHOLE_RUN if kind != "plan"])
def test_a_missing_document_is_said_not_hidden(documents, missing):
    """Whatever the run did not come to, the page is made; and a run with nothing but a plan says where it stopped."""
    del documents[missing]
    assert "not there" in render(documents)
    assert "Stopped at snapshot" in render({"plan": documents["plan"]})


def test_without_a_plan_there_is_no_page(documents):
    """The plan is the one document that a page cannot do without."""
    del documents["plan"]
    with pytest.raises(ContractError, match="a plan among them"):
        render(documents)


def test_other_documents_of_the_folder_are_left_out(documents):
    """The export's request lies in the same folder; the page does not show it."""
    asked = json.loads((EXAMPLES / "export_request__two_new_spans.json").read_text())
    assert render({**documents, "export_request": asked}) == render(documents)


def test_every_text_is_escaped(documents):
    """A text from a spec, a query's column or a trigger never becomes markup."""
    spread = 0
    for kind, values in list(documents.items()):
        for path in _texts(values):
            changed = json.loads(json.dumps(values))
            _set(changed, path, ATTACK)
            try:
                KINDS[kind].parse(json.dumps(changed))
            except ContractError:
                continue  # the contract itself refuses it
            spread += 1
            assert ATTACK not in render({**documents, kind: changed}), f"{kind}: {path}"
    assert spread > 40


def _texts(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, str):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in _texts(item, (*path, key))]


def _set(value: Any, path: tuple[Any, ...], text: str) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = text

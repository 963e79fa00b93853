"""The card of a version: from the run's documents, with what to mind."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from retraining.core.documents import KINDS, ModelCard
from retraining.core.planning.windows import NO_TIME
from retraining.core.promotion.model_cards import model_card
from tests.support.contracts import EXAMPLES

NAMES = (
    "plan__scheduled",
    "checks__passed",
    "manifest__three_spans",
    "report__first_attempt",
    "evaluation__duel",
    "decision__promote",
    "registration__challenger",
    "deployment__champion",
)


@pytest.fixture
def documents() -> dict[str, Any]:
    """What a card is made of, by kind."""
    return {
        name.split("__")[0]: KINDS[name.split("__")[0]].parse((EXAMPLES / f"{name}.json").read_bytes())
        for name in NAMES
    }


def card_of(documents: dict[str, Any], **changes: dict[str, Any]) -> ModelCard:
    changed = [document.model_copy(update=changes.get(kind, {})) for kind, document in documents.items()]
    return model_card(*changed)


def test_it_says_what_the_documents_say(documents):
    plan, report, evaluation = documents["plan"], documents["report"], documents["evaluation"]
    spec = plan.spec.model_copy(update={"licence": "Apache-2.0"})
    card = card_of(documents, plan={"spec": spec})
    assert (card.purpose, card.owner, card.licence) == (spec.description, spec.owner, "Apache-2.0")
    assert card.data.rows == {name: documents["manifest"].splits[name].rows for name in ("train", "validation", "test")}
    assert card.training.hyperparameters == report.hyperparameters
    assert (card.metrics, card.slices) == (evaluation.challenger.metrics, evaluation.challenger.slices)
    assert card.differences == evaluation.differences
    assert card.approval == documents["deployment"].approval
    assert card.spec_sha256 == plan.spec_sha256
    assert ModelCard.parse(card.to_bytes()) == card


def test_what_to_mind_is_the_limits_of_the_data_and_what_was_let_pass(documents):
    decision = documents["decision"]
    floor = decision.gates[0].model_copy(update={"passed": False, "message": "it is too weak"})
    card = card_of(
        documents,
        manifest={"quarantined": (date(2013, 11, 12),)},
        evaluation={"champion_skipped": "it reads another column"},
        decision={"gates": (floor, *decision.gates[1:])},
    )
    assert card.caveats == (
        "It has seen examples of 2013-11-09 to 2013-11-18 alone, as of 2013-11-20",
        "Days that the checks left out: 2013-11-12",
        "It was compared with no champion: it reads another column",
        f"Gate {floor.gate} failed: it is too weak",
    )


def test_examples_without_a_time_have_no_days(documents):
    """Inside, their two spans lie in 1970: nobody is to read that."""
    plan = documents["plan"]
    data = plan.spec.data.model_copy(update={"split": "hash", "event_time": None, "test_percent": 20})
    card = card_of(documents, plan={"spec": plan.spec.model_copy(update={"data": data}), "window": NO_TIME})
    assert card.caveats[0].endswith("2013-11-20, which have no time")
    assert "1970" not in "".join(card.caveats)

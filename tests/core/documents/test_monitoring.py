"""What the documents of the monitor refuse, beyond their schema."""

from __future__ import annotations

import json

import pytest

from retraining.core.documents import Ledger, Signals
from retraining.core.errors import ContractError
from tests.support.contracts import EXAMPLES, STORED


def test_a_signal_that_is_not_judged_says_because_of_what() -> None:
    """So that no page has an empty cell for it."""
    stored = json.loads((EXAMPLES / "signals__skew.json").read_text())
    stored["signals"][5]["because"] = None
    with pytest.raises(ContractError, match="says because of what"):
        Signals.parse(json.dumps(stored))


def test_a_row_of_an_earlier_release_has_its_outcome() -> None:
    """It said `decision` then."""
    stored = json.loads((STORED / "ledger.json").read_text())
    assert Ledger.parse(json.dumps(stored)).outcome == "none"
    assert Ledger.parse(json.dumps(stored | {"decision": "retrain"})).outcome == "retrain"

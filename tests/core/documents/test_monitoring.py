"""What the documents of the monitor refuse, beyond their schema."""

from __future__ import annotations

import json

import pytest

from retraining.core.documents import Signals
from retraining.core.errors import ContractError
from tests.support.contracts import EXAMPLES


def test_a_signal_that_is_not_judged_says_because_of_what() -> None:
    """So that no page has an empty cell for it."""
    stored = json.loads((EXAMPLES / "signals__skew.json").read_text())
    stored["signals"][5]["because"] = None
    with pytest.raises(ContractError, match="says because of what"):
        Signals.parse(json.dumps(stored))

"""Each way a run is started, in plain words."""

from __future__ import annotations

import pytest

from retraining.core.documents import Trigger
from retraining.core.report.started import explain_cause, explain_trigger


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (Trigger(kind="manual", reason="by ada"), "Started by hand, by ada."),
        (Trigger(kind="manual", reason="by hand"), "Started by hand."),
        (Trigger(kind="scheduled", reason="cron 0 3 * * *"), "Started by the model's schedule."),
        (Trigger(kind="backfill", reason="a backfill"), "Started by a backfill."),
        (Trigger(kind="asset", reason="carrier drifted."), "Started by an asset event. carrier drifted."),
        (
            Trigger(kind="asset", reason="Retraining: AUC fell.", cause="performance:"),
            "Started by worse answers, now that their labels are known. Retraining: AUC fell.",
        ),
        (
            Trigger(kind="asset", reason="Retraining: carrier.", cause="skew:carrier"),
            "Started by requests unlike the training data (carrier). Retraining: carrier.",
        ),
        (
            Trigger(kind="asset", reason="2013-11-20 is there.", cause="new_data:flights.flights"),
            "Started by new data in flights.flights. 2013-11-20 is there.",
        ),
    ],
)
def test_a_trigger_is_told_in_plain_words(trigger, words):
    assert explain_trigger(trigger) == words


@pytest.mark.parametrize("cause", ["", "whatever", "my:own:cause"])
def test_a_cause_that_nobody_here_knows_is_shown_as_it_is(cause):
    assert explain_cause(cause) == cause

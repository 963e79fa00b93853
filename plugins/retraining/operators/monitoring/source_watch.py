"""How old the champion is, and what it lives on."""

from __future__ import annotations

from retraining.core.monitoring.ages import judge_age
from retraining.core.naming.run_keys import RunKey
from retraining.operators.monitoring.watch import Seen, Watch


def watch_age(watch: Watch) -> Seen:
    """Return how old the champion's data is."""
    as_of = RunKey.parse(watch.champion.run_key).as_of if watch.champion else None
    return Seen(signals=(judge_age(watch.spec, as_of, watch.as_of),))

"""What of a model's past is kept: the newest runs, the newest looks, and of earlier days what tells of them."""

from __future__ import annotations

from retraining.core.documents import Ledger, LedgerResult
from retraining.core.documents.monitoring import CalibratedLimit
from retraining.core.report.models_page.history import (
    RUNS_KEPT,
    WATCHES_KEPT,
    cut,
    describe_result,
    newest_runs,
    newest_watches,
    watch_row,
)
from tests.support.contracts import EXAMPLES
from tests.support.scenes.ledger import signal, signals
from tests.support.scenes.models_page import NOW, run, watch


def test_the_newest_runs_are_kept_each_once() -> None:
    """What was read anew comes first, and counts."""
    anew = run(0, outcome="promote")
    kept = newest_runs([anew, *(run(day) for day in range(90))])
    assert kept[0] == anew
    assert len(kept) == RUNS_KEPT
    assert [each.run_key for each in kept] == sorted({each.run_key for each in kept}, reverse=True)


def test_all_looks_of_two_days_are_kept_and_of_earlier_days_those_that_did_something() -> None:
    """And the last of each day, so that a year of hourly looks stays small."""
    looks = [watch(hour, outcome="retrain" if hour == 333 else "none") for hour in range(24 * 60)]
    kept = newest_watches(looks)
    assert kept[:48] == tuple(looks[:48])
    assert looks[333] in kept
    assert len(kept) <= 48 + 60 + 1
    assert len({each.as_of.date() for each in kept}) == 61
    assert len(newest_watches([watch(hour, outcome="warn") for hour in range(999)])) == WATCHES_KEPT


def test_what_came_of_an_order_is_kept_with_the_newest_row() -> None:
    """Also of an order that the newest row does not tell of any more; of rows that are gone nothing."""
    acted, older = watch(30), watch(60)
    looks = [
        watch(1, results={acted.key: "promoted, version 5"}),
        watch(2, results={acted.key: "running", older.key: "rejected", "gone": "failed"}),
        acted,
        older,
    ]
    newest, *others = newest_watches(looks)
    assert newest.results == {acted.key: "promoted, version 5", older.key: "rejected"}
    assert not any(each.results for each in others)


def test_a_result_is_said_in_words() -> None:
    """As far as it is known."""
    result = LedgerResult(
        ledger_id="x",
        ordered_at=NOW,
        cause=None,
        dag_run_id=None,
        run_key=None,
        state="rolled_back",
        version_id="5",
        gain=0.01234,
    )
    assert describe_result(result) == "rolled back, version 5, gain +0.0123"
    assert describe_result(result.model_copy(update={"version_id": None, "gain": None})) == "rolled back"


def test_long_text_is_cut() -> None:
    """To what the document takes."""
    assert cut("x" * 3000) == "x" * 1999 + "…"
    assert cut("short") == "short"


def test_a_signal_whose_limit_follows_from_the_training_days_is_shown() -> None:
    """What the page does not draw of a signal is left out, whatever a later release records of it."""
    row = Ledger.parse((EXAMPLES / "ledger__cooldown.json").read_bytes())
    limit = CalibratedLimit(source="training_days", days=60, usual=0.02, least=0.05, chance=0.01)
    shown = watch_row("key", row, signals(signal("skew:carrier", calibrated=limit, threshold=limit.value)))
    assert [(each.subject, each.threshold) for each in shown.signals] == [("carrier", limit.value)]

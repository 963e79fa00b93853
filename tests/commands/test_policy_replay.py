"""The command `replay-policy`: other policies over what a monitor saw, and stored rows decided again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from retraining.__main__ import main
from retraining.commands.shell import Shell
from retraining.core import documents as d
from retraining.core.naming import storage
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.ledger import AT_ONCE, CHAMPION, SECOND, decide, result, rules, signal, signals
from tests.support.small_model import AS_OF

Ask = Callable[..., str]


def watched(day: int, value: float, score: float, champion: d.DriftChampion = CHAMPION) -> d.Signals:
    """What a monitor run saw: a feature's distance, and the score by labels that came."""
    found = (
        signal(value=value, state="exceeded" if value > 0.3 else "ok"),
        signal("performance:", value=score, state="ok", measure="auc", threshold=None),
    )
    return signals(*found, hours=24 * day, champion=champion)


@pytest.fixture
def cloud() -> FakeCloud:
    """Ten days: a shift on the second one that one window sees first; the second champion comes on the eighth."""
    fake = FakeCloud()
    rows: list[d.Ledger] = []
    for day in range(10):
        champion = CHAMPION if day < 8 else SECOND
        seen = watched(day, 0.4 if 2 <= day < 8 else 0.1, 0.6 if 2 <= day < 8 else 0.7, champion)
        folder = f"{storage.monitors_uri('bucket', 'late')}/{(AS_OF + timedelta(days=day)):%Y%m%dt%H%M%Sz}-01234567"
        uri = storage.document_uri(folder, "signals")
        # A person gave the time of what would be ordered: no order waits for new days.
        row = decide(seen, rows, rules(windows={"exceeded": 3, "of": 3}), retrain_as_of=seen.as_of)
        row = row.model_copy(update={"signals_uri": uri, "ledger_id": storage.ledger_id(folder)})
        rows.append(row)
        for document in (seen, row):
            address = storage.document_uri(folder, document.kind_name())
            fake.artifacts.objects[address] = document.to_bytes()
    return fake


@pytest.fixture
def ask(cloud: FakeCloud, include: Path, capsys: Any) -> Ask:
    """What the command prints."""

    def ask(*words: str, code: int = 0) -> str:
        shell = Shell(connect=cloud.connect, find_include=lambda: include)
        assert main(["replay-policy", "late", *words], shell) == code
        captured = capsys.readouterr()
        return str(captured.err or captured.out)

    return ask


def test_a_bolder_policy_acts_earlier_and_the_scores_say_what_for(ask: Ask) -> None:
    """It was ordered on the fourth day, one window would have ordered it on the second."""
    lines = ask("--set", "monitoring.policy.windows={exceeded: 1, of: 1}").splitlines()
    assert lines[0] == "10 decisions from 2013-11-20 03:00 to 2013-11-29 03:00 UTC"
    assert lines[1].startswith("acted     3 times; by this policy ")
    at = lines.index("2013-11-22 03:00  was none (hysteresis, skew:carrier), would be retrain (skew, skew:carrier)")
    assert lines[at + 1].strip() == ("144 hours earlier; auc 0.6000 until the next champion, 0.7000 with it: +0.1000")
    assert lines[-1].startswith("gain      +0.1000 in the mean of ")


def test_another_threshold_is_another_policy_too(ask: Ask) -> None:
    """The distances were kept."""
    out = ask("--set", "monitoring.drift.threshold=0.5")
    assert "by this policy 0 times" in out


def test_a_part_of_the_time(ask: Ask) -> None:
    """From a time on, before another."""
    out = ask("--since", "2013-11-21T00:00:00Z", "--until", "2013-11-23T00:00:00Z")
    assert out.startswith("2 decisions from 2013-11-21 03:00 to 2013-11-22 03:00 UTC")


def test_stored_rows_decided_again_are_the_same(ask: Ask, cloud: FakeCloud) -> None:
    """By their own policies; one that somebody changed is named."""
    assert ask("--check").strip() == "10 rows decided again: 10 the same"
    uri = next(uri for uri in cloud.artifacts.objects if uri.endswith("20131124t030000z-01234567/ledger.json"))
    forged = d.Ledger.parse(cloud.artifacts.objects[uri]).model_copy(update={"message": "Nothing."})
    cloud.artifacts.objects[uri] = forged.to_bytes()
    assert "20131124t030000z-01234567: stored 'Nothing.', now 'Retraining: " in ask("--check", code=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "schedule=null"), r"--set: 'schedule=null'. Expected monitoring.<key>=<value>"),
        (("--set", "monitoring.policy.windwos=1"), "Did you mean 'windows'"),
        (("--set", "monitoring.policy.windows={exceeded: 9, of: 3}"), "9 of 3 windows can never be"),
        (("--since", "soon"), "--since"),
        (("--since", "2020-01-01"), "no decision with its signals"),
    ],
)
def test_what_cannot_be_is_named(ask: Ask, words: tuple[str, ...], message: str) -> None:
    """With what was expected."""
    assert message.replace("\\", "") in ask(*words, code=1)


def test_a_row_is_decided_again_by_the_orders_that_it_remembered(cloud: FakeCloud, ask: Ask) -> None:
    """Of long before the time that is asked for: without its row the same would be ordered again."""
    cloud.artifacts.objects.clear()
    rows: list[d.Ledger] = []
    for day in (0, 40):
        seen = watched(day, 0.4, 0.6)
        folder = f"{storage.monitors_uri('bucket', 'late')}/{(AS_OF + timedelta(days=day)):%Y%m%dt%H%M%Sz}-01234567"
        remembered = tuple(str(row.ledger_id) for row in rows)
        results = tuple(result(0, "rejected").model_copy(update={"ledger_id": ledger_id}) for ledger_id in remembered)
        row = decide(seen, rows, rules(**AT_ONCE), remembered=remembered, results=results)
        uri = storage.document_uri(folder, "signals")
        rows.append(row.model_copy(update={"signals_uri": uri, "ledger_id": storage.ledger_id(folder)}))
        for document in (seen, rows[-1]):
            cloud.artifacts.objects[storage.document_uri(folder, document.kind_name())] = document.to_bytes()
    assert [row.reason for row in rows] == ["skew", "loop_guard"]
    assert ask("--check", "--since", "2013-12-20T00:00:00Z").strip() == "1 rows decided again: 1 the same"

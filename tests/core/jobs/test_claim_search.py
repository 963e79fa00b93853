"""No order of steps, no crash and no delay that claims are made for pays two jobs, loses one or leaves one.

The searches print their size: run with `-s`. What they hold of the protocol is in docs/reliability.md.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core.jobs import claims
from tests.support import claim_search
from tests.support.claim_search import ARRIVES, CLOSED, STOPPED, Doubt, Model, is_double, is_left, is_over, paid

AT_ONCE = Doubt(seen=(0,))
WITHIN = {
    "answers are lost": AT_ONCE,
    "lists lag": Doubt(),
    "a job fails": Doubt(seen=(0,), fails=True),
    "clocks a minute apart": Doubt(seen=(0,), lands=(ARRIVES - 1,), ahead=(0, 1)),
    "the claim becomes unreadable": Doubt(seen=(0,), garbles=True),
}
"""What the protocol is made for."""
BEYOND = {
    "a process stands still at its create": Doubt(seen=(0,), stalls_once=True),
    "a list lags for longer than anybody waits": Doubt(seen=(0,), late_once=claim_search.SETTLED + 1),
}
"""What no client of Vertex AI can know."""
QUICK = ["answers are lost"]


def searched(doubt: Doubt) -> Model:
    """Search, and say how much was."""
    model = Model(doubt).search()
    print(f"\n{doubt}: {len(model.steps):,} states, {sum(map(len, model.steps.values())):,} steps")
    return model


def told(model: Model, states: set[claim_search.State]) -> str:
    """Return the shortest of some stories."""
    return min(map(model.story, list(states)[:1000]), key=len, default="")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in WITHIN]
)
def test_one_job_is_paid_and_none_is_lost_or_left(name: str) -> None:
    """Whatever happens in whatever order; a fault that happens once may happen again."""
    model = searched(WITHIN[name])
    assert not told(model, model.where(is_double))
    assert not told(model, model.never_reach(model.where(is_over)))
    assert not told(model, model.where(lambda state: state.readable and is_left(state)))


@pytest.mark.long
@pytest.mark.parametrize("name", BEYOND)
def test_beyond_it_there_are_two_jobs_at_most_and_one_of_them_is_ended(name: str) -> None:
    """A second one may be paid; it is seen and cancelled, or the run ends both."""
    model = searched(BEYOND[name])
    assert model.where(is_double), "the search does not see what it is for"
    assert max(len(paid(state)) for state in model.steps) == 2
    alone = model.where(lambda state: not is_double(state))
    assert not told(model, model.never_reach(alone))
    assert not told(model, model.never_reach(model.where(is_over)))


@pytest.mark.parametrize("what", ["waits for less long", "creates by an old look"])
def test_a_protocol_with_a_fault_is_found_out(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are as short as they may be."""
    if what == "waits for less long":
        monkeypatch.setattr(claims, "SETTLED_AFTER", claims.SETTLED_AFTER - timedelta(minutes=1))
    else:
        monkeypatch.setattr(claim_search, "START", claim_search.START + 1)
        monkeypatch.setattr(claim_search, "AGES", dict.fromkeys(claim_search.AGES, claim_search.SETTLED + 1))
    model = Model(AT_ONCE).search(stop=is_double)
    assert model.where(is_double)


def test_an_unreadable_claim_stops_both_before_a_job() -> None:
    """Nobody creates one whose number nobody knows."""
    state = claim_search.State(claim=claim_search.Mark(0, open=True), readable=False)
    model = Model(AT_ONCE).search(begin=state)
    assert all(not state.jobs for state in model.steps)
    assert model.where(lambda state: all(process.at == STOPPED for process in state.processes))
    assert not model.where(lambda state: any(process.at == CLOSED for process in state.processes))

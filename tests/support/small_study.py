"""Studies the core's tests start from: a section, its plan, trials, an earlier study, a champion."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from retraining.core.documents import Plan, Trial, Tuning
from retraining.core.documents.tuning import Phase
from retraining.core.naming.run_keys import RunKey
from retraining.core.tuning import decision
from tests.support.small_model import AS_OF, make_plan, make_spec

SECTION: dict[str, Any] = {
    "every_days": 7,
    "max_trials": 8,
    "recall": 2,
    "parameters": [
        {"name": "learning_rate", "kind": "double", "min": 1e-4, "max": 0.1, "scale": "log"},
        {"name": "hidden_units", "kind": "categorical", "values": ["small", "large"]},
    ],
}
HYPERPARAMETERS = {"learning_rate": 0.01, "hidden_units": "small", "dropout": 0.1}


def plan_with(
    section: dict[str, Any] | None = SECTION, overrides: dict[str, Any] | None = None, search: str | None = None
) -> Plan:
    """A run of the small model with a section `tuning`."""
    section = {**section, "search": search} if section and search else section
    spec = make_spec(tuning=section, training={"model": "dense", "hyperparameters": HYPERPARAMETERS})
    return make_plan(spec, **({"overrides": overrides} if overrides else {}))


def trial(number: int, value: float | None, rate: float = 0.01, phase: Phase = "search", units: str = "small") -> Trial:
    """One trial; without a value it is infeasible."""
    return Trial(
        trial_id=f"{phase}-{number}",
        phase=phase,
        state="INFEASIBLE" if value is None else "SUCCEEDED",
        hyperparameters={"learning_rate": rate, "hidden_units": units},
        value=value,
        curve=(),
        seconds=10.0,
        message="",
    )


def study(days_ago: int, *trials: Trial) -> Tuning:
    """The study of a run so many days ago."""
    plan = plan_with()
    as_of = AS_OF - timedelta(days=days_ago)
    request = decision.decide(plan, [], None)
    made = decision.conclude(plan, request, trials)
    return made.model_copy(update={"as_of": as_of, "run_key": str(RunKey.of(as_of, str(days_ago)))})


CHAMPION = decision.ChampionRecord(
    run_key=str(RunKey.of(AS_OF - timedelta(days=1), "c")),
    hyperparameters={"learning_rate": 0.003, "hidden_units": "large", "dropout": 0.9},
    given=HYPERPARAMETERS,
    tuned=True,
    then=0.70,
    now=0.69,
)

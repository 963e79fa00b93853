"""What this run's search starts from: earlier trials that are repeated, and the part of the space it looks at.

Memory: the best trials of earlier studies are tried again first ("recalled"), because last week's score was measured on
last week's data; the search then goes on around the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from retraining.core.documents.tuning import Recalled, Trial, Tuning
from retraining.core.spec.tuning import Tuning as TuningSpec
from retraining.core.spec.tuning import TuningParameter

REMEMBERED_STUDIES = 10
# The newest study's best trials: what they agree on is searched closely (the elite of the cross-entropy method,
# Rubinstein, 1999, https://doi.org/10.1023/A:1010091220143).
ELITE_SHARE, LEAST_ELITE = 0.2, 5
# Of a parameter's range, around the best recalled trial: so many times the spread of the elite, within bounds.
RANGE_TIMES, LEAST_RANGE, MOST_RANGE = 2.0, 1 / 16, 1 / 2
EXPLORE_EVERY = 4  # every so many studies the whole space is searched again, so that no run is stuck where it was


def repeated_trials(spec: TuningSpec, studies: Sequence[Tuning]) -> tuple[Recalled, ...]:
    """Return the trials to repeat: of the newest studies by turns, each study's best first; the same values only once.

    Args:
        spec: How many, over which parameters; trials that no longer fit the space are left out, and such as a later
            study found to fail.
        studies: Oldest first.
    """
    newest_first = list(reversed(studies[-REMEMBERED_STUDIES:]))
    ranked = [_ranked(study, spec) for study in newest_first]
    failed = [[trial.hyperparameters for trial in study.trials if trial.value is None] for study in newest_first]
    chosen: list[Recalled] = []
    for place in range(max(map(len, ranked), default=0)):
        for index, study in enumerate(ranked):
            if place < len(study) and len(chosen) < spec.recall:
                trial = study[place]
                known = (other.hyperparameters for other in chosen)
                if not any(_alike(trial.hyperparameters, other, spec) for other in chain(known, *failed[:index])):
                    chosen.append(trial)
    return tuple(chosen)


def _ranked(study: Tuning, spec: TuningSpec) -> list[Recalled]:
    if study.metric != spec.metric or study.goal != spec.goal:
        return []
    scored = [(trial.value, trial) for trial in study.trials if trial.value is not None]
    scored.sort(key=lambda item: (-item[0] if spec.goal == "maximize" else item[0], item[1].trial_id))
    return [
        Recalled(
            run_key=study.run_key,
            trial_id=trial.trial_id,
            hyperparameters={name: trial.hyperparameters[name] for name in sorted(trial.hyperparameters)},
            value=value,
        )
        for value, trial in scored
        if _fits(trial.hyperparameters, spec)
    ]


def _fits(values: Mapping[str, Any], spec: TuningSpec) -> bool:
    known = {parameter.name: parameter for parameter in spec.parameters}
    needed = {name for name, parameter in known.items() if parameter.when is None}
    return needed <= set(values) <= set(known) and all(contains(known[name], value) for name, value in values.items())


def contains(parameter: TuningParameter, value: object) -> bool:
    """Return whether a parameter can have a value."""
    if parameter.kind in ("categorical", "discrete"):
        return value in parameter.values
    low, high = parameter.numbers
    return isinstance(value, int | float) and low <= value <= high


def _alike(one: Mapping[str, Any], other: Mapping[str, Any], spec: TuningSpec) -> bool:
    """Return whether two trials are within two hundredths of every range: repeating both would tell nothing."""
    if set(one) != set(other):
        return False
    for parameter in spec.parameters:
        if parameter.name not in one:
            continue
        if parameter.kind in ("categorical", "discrete"):
            if one[parameter.name] != other[parameter.name]:
                return False
        elif abs(_unit(parameter, one[parameter.name]) - _unit(parameter, other[parameter.name])) > 0.02:
            return False
    return True


def range_shares(spec: TuningSpec, studies: Sequence[Tuning], earlier: int | None = None) -> dict[str, float]:
    """Return how much of each numeric parameter's range the search looks at, in (0, 1]; empty: the whole space.

    Twice what the best fifth (at least five) of the newest study's trials span, on the parameter's scale: between a
    sixteenth, because weeks differ, and half. Every fourth study searches the whole space.

    Args:
        spec: The whole space.
        studies: Oldest first.
        earlier: How many there were, when `studies` are only the newest; None: no more.
    """
    ranked = _ranked(studies[-1], spec) if studies else []
    if not ranked or ((len(studies) if earlier is None else earlier) + 1) % EXPLORE_EVERY == 0:
        return {}
    elite = ranked[: max(LEAST_ELITE, math.ceil(ELITE_SHARE * len(ranked)))]
    return {each.name: _share(each, elite) for each in spec.parameters if each.kind in ("double", "integer")}


def _share(parameter: TuningParameter, elite: Sequence[Recalled]) -> float:
    known = (each.hyperparameters.get(parameter.name) for each in elite)
    places = [_unit(parameter, value) for value in known if isinstance(value, int | float)]
    if len(places) < LEAST_ELITE:
        return MOST_RANGE
    return min(max(RANGE_TIMES * (max(places) - min(places)), LEAST_RANGE), MOST_RANGE)


def narrowed_space(
    spec: TuningSpec, recalled: Iterable[Trial], shares: Mapping[str, float]
) -> tuple[TuningParameter, ...]:
    """Return the space of the search: around the best recalled trial, or the whole.

    Args:
        spec: The whole space.
        recalled: The repeated trials.
        shares: See `range_shares`.
    """
    best = best_trial(recalled, spec.goal)
    if best is None:
        return spec.parameters
    return tuple(
        _around(parameter, best.hyperparameters[parameter.name], shares[parameter.name])
        if parameter.name in shares and parameter.name in best.hyperparameters
        else parameter
        for parameter in spec.parameters
    )


def _around(parameter: TuningParameter, value: Any, share: float) -> TuningParameter:  # noqa: ANN401 - a hyperparameter
    low, high = parameter.numbers
    at = _unit(parameter, value)
    start = min(max(at - share / 2, 0.0), 1 - share)
    new_low, new_high = _from_unit(parameter, start), _from_unit(parameter, start + share)
    if parameter.kind == "integer":
        new_low, new_high = max(low, math.floor(new_low)), min(high, math.ceil(new_high))
    new_low, new_high = max(low, min(new_low, float(value))), min(high, max(new_high, float(value)))
    return parameter if new_low >= new_high else parameter.model_copy(update={"min": new_low, "max": new_high})


def _unit(parameter: TuningParameter, value: float) -> float:
    """Return where a value lies in its range, 0 to 1, on the parameter's scale."""
    low, high = parameter.numbers
    value = min(max(float(value), low), high)
    if parameter.scale == "log":
        return math.log(value / low) / math.log(high / low)
    if parameter.scale == "reverse_log":
        return 1 - math.log((high + low - value) / low) / math.log(high / low)
    return (value - low) / (high - low)


def _from_unit(parameter: TuningParameter, at: float) -> float:
    low, high = parameter.numbers
    if parameter.scale == "log":
        return float(low * (high / low) ** at)
    if parameter.scale == "reverse_log":
        return float(high + low - low * (high / low) ** (1 - at))
    return low + (high - low) * at


def best_trial(trials: Iterable[Trial], goal: Literal["maximize", "minimize"]) -> Trial | None:
    """Return the trial with the best score; the earlier one of equals; None when none has a score."""
    scored = [trial for trial in trials if trial.value is not None]
    if not scored:
        return None
    sign = -1 if goal == "maximize" else 1
    return min(scored, key=lambda trial: sign * (trial.value or 0.0))

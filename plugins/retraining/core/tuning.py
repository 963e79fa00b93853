"""When hyperparameters are searched, what tonight's search starts from, and which values the run trains with.

Memory: the best trials of earlier studies are tried again first ("recalled"), because last week's score was measured on
last week's data; the search then goes on around the best of them. With no study tonight the champion's values are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any, Literal

from retraining.core import backoff
from retraining.core.documents.plan import Plan
from retraining.core.documents.tuning import (
    Because,
    Hyperparameters,
    LastStudy,
    Recalled,
    Trial,
    Tuning,
    TuningRequest,
)
from retraining.core.naming import run_keys
from retraining.core.spec.tuning import Tuning as TuningSpec
from retraining.core.spec.tuning import TuningParameter

REMEMBERED_STUDIES = 10
# The newest study's best trials: what they agree on is searched closely (the elite of the cross-entropy method,
# Rubinstein, 1999, https://doi.org/10.1023/A:1010091220143).
ELITE_SHARE, LEAST_ELITE = 0.2, 5
# Of a parameter's range, around the best recalled trial: so many times the spread of the elite, within bounds.
FOCUS_TIMES, LEAST_FOCUS, MOST_FOCUS = 2.0, 1 / 16, 1 / 2
EXPLORE_EVERY = 4  # every so many studies the whole space is searched again, so that no night is stuck where it was


@dataclass(frozen=True, kw_only=True)
class ChampionRecord:
    """What is known of the champion.

    Attributes:
        run_key: The run that made it.
        hyperparameters: That it was trained with.
        given: That its file gave then.
        tuned: Whether a study found them, that run's own or an earlier one; else they were the file's.
        then: Its metric in the duel that made it champion; None when it is not known.
        now: Its metric in the newest duel; None when it is not known.
    """

    run_key: str
    hyperparameters: Mapping[str, Any]
    given: Mapping[str, Any]
    tuned: bool
    then: float | None = None
    now: float | None = None


def decide(
    plan: Plan,
    studies: Iterable[Tuning],
    champion: ChampionRecord | None,
    *,
    higher_is_better: bool,
    earlier: int | None = None,
) -> TuningRequest:
    """Whether this run searches, and from where.

    Args:
        plan: The run.
        studies: Earlier runs' documents; those of runs that are not older than this one are left out.
        champion: The version that serves; None when there is none.
        higher_is_better: Of the evaluation's metric, which `champion.then` and `champion.now` are in.
        earlier: How many studies there were before this run, when `studies` are only the newest; None: no more.
    """
    spec = plan.spec.tuning
    known = sorted((study for study in studies if study.as_of < plan.as_of and study.trials), key=lambda s: s.as_of)
    last = known[-1] if known else None
    search, because, words = _whether(plan, known, champion, higher_is_better)
    hyperparameters: Hyperparameters = dict(plan.spec.training.hyperparameters)
    source: Literal["spec", "champion"] = "spec"
    if kept := _kept(plan, champion):
        hyperparameters, source = hyperparameters | kept, "champion"
    return TuningRequest(
        model=plan.model,
        run_key=plan.run_key,
        search=search,
        because=because,
        words=words,
        hyperparameters=hyperparameters,
        source=source,
        last_study=LastStudy(run_key=last.run_key, as_of=last.as_of) if last else None,
        earlier_studies=len(known) if earlier is None else earlier,
        recalled=recall(spec, known) if search and spec else (),
        focus=focus_shares(spec, known, earlier) if search and spec else {},
    )


def _kept(plan: Plan, champion: ChampionRecord | None) -> Hyperparameters:
    """What a study found for the champion, but for what a person has changed since: in the file, or for this run."""
    spec = plan.spec.tuning
    if spec is None or champion is None or not champion.tuned:
        return {}
    found, asked, given = champion.hyperparameters, _asked_for(plan), plan.spec.training.hyperparameters
    return {
        parameter.name: found[parameter.name]
        for parameter in spec.parameters
        if parameter.name in found
        and parameter.name not in asked
        and _plain(champion.given.get(parameter.name)) == _plain(given.get(parameter.name))
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - a hyperparameter
    return list(value) if isinstance(value, tuple) else value


def _asked_for(plan: Plan) -> set[str]:
    """Hyperparameters that a person set for this run."""
    given = plan.overrides.get("training.hyperparameters", {})
    prefix = "training.hyperparameters."
    return {path.removeprefix(prefix) for path in plan.overrides if path.startswith(prefix)} | set(
        given if isinstance(given, Mapping) else ()
    )


def _whether(
    plan: Plan, studies: Sequence[Tuning], champion: ChampionRecord | None, higher_is_better: bool
) -> tuple[bool, Because, str]:
    spec = plan.spec.tuning
    if spec is None:
        return False, "no_tuning", "the model's file has no section tuning: its own hyperparameters are used"
    if spec.search != "auto":
        wanted = spec.search == "always"
        return wanted, "wanted" if wanted else "unwanted", f"the Param tune (tuning.search) is {spec.search}"
    if asked := sorted(_asked_for(plan) & {parameter.name for parameter in spec.parameters}):
        return False, "unwanted", f"the run's Params set {', '.join(asked)}: no search"
    if not studies:
        return True, "first", "no study before this run: the hyperparameters are searched"
    last = studies[-1]
    age, words = plan.as_of - last.as_of, ""
    if (drop := _lost(champion, higher_is_better)) and drop > plan.spec.monitoring.performance.max_drop:
        words = f"the champion lost {drop:.4f} of its metric since it was promoted: "
        wait = _cooldown(plan, studies, champion)
        if age >= wait:
            return True, "quality", f"{words}the hyperparameters are searched"
        words += f"that is reason for a study {wait.total_seconds() / 3600:g} hours after the last one; "
    # Half a day of grace: a nightly run that starts a little earlier than seven nights ago is still the seventh.
    if age >= timedelta(days=spec.every_days) - timedelta(hours=12):
        return True, "age", f"the last study is {age.days} days old, of at most {spec.every_days}"
    words += f"the last study ({last.run_key}) is {age.days} days old: no search before {spec.every_days}"
    return False, "recent", words


def _cooldown(plan: Plan, studies: Iterable[Tuning], champion: ChampionRecord | None) -> timedelta:
    """How long after the last study the champion's lost quality is a reason for another.

    As between retrainings that the monitor orders (`policy.cooldown`): each study since the champion's own run found
    nothing better, and doubles the wait.
    """
    since = run_keys.run_key_as_of(champion.run_key) if champion else plan.as_of
    fruitless = sum(study.as_of > since for study in studies)
    return backoff.cooldown(plan.spec.monitoring.cooldown_hours, fruitless)


def _lost(champion: ChampionRecord | None, higher_is_better: bool) -> float | None:
    if champion is None or champion.then is None or champion.now is None:
        return None
    return champion.then - champion.now if higher_is_better else champion.now - champion.then


def recall(spec: TuningSpec, studies: Sequence[Tuning]) -> tuple[Recalled, ...]:
    """The trials to repeat: of the newest studies by turns, each study's best first; the same values only once.

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
    """Whether a parameter can have a value."""
    if parameter.kind in ("categorical", "discrete"):
        return value in parameter.values
    low, high = parameter.numbers
    return isinstance(value, int | float) and low <= value <= high


def _alike(one: Mapping[str, Any], other: Mapping[str, Any], spec: TuningSpec) -> bool:
    """Within two hundredths of every range: repeating both would tell nothing."""
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


def focus_shares(spec: TuningSpec, studies: Sequence[Tuning], earlier: int | None = None) -> dict[str, float]:
    """How much of each numeric parameter's range tonight's search looks at, in (0, 1]; empty: the whole space.

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
        return MOST_FOCUS
    return min(max(FOCUS_TIMES * (max(places) - min(places)), LEAST_FOCUS), MOST_FOCUS)


def focus(spec: TuningSpec, recalled: Iterable[Trial], shares: Mapping[str, float]) -> tuple[TuningParameter, ...]:
    """The space of tonight's search: around the best recalled trial, or the whole.

    Args:
        spec: The whole space.
        recalled: Tonight's repeated trials.
        shares: See `focus_shares`.
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
    """Where a value lies in its range, 0 to 1, on the parameter's scale."""
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
    """The trial with the best score; the earlier one of equals; None when none has a score."""
    scored = [trial for trial in trials if trial.value is not None]
    if not scored:
        return None
    sign = -1 if goal == "maximize" else 1
    return min(scored, key=lambda trial: sign * (trial.value or 0.0))


def conclude(
    plan: Plan,
    request: TuningRequest,
    trials: Sequence[Trial],
    *,
    searched: Sequence[TuningParameter] = (),
    jobs: Sequence[str] = (),
) -> Tuning:
    """What the run trains with.

    Args:
        plan: The run.
        request: What was decided.
        trials: Of both phases, in order; none when nothing was searched.
        searched: The space of the second phase.
        jobs: Names of the tuning jobs.
    """
    spec = plan.spec.tuning
    best = best_trial(trials, spec.goal) if spec else None
    hyperparameters, words = request.hyperparameters, request.words
    source: Literal["spec", "champion", "study"] = request.source
    if best is not None and spec is not None:  # the trials' own ground was the file, never the champion
        hyperparameters, source = {**plan.spec.training.hyperparameters, **best.hyperparameters}, "study"
        words = f"trial {best.trial_id} of {len(trials)} ({best.phase}) is the best: {spec.metric} {best.value:.4f}"
    elif trials:
        words = f"none of {len(trials)} trials has a score: the values of the {source} are used"
    elif source == "champion":
        words = f"{words}; the champion's values are used"
    return Tuning(
        model=plan.model,
        run_key=plan.run_key,
        as_of=plan.as_of,
        metric=spec.metric if spec else None,
        goal=spec.goal if spec else None,
        hyperparameters=hyperparameters,
        source=source,
        words=words,
        space=spec.parameters if spec else (),
        searched=tuple(searched),
        trials=tuple(trials),
        best=best.trial_id if best else None,
        jobs=tuple(jobs),
        seconds=round(sum(trial.seconds or 0.0 for trial in trials), 3),
    )

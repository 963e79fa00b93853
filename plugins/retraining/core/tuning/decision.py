"""Whether a run searches hyperparameters, and which values it starts from.

Without a study the champion's values are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from retraining.core import backoff
from retraining.core.documents.evaluation import EvaluateRequest, Evaluation
from retraining.core.documents.plan import Plan
from retraining.core.documents.training import Report
from retraining.core.documents.tuning import Because, Hyperparameters, LastStudy, Trial, Tuning, TuningRequest
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.naming.run_keys import RunKey
from retraining.core.spec.tuning import TuningParameter
from retraining.core.tuning.warm_start import best_trial, range_shares, repeated_trials


@dataclass(frozen=True, kw_only=True)
class ChampionRecord:
    """What is known of the champion.

    Attributes:
        run_key: The run that made it.
        hyperparameters: That it was trained with.
        given: That its file gave then.
        tuned: Whether a study found them, that run's own or an earlier one; else they were the file's.
        then: Its metric in the comparison that made it champion; None when it is not known.
        now: Its metric in the newest comparison; None when it is not known.
    """

    run_key: str
    hyperparameters: Mapping[str, Any]
    given: Mapping[str, Any]
    tuned: bool
    then: float | None = None
    now: float | None = None


def is_earlier(run_key: str, plan: Plan) -> bool:
    """Return whether a run is of an earlier time than this one: only what was known then is used."""
    return RunKey.parse(run_key).as_of < plan.as_of


def champion_record(
    plan: Plan, run_key: str, report: Report, champion_plan: Plan, promoted: Evaluation | None, settled: Tuning | None
) -> ChampionRecord:
    """Return what the record of the champion's run says of it; without its newest metric.

    Args:
        plan: This run.
        run_key: Of the champion's run.
        report: Of its training.
        champion_plan: Its plan.
        promoted: The evaluation that made it champion.
        settled: What came of its study.
    """
    return ChampionRecord(
        run_key=run_key,
        hyperparameters=report.hyperparameters,
        given=champion_plan.spec.training.hyperparameters,
        tuned=settled is not None and settled.source != "spec",
        then=getattr(promoted.challenger.metrics, plan.spec.evaluation.metric) if promoted else None,
    )


def newest_metric(
    plan: Plan, champion: str, comparisons: Iterable[tuple[EvaluateRequest | None, Evaluation | None]]
) -> float | None:
    """Return the champion's metric in the newest comparison that it was in; None: there is none.

    Args:
        plan: This run.
        champion: Run key of the champion.
        comparisons: Requests and evaluations of earlier runs, newest first; read no further than needed.
    """
    for request, evaluation in comparisons:
        met = request is not None and request.champion is not None and request.champion.run_key == champion
        if met and evaluation is not None and evaluation.champion is not None:
            value: float | None = getattr(evaluation.champion.metrics, plan.spec.evaluation.metric)
            return value
    return None


def decide(
    plan: Plan,
    studies: Iterable[Tuning],
    champion: ChampionRecord | None,
    *,
    earlier: int | None = None,
) -> TuningRequest:
    """Return whether this run searches, and from where.

    Args:
        plan: The run.
        studies: Earlier runs' documents; those of runs that are not older than this one are left out.
        champion: The version that serves; None when there is none.
        earlier: How many studies there were before this run, when `studies` are only the newest; None: no more.
    """
    spec = plan.spec.tuning
    known = sorted((study for study in studies if study.as_of < plan.as_of and study.trials), key=lambda s: s.as_of)
    last = known[-1] if known else None
    search, reason, message = _whether(plan, known, champion)
    hyperparameters: Hyperparameters = dict(plan.spec.training.hyperparameters)
    source: Literal["spec", "champion"] = "spec"
    if taken := plan.taken_from:
        hyperparameters, source = dict(taken.hyperparameters), "champion" if taken.tuned else "spec"
    elif kept := _kept(plan, champion):
        hyperparameters, source = hyperparameters | kept, "champion"
    return TuningRequest(
        model=plan.model,
        run_key=plan.run_key,
        search=search,
        reason=reason,
        message=message,
        hyperparameters=hyperparameters,
        source=source,
        last_study=LastStudy(run_key=last.run_key, as_of=last.as_of) if last else None,
        earlier_studies=len(known) if earlier is None else earlier,
        recalled=repeated_trials(spec, known) if search and spec else (),
        focus=range_shares(spec, known, earlier) if search and spec else {},
    )


def _kept(plan: Plan, champion: ChampionRecord | None) -> Hyperparameters:
    """Return what a study found for the champion, but for what a person has changed since.

    In the file, or for this run.
    """
    spec = plan.spec.tuning
    if spec is None or champion is None or not champion.tuned:
        return {}
    tuned, asked, given = champion.hyperparameters, _asked_for(plan), plan.spec.training.hyperparameters
    return {
        parameter.name: tuned[parameter.name]
        for parameter in spec.parameters
        if parameter.name in tuned
        and parameter.name not in asked
        and _plain(champion.given.get(parameter.name)) == _plain(given.get(parameter.name))
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _asked_for(plan: Plan) -> set[str]:
    """Return the hyperparameters that a person set for this run."""
    given = plan.overrides.get("training.hyperparameters", {})
    prefix = "training.hyperparameters."
    return {path.removeprefix(prefix) for path in plan.overrides if path.startswith(prefix)} | set(
        given if isinstance(given, Mapping) else ()
    )


def _whether(plan: Plan, studies: Sequence[Tuning], champion: ChampionRecord | None) -> tuple[bool, Because, str]:
    spec = plan.spec.tuning
    if taken := plan.taken_from:
        return False, "taken_over", f"the version of stage {taken.stage} was trained with these: no search"
    if spec is None:
        return False, "no_tuning", "the model's file has no section tuning: its own hyperparameters are used"
    if spec.search != "auto":
        always = spec.search == "always"
        return always, "wanted" if always else "unwanted", f"the Param tune (tuning.search) is {spec.search}"
    if asked := sorted(_asked_for(plan) & {parameter.name for parameter in spec.parameters}):
        return False, "unwanted", f"the run's Params set {', '.join(asked)}: no search"
    if not studies:
        return True, "first", "no study before this run: the hyperparameters are searched"
    last = studies[-1]
    age, message = plan.as_of - last.as_of, ""
    if (drop := _lost(plan, champion)) and drop > plan.spec.monitoring.performance.max_drop:
        message = f"the champion lost {drop:.4f} of its metric since it was promoted: "
        wait = _cooldown(plan, studies, champion)
        if age >= wait:
            return True, "quality", f"{message}the hyperparameters are searched"
        message += f"that is reason for a study {wait.total_seconds() / 3600:g} hours after the last one; "
    # Half a day of grace: a daily run that starts a little earlier than seven days ago is still the seventh.
    if age >= timedelta(days=spec.every_days) - timedelta(hours=12):
        return True, "age", f"the last study is {age.days} days old, of at most {spec.every_days}"
    message += f"the last study ({last.run_key}) is {age.days} days old: no search before {spec.every_days}"
    return False, "recent", message


def _cooldown(plan: Plan, studies: Iterable[Tuning], champion: ChampionRecord | None) -> timedelta:
    """Return how long after the last study the champion's lost quality is a reason for another.

    As between retrainings that the monitor orders (`monitoring/policy.py`): each study since the champion's own run
    found nothing better, and doubles the wait.
    """
    since = RunKey.parse(champion.run_key).as_of if champion else plan.as_of
    fruitless = sum(study.as_of > since for study in studies)
    return backoff.cooldown(plan.spec.monitoring.cooldown_hours, fruitless)


def _lost(plan: Plan, champion: ChampionRecord | None) -> float | None:
    if champion is None or champion.then is None or champion.now is None:
        return None
    higher_is_better = plan.spec.evaluation.metric in HIGHER_IS_BETTER
    return champion.then - champion.now if higher_is_better else champion.now - champion.then


def conclude(
    plan: Plan,
    request: TuningRequest,
    trials: Sequence[Trial],
    *,
    searched: Sequence[TuningParameter] = (),
    jobs: Sequence[str] = (),
) -> Tuning:
    """Return what the run trains with.

    Args:
        plan: The run.
        request: What was decided.
        trials: Of both phases, in order; none when nothing was searched.
        searched: The space of the second phase.
        jobs: Names of the tuning jobs.
    """
    spec = plan.spec.tuning
    best = best_trial(trials, spec.goal) if spec else None
    hyperparameters, message = request.hyperparameters, request.message
    source: Literal["spec", "champion", "study"] = request.source
    if best is not None and spec is not None:  # the trials' own ground was the file, never the champion
        hyperparameters, source = {**plan.spec.training.hyperparameters, **best.hyperparameters}, "study"
        message = f"trial {best.trial_id} of {len(trials)} ({best.phase}) is the best: {spec.metric} {best.value:.4f}"
    elif trials:
        message = f"none of {len(trials)} trials has a score: the values of the {source} are used"
    elif source == "champion":
        message = f"{message}; the champion's values are used"
    return Tuning(
        model=plan.model,
        run_key=plan.run_key,
        as_of=plan.as_of,
        metric=spec.metric if spec else None,
        goal=spec.goal if spec else None,
        hyperparameters=hyperparameters,
        source=source,
        message=message,
        space=spec.parameters if spec else (),
        searched=tuple(searched),
        trials=tuple(trials),
        best=best.trial_id if best else None,
        jobs=tuple(jobs),
        seconds=round(sum(trial.seconds or 0.0 for trial in trials), 3),
    )

"""The seven tests of the model's development: each is a function of a model's file and of what is stored of it."""

from __future__ import annotations

from itertools import combinations

from retraining.core.report.readiness.answer import Answer, a_run, by_hand, counted, judged_by_a_person, met, unmet
from retraining.core.report.readiness.facts import Facts, LiveScore
from retraining.core.spec.model import ModelSpec

LEAST_VERSIONS = 2
"""With one version there is nothing to put in order."""


def spec_review(_: ModelSpec, __: Facts) -> Answer:
    """Leave it to a person: the file does not know who has read it."""
    return judged_by_a_person("A second person reads the file and its query before they are committed", "spec_review")


def online_metrics(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask whether versions stand in the same order on their test days and by their live answers."""
    if (key := missing_keys(spec)) and len(facts.live) < LEAST_VERSIONS:
        return unmet(key, "file")
    metric, found = spec.evaluation.metric, len(facts.live)
    if found < LEAST_VERSIONS:
        return unmet(
            f"The monitor's signal performance for {LEAST_VERSIONS} versions, beside their scores on test days; it has "
            f"{counted(found, 'version')} so far",
            "monitor",
        )
    alike, pairs = concordant(facts.live)
    together = f"{metric} on test days and of live answers put {alike} of {counted(pairs, 'pair')} of versions in the "
    if alike * 2 < pairs:
        return unmet(f"A metric that agrees with live answers: {together}same order", "file")
    return met(f"{together}same order ({', '.join(each.version_id for each in facts.live)})")


def hyperparameters(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for studies that come by themselves; one that was asked for is made by hand."""
    tuning, run = spec.tuning, facts.run
    if tuning is not None and tuning.search != "never":
        when = "each run" if tuning.search == "always" else f"every {counted(tuning.every_days, 'day')}"
        names = ", ".join(parameter.name for parameter in tuning.parameters)
        return met(f"a study of {counted(tuning.max_trials, 'trial')} over {names}, {when} (tuning.search)")
    way = (
        "tuning.search: auto, so that studies come by themselves"
        if tuning is not None
        else "A section tuning, with search: auto and the parameters that are searched"
    )
    if run is not None and run.trials:
        return by_hand(
            f"the study of run {run.run_key}, {counted(run.trials, 'trial')}, which was asked for", way, "file"
        )
    return unmet(way, "file")


def staleness_impact(_: ModelSpec, facts: Facts) -> Answer:
    """Ask for an older champion beside a newer model, on the same rows."""
    run = facts.run
    if run is None or run.older is None:
        return unmet(
            "A second run, after one has made a champion: it holds the champion's older data against the new one's, on "
            "the same test rows",
            "run",
        )
    older = run.older
    return met(
        f"each run holds the champion against a newer model on the same rows; in {run.run_key} data newer by "
        f"{older.days:.3g} days made {older.metric} differ by {older.mean:+.4f} ({older.low:+.4f} to {older.high:+.4f})"
    )


def simpler_model(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask that no reference line is surely better."""
    if not spec.evaluation.reference:
        return unmet("evaluation.reference: true, so that each run trains a linear model and small trees too", "file")
    run = facts.run
    if run is None:
        return a_run(spec, "its evaluation holds the model against a linear model and small trees")
    if not run.lines:
        reason = f": {run.lines_not_judged}" if run.lines_not_judged else ""
        return unmet(f"A run whose evaluation judges a reference line{reason}", "run")
    if better := [name for name, is_better in run.lines.items() if is_better]:
        return unmet(
            f"A model that does not lose to the line {' and '.join(better)}, as it surely did in {run.run_key}: "
            "training.model, its hyperparameters, or the simpler model itself",
            "file",
        )
    return met(f"each run trains reference lines; in {run.run_key} none of {', '.join(run.lines)} was surely better")


def slices(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for slices in the file, and that a run measured some."""
    if not spec.evaluation.slices:
        return unmet("evaluation.slices: [column, …], features by whose values the quality counts", "file")
    run = facts.run
    if run is None:
        return a_run(spec, "its evaluation measures the slices of evaluation.slices")
    if not run.slices:
        return unmet(
            "A run with a slice of evaluation.promote.min_slice_examples test rows: now each is smaller", "run"
        )
    return met(
        f"each run measures the slices of {', '.join(spec.evaluation.slice_columns)}, and none may surely lose more "
        f"than {spec.evaluation.promote.max_slice_loss:g}; in {run.run_key} they were {run.slices}"
    )


def inclusion(_: ModelSpec, __: Facts) -> Answer:
    """Leave it to a person: no machine knows who the examples are about."""
    return judged_by_a_person("A person looks at whether the model treats groups of people alike", "inclusion")


def missing_keys(spec: ModelSpec) -> str:
    """Return the key of the file by which labels find answers, where it has none; empty: it has."""
    serving, limits = spec.deployment, spec.monitoring.performance
    if not serving.endpoint or serving.key_input or limits.request_keys is not None:
        return ""
    return (
        "deployment.key_input: true, or monitoring.performance.request_keys: without the example's key no label finds "
        "its answer"
    )


def concordant(live: tuple[LiveScore, ...]) -> tuple[int, int]:
    """Return how many pairs of versions both scores put in the same order, and how many there are; equal ones are."""
    pairs = list(combinations(live, 2))
    return sum((one.tested - other.tested) * (one.live - other.live) >= 0 for one, other in pairs), len(pairs)

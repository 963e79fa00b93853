"""The seven tests of features and data: each is a function of a model's file and of what is stored of it."""

from __future__ import annotations

from retraining.core.report.readiness.answer import Answer, a_run, counted, judged_by_a_person, met, unmet
from retraining.core.report.readiness.facts import Facts
from retraining.core.spec.check_rules import RULES
from retraining.core.spec.model import ModelSpec


def feature_schema(spec: ModelSpec, _: Facts) -> Answer:
    """Ask for bounds on what features may be: of values, of missing ones, or for new categories."""
    checks = spec.data.checks
    bounded = {*checks.max_null_fraction, *checks.ranges}
    categories = [feature.name for feature in spec.features if feature.kind == "categorical"]
    guarded = categories if checks.on_new_category != "ignore" else []
    if not bounded and not guarded:
        return unmet(
            "data.checks.ranges or data.checks.max_null_fraction with bounds of a feature: columns and types alone are "
            "held to the file now",
            "file",
        )
    parts = [f"bounds of {counted(len(bounded), 'feature')} in data.checks"] if bounded else []
    parts += [f"new categories of {counted(len(guarded), 'feature')}"] if guarded else []
    return met(f"each run holds columns and types to the file, and looks for {' and '.join(parts)}")


def feature_benefit(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for each feature's importance, and that none surely does harm."""
    if spec.evaluation.importance is None:
        return unmet("evaluation.importance: {}, so that each run measures what each feature is worth", "file")
    run = facts.run
    if run is None:
        return a_run(spec, "its evaluation measures what each feature is worth")
    if not run.features_measured:
        return unmet("A run whose evaluation can judge the importance: a longer data.test_days has more rows", "run")
    if run.harmful:
        return unmet(
            f"features without {', '.join(run.harmful)}: run {run.run_key} answered surely worse for "
            f"{'it' if len(run.harmful) == 1 else 'them'}",
            "file",
        )
    return met(
        f"each run measures the permutation importance of each feature; of {counted(run.features_measured, 'feature')} "
        f"in {run.run_key} none surely did harm"
    )


def feature_cost(spec: ModelSpec, _: Facts) -> Answer:
    """Ask for bounds on what all features together cost, in a run and in an answer."""
    limit = spec.monitoring.serving.max_latency_ms
    missing = [] if spec.budget_usd is not None else ["budget_usd"]
    if spec.deployment.endpoint:
        missing += [] if limit is not None else ["monitoring.serving.max_latency_ms"]
        missing += [] if spec.monitoring.schedule is not None else ["monitoring.schedule"]
    if missing:
        return unmet(f"{' and '.join(missing)}: bounds on what the features cost in a run and in an answer", "file")
    answers = f", and in an answer {limit:g} ms at the 99th percentile" if spec.deployment.endpoint else ""
    return met(
        f"all features together may cost {spec.budget_usd:g} USD in a run{answers}, so that none alone costs more; "
        "the single ones are not measured"
    )


def feature_requirements(spec: ModelSpec, _: Facts) -> Answer:
    """Ask for a run that ends where a feature gives the label away."""
    severity = spec.data.checks.severity.get("label_leak", RULES["label_leak"].severity)
    if severity != "block":
        return unmet("data.checks.severity: {label_leak: block}; now a feature that gives the label away warns", "file")
    return met(
        "no feature may be the label, the key, the time or the weight (such a file is refused), and one that gives the "
        "label away ends the run (label_leak: block)"
    )


def privacy(_: ModelSpec, __: Facts) -> Answer:
    """Leave it to a person: no machine knows who may see what."""
    return judged_by_a_person("A person looks at who may see the data, and how a deletion reaches all of it", "privacy")


def new_features(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for a run that went from the query to a version, which is all that a new feature needs."""
    run = facts.run
    if run is None or not run.registered:
        return a_run(spec, "once it comes to its version, it shows how long a new feature takes")
    took = f" in {_duration(run.seconds)}" if run.seconds is not None else ""
    return met(
        "a new feature is a line in the file and a column of the query, without other code; "
        f"run {run.run_key} came from the query to a version{took}"
    )


def feature_code(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for requests to the stored model, in which the features' code is."""
    run = facts.run
    if run is None:
        return a_run(
            spec,
            "its evaluation asks the stored model, in which the features' code is, with missing and unknown values",
        )
    asked, again = run.asked, "A run whose stored model answers all that it is asked (gate serving)"
    if asked is None:
        return unmet(f"{again}: an earlier release did not ask it", "run")
    if problem := asked.problem or ("" if asked.rows and asked.strange else "it was asked nothing"):
        return unmet(f"{again}: {problem}", "run")
    return met(
        "the features' code is in the stored model, which each evaluation asks as serving does: in "
        f"{run.run_key} {counted(asked.rows, 'request')} of one row and {asked.strange:,} with missing or unknown "
        "values; what the SQL gives is held to the checks of the data"
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

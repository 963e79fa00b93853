"""The seven tests of monitoring: each is a function of a model's file and of what is stored of it."""

from __future__ import annotations

from retraining.core.report.readiness.answer import Answer, counted, judged_by_a_person, met, unmet
from retraining.core.report.readiness.facts import Facts
from retraining.core.report.readiness.model import missing_keys
from retraining.core.signal_kinds import SignalKind
from retraining.core.spec.model import ModelSpec


def dependencies(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask that the age of the sources has a limit, and that somebody is told."""
    limit = spec.monitoring.max_source_age_hours or spec.data.checks.max_age_hours
    missing = [] if limit is not None else ["monitoring.max_source_age_hours"]
    missing += _not_watched(spec, "source")
    missing += [] if facts.recipients else ["notify.owners, notify.channels or notify.notifiers"]
    missing += [] if "drift" in spec.notify.events else ["drift among notify.events"]
    if missing or limit is None:
        return unmet(f"{', '.join(missing)}: people are told when a source stops or changes", "file")
    return met(
        f"the monitor warns of a source without a change for {limit:g} h, each run of other columns and types; "
        f"{facts.recipients} {'is' if facts.recipients == 1 else 'are'} told"
    )


def data_invariants(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for requests that were held against earlier ones; a run's data are held to its checks anyway."""
    found = _watched(spec, facts, "drift", "each feature of the requests against an earlier window")
    if isinstance(found, Answer):
        return found
    return met(f"each run's data are held to the checks, and requests against earlier ones: {found}")


def training_serving_skew(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for requests that were held against the champion's training data."""
    found = _watched(spec, facts, "skew", "each feature of the requests against the training data")
    if isinstance(found, Answer):
        return found
    return met(f"requests are held against the champion's training data: {found}")


def staleness(spec: ModelSpec, _: Facts) -> Answer:
    """Ask for the age of a champion's data from which something is done."""
    days, missing = spec.monitoring.max_age_days, _not_watched(spec, "age")
    missing = ([] if days is not None else ["monitoring.max_age_days"]) + missing
    if missing or days is None:
        return unmet(f"{', '.join(missing)}: a champion of old data is exceeded in age", "file")
    return met(
        f"the monitor's signal age: a champion whose data ended {counted(days, 'day')} ago asks for "
        f"{dict(spec.monitoring.policy.actions)['age']}"
    )


def numerical_stability(spec: ModelSpec, _: Facts) -> Answer:
    """Ask for our trainer, which stops at the first number that is none."""
    if spec.training.runtime.image is not None:
        return judged_by_a_person(
            "A person looks for NaN and infinity in the training of one's own image", "numerical_stability"
        )
    return met(
        "the trainer ends at the first loss or weight that is NaN or infinite, and the gate serving stops models whose "
        "answer to missing or unknown values is not finite"
    )


def computing_performance(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for latencies that were held against their limits."""
    if not spec.deployment.endpoint:
        return judged_by_a_person("A person compares how long scorings take", "computing_performance")
    found = _watched(spec, facts, "latency", "the endpoint's latency against its limits and the earlier window's")
    if isinstance(found, Answer):
        return found
    return met(f"the latency of what serves is held against its limits: {found}")


def prediction_quality(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for live answers that were held against their labels."""
    if (key := missing_keys(spec)) and "performance" not in facts.looks:
        return unmet(key, "file")
    found = _watched(spec, facts, "performance", "live answers against their labels, once these came")
    if isinstance(found, Answer):
        return found
    return met(f"live answers are held against their labels: {found}")


def _watched(spec: ModelSpec, facts: Facts, kind: SignalKind, what: str) -> Answer | str:
    """Return the newest look in which a kind was judged, in a few words; or what is missing to such a look."""
    if missing := _not_watched(spec, kind):
        return unmet(f"{', '.join(missing)}: the monitor holds {what}", "file")
    look = facts.looks.get(kind)
    if look is None:
        return unmet(f"A look of monitor__{spec.name} that can hold {what} (signal {kind})", "monitor")
    return f"{counted(look.signals, 'signal')} of kind {kind} at {look.as_of:%Y-%m-%d %H:%M}"


def _not_watched(spec: ModelSpec, kind: SignalKind) -> list[str]:
    """Return the keys that keep a kind of signal from being watched; empty: it is."""
    missing = [] if spec.monitoring.schedule is not None else ["monitoring.schedule"]
    ignored = dict(spec.monitoring.policy.actions)[kind] == "none"
    return missing + ([f"monitoring.policy.actions.{kind}: warn"] if ignored else [])

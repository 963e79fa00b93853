"""The seven tests of the infrastructure: each is a function of a model's file and of what is stored of it."""

from __future__ import annotations

from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.program import command_line
from retraining.core.report.readiness.answer import Answer, a_run, by_hand, counted, judged_by_a_person, met, unmet
from retraining.core.report.readiness.facts import Facts
from retraining.core.spec.cluster import resolve_tier
from retraining.core.spec.model import ModelSpec


def reproducibility(spec: ModelSpec, _: Facts) -> Answer:
    """Ask for our trainer on one machine without accelerators, which computes the same way each time."""
    if spec.training.runtime.image is not None:
        return judged_by_a_person("A person trains twice in the image of one's own and compares", "reproducibility")
    cluster = resolve_tier(spec.training.cluster)
    chief, others = cluster.chief, (cluster.workers, cluster.parameter_servers)
    has_accelerator = chief is not None and chief.accelerator is not None
    if has_accelerator or any(role is not None and role.count for role in others):
        return unmet(
            "training.cluster of one machine without accelerators: several, or accelerators, add noise of their own",
            "file",
        )
    if spec.training.input == "bigquery":
        return unmet("training.input: tfrecord: BigQuery gives its rows in no order", "file")
    return met(
        f"seed {spec.training.seed}, deterministic operations, rows in a fixed order: so the trainer always computes "
        "on one machine; a run that would come out the same is not made"
    )


def spec_tests(spec: ModelSpec, _: Facts) -> Answer:
    """Ask for an architecture of the trainer's, whose tests train it."""
    if spec.training.runtime.image is not None:
        return judged_by_a_person("A person tests the code in the image of one's own", "spec_tests")
    return met(
        "the file is checked against all keys, machines and the architecture whenever a DAG is read, by plan and by "
        f"{command_line('check-models')}; the tests of the trainer train {spec.training.model}"
    )


def pipeline_test(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for runs from the query to a version that come by themselves; one that was started is made by hand."""
    triggers = spec.triggers
    clocked = spec.schedule is not None and spec.data.days is None
    repeated = clocked or bool(triggers.assets) or triggers.new_day is not None
    run, way = facts.run, "schedule or triggers, so that runs come by themselves"
    if run is None or not run.ended:
        return a_run(
            spec, "it goes through all tasks to its end" + ("" if repeated else f". For the whole point {way}")
        )
    done = f"run {run.run_key} went through all tasks, from the query to the deployment"
    if not repeated:
        return by_hand(f"{done}, and was started by hand", way, "file")
    return met(f"{done}; others follow by themselves")


def quality_gate(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask that the floor stops something: the gates themselves are never left out."""
    evaluation, run = spec.evaluation, facts.run
    key = "min_value" if evaluation.metric in HIGHER_IS_BETTER else "max_value"
    if run is not None and "floor" in run.findings:
        return unmet(
            f"evaluation.{key} that not every answer reaches, or that a model can reach: check floor of {run.run_key} "
            "has the number",
            "file",
        )
    return met(
        f"decide holds each model to {evaluation.metric} {key} {evaluation.floor:g}, to the champion by a paired "
        "bootstrap and to the model as serving loads it, before it has any traffic; nothing switches that off"
    )


def debugging(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for single examples with the features' values, the label, the answer and the loss."""
    run = facts.run
    if not spec.report.show_rows:
        return unmet(
            "report.show_rows: true, where readers of the page may see the data: it shows the features' values of the "
            "largest errors, and now their keys alone",
            "file",
        )
    if run is None:
        return a_run(spec, "its evaluation keeps the examples with the largest errors, with their features' values")
    if not run.worst or not run.shows_values:
        return unmet("A run whose evaluation keeps the features' values of its largest errors", "run")
    return met(
        f"each run's page shows {counted(run.worst, 'test example')} with the features' values, label, both models' "
        "answers and losses; the stored model gives the rest in Python"
    )


def canary(spec: ModelSpec, _: Facts) -> Answer:
    """Ask for steps of traffic that are compared; the first three answers, which always are, make no canary."""
    steps = spec.deployment.canary
    if not spec.deployment.endpoint:
        return unmet("deployment.endpoint: true, and deployment.canary: now a new version answers all at once", "file")
    if steps is None:
        return unmet(
            "deployment.canary: {}, which compares a growing share of requests. Now a version has 1 % of them until "
            "three of its answers are the stored model's own, and then all",
            "file",
        )
    return met(
        f"a new version has {', '.join(map(str, steps.percent))} % of the requests, and goes back by itself where its "
        "errors, latency or answers are worse (deployment.canary)"
    )


def rollback(spec: ModelSpec, facts: Facts) -> Answer:
    """Ask for a way back that is gone by itself; one that a person went is made by hand."""
    kinds = [kind for kind, action in spec.monitoring.policy.actions if action == "rollback"]
    way = (
        "monitoring.policy.actions.errors: rollback, so that a new version that errs goes back by itself; the DAG "
        "rollback can be tried by hand before"
    )
    if kinds and spec.monitoring.schedule is not None:
        return met(
            f"the monitor goes back by itself for {', '.join(kinds)} within "
            f"{spec.monitoring.policy.rollback_within_hours:g} h of a deployment"
        )
    if facts.rollback:
        return by_hand(f"a way back was gone: {facts.rollback}", way, "file")
    return unmet(way if spec.monitoring.schedule is not None else f"monitoring.schedule, and {way}", "file")

"""Making the plan: the spec, this run's overrides, the time and the addresses, resolved into one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, overload

from pydantic import ValidationError

from retraining.core.catalog.cost import Prices, estimate, machine_hourly, require_budget, unknown_prices
from retraining.core.catalog.machines import all_machines
from retraining.core.documents.document import canonical_json, digest, format_time
from retraining.core.documents.plan import GateCode, Mode, Plan, Query, TakenFrom, Trigger
from retraining.core.errors import PlanError
from retraining.core.naming import storage, vertex
from retraining.core.naming.run_keys import RunKey
from retraining.core.naming.trust import IMAGES, PLACES
from retraining.core.planning import windows
from retraining.core.settings import Settings
from retraining.core.spec.deployment import Deployment
from retraining.core.spec.messages import explain as explain_error
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.sql_file import used_parameters
from retraining.core.spec.stages import FILE as STAGES
from retraining.core.spec.yaml_file import SpecText
from retraining.core.team_code import TeamFunction
from retraining.core.untyped import YamlValues


def resolve_patterns(spec: ModelSpec, columns: Sequence[str]) -> tuple[ModelSpec, dict[str, tuple[str, ...]]]:
    """Return a spec that names each of its features, and which columns each pattern gave.

    Args:
        spec: As in the file.
        columns: Of its query, in its order.

    Raises:
        PlanError: A pattern names no column, or the features are none that a model can have.
    """
    if not spec.patterns:
        return spec, {}
    resolved, matched = spec.resolve(columns)
    for pattern, found in matched.items():
        if not found:
            raise PlanError(
                f"{spec.name}.yaml, features",
                f"names {pattern!r}, which no column of {spec.data.source_name} has that is free",
                f"a pattern of these: {', '.join(columns)}",
                "Correct it, or remove it. Key, event time, label and what stands there by its name are taken",
            )
    try:
        return ModelSpec.model_validate(resolved), matched
    except ValidationError as error:
        finding = explain_error(error, SpecText(f"{spec.name} with the columns of its query", resolved, {}), ModelSpec)
        raise PlanError(
            finding.where, finding.found, finding.expected, finding.way_out or "Correct features or the query"
        ) from error


_MONTH_HOURS = 730
DECIDES_NOTHING = ("scoring", "triggers", "service_account", "machine_pool", "jobs")
"""Sections of a spec that no run's result depends on."""
OF_TRAINING = ("tune", "train")
"""Tasks whose jobs a run does not have that takes a version over."""


@dataclass(frozen=True, kw_only=True)
class OwnFiles:
    """What a team's files bring of its own beside the spec, by name.

    Attributes:
        assertions: Texts of the queries of `spec.data.assertions`.
        gates: Functions of `spec.evaluation.gates`; none where nothing is decided.
    """

    assertions: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, TeamFunction] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OwnParts:
    """What a plan keeps beside the spec, by the plan's own names.

    Attributes:
        assertions: Queries of a team's own checks, by name.
        gates: Code of its own gates, by name.
        taken_from: The version of another stage that the run takes over; None: it trains.
    """

    assertions: dict[str, Query] = field(default_factory=dict)
    gates: dict[str, GateCode] = field(default_factory=dict)
    taken_from: TakenFrom | None = None


NOTHING_OWN = OwnParts()


@dataclass(frozen=True, kw_only=True)
class AskedRun:
    """What a run was asked to do, and by whom.

    Attributes:
        as_of: Its time.
        mode: `backfill` records a version and deploys nothing.
        trigger: Who started it, and why.
        dag_id: Of the DAG run.
        dag_run_id: Of the DAG run.
        overrides: As `ModelSpec.with_overrides` takes them.
        force: True makes a new attempt although a run with equal inputs exists.
        deploy: False stops after registration.
        over_budget: True lets the run cost more than the spec's budget.
        started: When the run started; None: not known.
        taken_from: The version of another stage that it takes over; None: it trains.
    """

    as_of: windows.AsOf
    mode: Mode
    trigger: Trigger
    dag_id: str
    dag_run_id: str
    overrides: Mapping[str, Any]  # values of the YAML file
    force: bool = False
    deploy: bool = True
    over_budget: bool = False
    started: datetime | None = None
    taken_from: TakenFrom | None = None


def build_plan(
    asked: AskedRun,
    *,
    spec: ModelSpec,
    sql: str,
    settings: Settings,
    prices: Prices | None = None,
    frozen_set_sql: str | None = None,
    columns: Sequence[str] = (),
    own: OwnFiles | None = None,
) -> Plan:
    """Return the plan of a run.

    Args:
        asked: By whom, for when, and what it changes.
        spec: As in the file, before overrides.
        sql: Text of the examples query.
        settings: Where things are.
        prices: For the estimate; without them, or for another region, it is None.
        frozen_set_sql: Text of `spec.data.golden_query`.
        columns: Of the examples query, in its order, where the spec has patterns of features.
        own: What the team's files bring beside the spec; None: nothing.

    Raises:
        PlanError: A pattern names no column, the overrides do not fit, or the run may cost more than its budget.
    """
    resolved, patterns = resolve_patterns(spec, columns)
    changed = with_validation(resolved.with_overrides(asked.overrides))
    _require_history(asked, changed, sql)
    query, frozen = _query(changed.data.source_name, sql), _query(changed.data.golden_query, frozen_set_sql)
    parts = replace(_own_parts(changed, own or OwnFiles()), taken_from=asked.taken_from)
    key, given = _run_key(asked, deciding_values(changed, query, frozen, settings, parts))
    return Plan(
        model=changed.name,
        run_key=str(key),
        **_asked_fields(asked),
        **_folders(settings, changed.name, str(key)),
        window=windows.window(changed.data, asked.as_of.value),
        query=query,
        golden_query=frozen,
        **vars(parts),
        spec=changed,
        feature_patterns=patterns,
        overrides=dict(asked.overrides),
        spec_sha256=digest(canonical_json(changed.model_dump(mode="json"))),
        **_machines(asked, changed, prices, settings.region),
        **given,
        **{name: getattr(settings, name) for name in (*PLACES, *IMAGES)},
    )


def _own_parts(spec: ModelSpec, own: OwnFiles) -> OwnParts:
    """Return what the plan keeps of a team's own checks and gates."""
    return OwnParts(
        assertions={item.name: _query(item.query, own.assertions[item.name]) for item in spec.data.assertions},
        gates={
            gate.name: GateCode(function=gate.function, sha256=code.sha256, package=code.package)
            for gate in spec.evaluation.gates
            if (code := own.gates.get(gate.name))
        },
    )


def _asked_fields(asked: AskedRun) -> YamlValues:
    """Return the plan's fields of who asked for the run, and for when."""
    return {
        "as_of": asked.as_of.value,
        "as_of_source": asked.as_of.source,
        "trigger": asked.trigger,
        "dag_id": asked.dag_id,
        "dag_run_id": asked.dag_run_id,
    }


def with_validation(spec: ModelSpec) -> ModelSpec:
    """Return the spec with the validation split that its data decide."""
    return spec.model_copy(update={"data": spec.data.with_validation()})


def _folders(settings: Settings, model: str, key: str) -> YamlValues:
    """Return the plan's fields of where the run is: its stage, where its documents are, and where its jobs write."""
    return {
        "stage": settings.stage,
        "run_uri": storage.run_uri(settings.bucket, model, key),
        "results_uri": storage.run_results_uri(settings.results_bucket, model, key),
    }


def _require_history(asked: AskedRun, spec: ModelSpec, sql: str) -> None:
    """Refuse a time that BigQuery has forgotten, and a backfill that would read the same rows for each of its days."""
    windows.require_within_time_travel(spec.data, asked.as_of.value, asked.started, spec.name)
    if asked.mode == "backfill" and spec.data.split == "hash" and "as_of" not in used_parameters(sql):
        raise PlanError(
            f"{spec.name}, backfill",
            f"examples without a time (data.split: hash), and no @as_of in {spec.data.source_name}",
            "a query that tells what was known at each day",
            "Use @as_of in the query, or start one run by hand",
        )


def _machines(asked: AskedRun, spec: ModelSpec, prices: Prices | None, region: str) -> YamlValues:
    """Return the plan's fields of machines, and of what the run and its endpoint cost, as far as that is known.

    Raises:
        PlanError: It may cost more than its budget.
    """
    machines = all_machines(spec)
    if asked.taken_from:
        machines = {task: each for task, each in machines.items() if task not in OF_TRAINING}
    estimated = estimate(spec, machines, prices, region) if prices else None
    unknown = unknown_prices(machines, prices, region)
    if not asked.over_budget:
        require_budget(spec, estimated, unknown)
    return {
        "machines": machines,
        "estimate_usd": estimated,
        "unknown_prices": unknown,
        "endpoint_usd_per_hour": _endpoint_hourly(spec.deployment, prices, region),
    }


def _endpoint_hourly(deployment: Deployment, prices: Prices | None, region: str) -> float | None:
    if prices is None or not deployment.endpoint or deployment.shared_machines:
        return None
    return machine_hourly(prices, deployment.machine, region, deployment.accelerator)


def _run_key(asked: AskedRun, decides: Mapping[str, Any]) -> tuple[RunKey, YamlValues]:
    """Return the key, and the plan's fields that went into it: a backfill deploys nothing, Force is an attempt."""
    given = {
        "mode": asked.mode,
        "deploy": asked.deploy and asked.mode == "live",
        "attempt": asked.dag_run_id if asked.force else None,
    }
    return RunKey.of(asked.as_of.value, {**decides, **given}), given


def deciding_values(
    spec: ModelSpec, query: Query, frozen: Query | None, where: Settings | Plan, own: OwnParts = NOTHING_OWN
) -> YamlValues:
    """Return what decides the result of a run beside its mode, and whose it is.

    Equal runs share documents and tables.

    Args:
        spec: After this run's changes.
        query: Of the examples.
        frozen: Of the frozen set; None: there is none.
        where: The images and the environment: of the settings, or of a plan that was made by them.
        own: Checks and gates of the team's own, and the version that is taken over.
    """
    return {
        "spec": deciding_spec(spec),
        "sql": query.sha256,
        "trainer_image": where.trainer_image,
        "serving_image": where.serving_image,
        "environment": where.environment,
        **({"trainer_package": where.trainer_package} if spec.training.runtime.framework else {}),
        **({"frozen_set_sql": frozen.sha256} if frozen else {}),
        **({"taken_from": own.taken_from.model_dump(mode="json")} if own.taken_from else {}),
        **({"assertions": {name: item.sha256 for name, item in own.assertions.items()}} if own.assertions else {}),
        **({"gates": {name: item.sha256 for name, item in own.gates.items()}} if own.gates else {}),
    }


def deciding_spec(spec: ModelSpec) -> YamlValues:
    """Return what of a spec decides the result of a run."""
    # No run of this DAG scores; what may start one, as whom and on which machines, decides nothing of it.
    return spec.model_dump(mode="json", exclude=set(DECIDES_NOTHING))


@overload
def _query(path: str, sql: str) -> Query: ...


@overload
def _query(path: str | None, sql: str | None) -> Query | None: ...
def _query(path: str | None, sql: str | None) -> Query | None:
    if path is None or sql is None:
        return None
    return Query(path=path, sql=sql, sha256=digest(sql.encode()))


def explain(plan: Plan) -> list[str]:
    """Return what the run will do, a line per fact, for the task log."""
    lines = [
        f"run {plan.run_key} of {plan.model}: {plan.mode}, started by {plan.trigger.kind} ({plan.trigger.reason})",
        f"as of {plan.as_of:%Y-%m-%d %H:%M:%S} UTC, from {plan.as_of_source}",
        _examples(plan),
        f"documents at {plan.run_uri}",
    ]
    if plan.stage:
        lines.append(f"stage {plan.stage}: the model's file with what {STAGES} changes for it")
    if taken := plan.taken_from:
        lines.append(f"nothing is trained: {explain_taken(taken)}")
    if plan.spec.service_account:
        lines.append(f"jobs run as {plan.spec.service_account}")
    if plan.spec.data.sample_percent < 100:
        lines.append(f"a sample of {plan.spec.data.sample_percent:g} % of the keys")
    if plan.golden_query:
        lines.append(f"frozen set of {plan.golden_query.path}, SHA-256 {plan.golden_query.sha256[:16]}")
    lines += [_assertion(plan, item.name, item.severity) for item in plan.spec.data.assertions]
    lines += [
        f"gate own.{gate.name} ({gate.severity}) of {gate.function}, SHA-256 {plan.gates[gate.name].sha256[:16]}"
        for gate in plan.spec.evaluation.gates
        if gate.name in plan.gates
    ]
    lines += [f"features {name}: {', '.join(found)}" for name, found in plan.feature_patterns.items()]
    if explanations := plan.spec.deployment.explanations:
        asked = explanations.paths * len(plan.spec.features) + 1
        lines.append(f"explanations of {explanations.paths} paths: up to {asked:,} predictions for each instance")
    lines += [f"override {path} = {value!r}" for path, value in sorted(plan.overrides.items())]
    return [*lines, explain_price(plan), _endpoint_price(plan)]


def explain_taken(taken: TakenFrom) -> str:
    """Return which version a run takes over, and what made it."""
    return (
        f"the version of run {taken.run_key} in stage {taken.stage} is taken over, which was trained as of "
        f"{format_time(taken.as_of)}"
    )


def _assertion(plan: Plan, name: str, severity: str) -> str:
    query = plan.assertions[name]
    return f"assertion {name} ({severity}) of {query.path}, SHA-256 {query.sha256[:16]}"


def _examples(plan: Plan) -> str:
    window, data = plan.window, plan.spec.data
    if data.split == "time":
        return f"examples of {window.start} to {window.end} (exclusive), test days from {window.test_start}"
    when = "as of then" if "as_of" in used_parameters(plan.query.sql) else "as the snapshot finds them"
    return f"all examples, {when}: they have no time, so {data.test_percent} % of the keys are the test split for life"


def explain_price(plan: Plan) -> str:
    """Return what the run's jobs cost at most, in words."""
    estimated = plan.estimate_usd
    if estimated is None:
        named = ", ".join(plan.unknown_prices) or "these machines"
        return f"price unknown: no list price for {named} in {plan.region}"
    budget = f", budget {plan.spec.budget_usd:.2f}" if plan.spec.budget_usd else ""
    at_most = f"{estimated.at_most:.2f} USD at list prices of {estimated.prices_date}"
    return f"at most {at_most}{budget}: each job once, on demand, until its timeout; lost and failed jobs come on top"


def _endpoint_price(plan: Plan) -> str:
    deployment, rate = plan.spec.deployment, plan.endpoint_usd_per_hour
    if not deployment.endpoint:
        return "no endpoint: nothing is paid for serving"
    if deployment.shared_machines:
        return f"on the shared machines {deployment.shared_machines}: nothing is paid beside them"
    month = "" if rate is None else f" ({rate * deployment.min_replicas * _MONTH_HOURS:.2f} USD a month)"
    each = "price unknown" if rate is None else f"{rate:.4f} USD an hour each"
    gpus = f" with {deployment.accelerator.count} {deployment.accelerator.type}" if deployment.accelerator else ""
    machines = f"an endpoint's {deployment.machine}{gpus} in {plan.region}"
    price = f"{machines}: {each}, at least {deployment.min_replicas} of them{month}"
    if deployment.staging:
        price += f"; as many on {vertex.endpoint_id(vertex.staging_of(plan.model))} while a version is tried there"
    if shadow := deployment.shadow:
        price += f", and up to {shadow.max_requests:,} requests of the last {shadow.hours} hours are sent to it"
    hours = deployment.keep_previous_hours
    if not hours:
        return price
    cost = "" if rate is None else f", {rate * deployment.min_replicas * hours:.2f} USD"
    return f"{price}; as many for the version before, kept for {hours} hours after each new one{cost}"

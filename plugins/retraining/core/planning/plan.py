"""Making the plan: the spec, this run's overrides, the time and the addresses, resolved into one document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from retraining.core.catalog.cost import Prices, estimate, require_budget
from retraining.core.catalog.machines import all_machines
from retraining.core.documents.document import canonical_json, digest
from retraining.core.documents.plan import Mode, Plan, Query, Trigger
from retraining.core.naming import storage
from retraining.core.naming.run_keys import RunKey
from retraining.core.planning import windows
from retraining.core.settings import Settings
from retraining.core.spec.model import ModelSpec


def build_plan(
    *,
    spec: ModelSpec,
    sql: str,
    as_of: windows.AsOf,
    settings: Settings,
    mode: Mode,
    trigger: Trigger,
    overrides: Mapping[str, Any],
    force: bool,
    deploy: bool,
    dag_id: str,
    dag_run_id: str,
    prices: Prices | None = None,
    over_budget: bool = False,
    golden_sql: str | None = None,
) -> Plan:
    """The plan of a run.

    Args:
        spec: As in the file, before overrides.
        sql: Text of `spec.data.query` (see `files.load_query`).
        as_of: The run's time.
        settings: Where things are.
        mode: `backfill` records a version and deploys nothing.
        trigger: Who started the run, and why.
        overrides: As `ModelSpec.with_overrides` takes them.
        force: True makes a new attempt although a run with equal inputs exists.
        deploy: False stops after registration.
        dag_id: Of the run.
        dag_run_id: Of the run.
        prices: List prices for the estimate; without them, or for another region, it is None.
        over_budget: True lets the run cost more than the spec's budget.
        golden_sql: Text of `spec.data.golden_query` (see `files.load_golden_query`).

    Raises:
        PlanError: The overrides do not fit the spec, or the run may cost more than its budget.
    """
    changed = spec.with_overrides(overrides)
    deploy = deploy and mode == "live"
    attempt = dag_run_id if force else None
    spec_json = changed.model_dump(mode="json")
    query, golden = _query(changed.data.query, sql), _query(changed.data.golden_query, golden_sql)
    wanted = all_machines(changed)
    estimated = estimate(changed, wanted, prices, settings.region) if prices else None
    if not over_budget:
        require_budget(changed, estimated)
    decides = _decides(changed, query, golden, settings)
    key = str(RunKey.of(as_of.value, {**decides, "mode": mode, "deploy": deploy, "attempt": attempt}))
    return Plan(
        model=changed.name,
        run_key=key,
        as_of=as_of.value,
        as_of_source=as_of.source,
        mode=mode,
        deploy=deploy,
        trigger=trigger,
        dag_id=dag_id,
        dag_run_id=dag_run_id,
        project=settings.project,
        region=settings.region,
        bucket=settings.bucket,
        dataset=settings.dataset,
        environment=settings.environment,
        run_uri=storage.run_uri(settings.bucket, changed.name, key),
        window=windows.window(changed.data, as_of.value),
        query=query,
        golden_query=golden,
        spec=changed,
        overrides=dict(overrides),
        spec_sha256=digest(canonical_json(spec_json)),
        trainer_image=settings.trainer_image,
        trainer_package=settings.trainer_package,
        serving_image=settings.serving_image,
        attempt=attempt,
        estimate_usd=estimated,
        machines=wanted,
    )


def _decides(spec: ModelSpec, query: Query, golden: Query | None, settings: Settings) -> dict[str, Any]:
    """What decides the result of a run beside its mode, and whose it is: equal runs share documents and tables."""
    return {
        "spec": spec.model_dump(mode="json"),
        "sql": query.sha256,
        "trainer_image": settings.trainer_image,
        "serving_image": settings.serving_image,
        "environment": settings.environment,
        **({"trainer_package": settings.trainer_package} if spec.training.runtime.framework else {}),
        **({"golden_sql": golden.sha256} if golden else {}),
    }


@overload
def _query(path: str, sql: str) -> Query: ...
@overload
def _query(path: str | None, sql: str | None) -> Query | None: ...
def _query(path: str | None, sql: str | None) -> Query | None:
    if path is None or sql is None:
        return None
    return Query(path=path, sql=sql, sha256=digest(sql.encode()))


def explain(plan: Plan) -> list[str]:
    """What the run will do, a line per fact, for the task log."""
    window = plan.window
    lines = [
        f"run {plan.run_key} of {plan.model}: {plan.mode}, started by {plan.trigger.kind} ({plan.trigger.reason})",
        f"as of {plan.as_of:%Y-%m-%d %H:%M:%S} UTC, from {plan.as_of_source}",
        f"examples of {window.start} to {window.end} (exclusive), test days from {window.test_start}",
        f"documents at {plan.run_uri}",
    ]
    if plan.golden_query:
        lines.append(f"frozen set of {plan.golden_query.path}, SHA-256 {plan.golden_query.sha256[:16]}")
    lines += [f"override {path} = {value!r}" for path, value in sorted(plan.overrides.items())]
    return [*lines, _price(plan)]


def _price(plan: Plan) -> str:
    estimated = plan.estimate_usd
    if estimated is None:
        return f"no list price for these machines in {plan.region}: nobody knows what this run costs"
    budget = f", budget {plan.spec.budget_usd:.2f}" if plan.spec.budget_usd else ""
    at_most = f"{estimated.at_most:.2f} USD at list prices of {estimated.prices_date}"
    return f"at most {at_most}{budget}: each job once, on demand, until its timeout; lost and failed jobs come on top"

"""The command `preview`: what a run would train on, without Airflow."""

from __future__ import annotations

import uuid
from pathlib import Path

import click

from retraining.commands.shell import Shell, print_answer, print_warning
from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.catalog.cost import load_prices, query_cost
from retraining.core.checks import dataset
from retraining.core.documents import AssertionResult, Plan
from retraining.core.documents.plan import Trigger
from retraining.core.planning import plan, windows
from retraining.core.report.terminal import describe_preview
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.own_gates import require_gates
from retraining.hooks.ports import CloudPort
from retraining.operators.data.assertions import ask_assertions
from retraining.operators.data.earlier_runs import read_history
from retraining.operators.data.run_table import RunTable, query_columns
from retraining.operators.planning.possible_runs import require_possible


def make_plan(spec: ModelSpec, as_of: str, cloud: CloudPort, include: Path) -> Plan:
    """Return the plan of a run as it would be now; its key, and so its run table, is of this preview alone.

    Raises:
        RetrainingError: Its run would end at `plan`.
    """
    require_trainable(spec, load_capabilities())
    name, now = f"preview-{uuid.uuid4().hex}", cloud.clock.now()
    asked = plan.AskedRun(
        as_of=windows.resolve_as_of(as_of, None, None, now, now),
        mode="live",
        trigger=Trigger(kind="manual", reason="a preview"),
        dag_id="preview",
        dag_run_id=name,
        overrides={},
        force=True,
    )
    sql = files.load_query(spec, include)
    made = plan.build_plan(
        asked,
        spec=spec,
        sql=sql,
        settings=cloud.settings,
        prices=load_prices(include),
        columns=query_columns(cloud.warehouse, spec, sql),
        frozen_set_sql=files.load_frozen_set_query(spec, include),
        own=plan.OwnFiles(assertions=files.load_assertions(spec, include), gates=require_gates(spec, include)),
    )
    for warning in require_possible(cloud, made, include):
        print_warning(f"warning: {warning}")
    return made


def preview(planned: Plan, cloud: CloudPort, include: Path) -> tuple[list[str], bool]:
    """Return lines about the data that a plan asks for, and whether it passes; the run table is gone then.

    Raises:
        RetrainingError: Its query is wrong, or gives nothing.
    """
    table = RunTable(cloud, planned, "preview")
    try:
        taken = table.take_snapshot()
        counted = table.count(taken)
        asked = ask_assertions(cloud, planned, counted.quarantined, "preview")
    finally:
        table.delete()
    judged = dataset.check_data(planned, taken, counted, read_history(cloud.artifacts, planned), asked)
    lines = [
        *describe_preview(planned, taken, counted, judged),
        f"query     {_query_price(planned, taken.bytes_processed, include)}",
        *(_assertion(planned, item, include) for item in asked),
        f"run       {plan.explain_price(planned)}",
    ]
    return lines, judged.passed


def _assertion(planned: Plan, found: AssertionResult, include: Path) -> str:
    rows = "not asked" if found.rows is None else f"{found.rows:,} violations"
    return f"assertion {found.name}: {rows}, {_query_price(planned, found.bytes_processed, include)}"


def _query_price(planned: Plan, read: int, include: Path) -> str:
    prices = load_prices(include)
    usd = query_cost(read, prices, planned.region) if prices else None
    unknown = f"price unknown: no list price for queries in {planned.region}"
    price = unknown if usd is None else f"{usd:.4f} USD at list prices"
    return f"{read / 1e6:,.1f} MB read: {price}, each run"


@click.command("preview")
@click.argument("model")
@click.option("--as-of", default="", help="The run's time, 2013-11-20T03:00:00Z; left out: now.")
@click.pass_obj
def preview_run(shell: Shell, model: str, as_of: str) -> None:
    """Show what a run would train on, without Airflow.

    Plan, snapshot and checks: rows, splits, findings and cost. The run table is made under a name of its own and
    deleted; nothing else is written, and nothing is trained. The status is 1 where the data is not fit to train on.
    """
    cloud, include = shell.connect(), shell.find_include()
    lines, is_fit = preview(make_plan(shell.spec(model), as_of, cloud, include), cloud, include)
    print_answer(lines, is_good=is_fit)

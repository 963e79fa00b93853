"""`python -m retraining.commands.preview MODEL`: plan, snapshot and checks of a run, without Airflow.

In: the model's files, the settings, this machine's own credentials (`gcloud auth application-default login`). Out:
rows, splits, findings and cost, in words. The run table is made under a name of its own and deleted; nothing else is
written, and nothing is trained.
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.catalog.cost import load_prices, query_cost
from retraining.core.checks import dataset
from retraining.core.documents import Plan
from retraining.core.documents.plan import Trigger
from retraining.core.errors import SpecError
from retraining.core.planning import plan, windows
from retraining.core.printable import printable
from retraining.core.report.preview import describe_preview
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.suggestions import suggest
from retraining.hooks.cloud import OwnCloud
from retraining.hooks.ports import CloudPort
from retraining.hooks.shell import print_answer
from retraining.operators.data.earlier_runs import read_history
from retraining.operators.data.query_columns import query_columns
from retraining.operators.data.run_table import RunTable
from retraining.operators.planning.possible_runs import require_possible


def make_plan(model: str, as_of: str, cloud: CloudPort, include: Path) -> Plan:
    """Return the plan of a run as it would be now; its key, and so its run table, is of this preview alone.

    Raises:
        RetrainingError: There is no such model, or its run would end at `plan`.
    """
    path = include / "models" / f"{model}.yaml"
    if not path.is_file():
        known = [found.stem for found in files.find_specs(include)]
        raise SpecError("MODEL", f"no model {model!r}", f"one of: {', '.join(known)}", suggest(model, known))
    spec = files.load_spec(path)
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
    )
    for warning in require_possible(cloud, made, include):
        print(printable(f"warning: {warning}"), file=sys.stderr)
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
    finally:
        table.delete()
    judged = dataset.check_data(planned, taken, counted, read_history(cloud.artifacts, planned))
    lines = [
        *describe_preview(planned, taken, counted, judged),
        f"query     {_query_price(planned, taken.bytes_processed, include)}",
        f"run       {plan.explain_price(planned)}",
    ]
    return lines, judged.passed


def _query_price(planned: Plan, read: int, include: Path) -> str:
    prices = load_prices(include)
    usd = query_cost(read, prices, planned.region) if prices else None
    unknown = f"price unknown: no list price for queries in {planned.region}"
    price = unknown if usd is None else f"{usd:.4f} USD at list prices"
    return f"{read / 1e6:,.1f} MB read: {price}, each run"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what a run would train on.

    Returns:
        0 when its data is fit to train on, 1 when not.
    """
    parser = argparse.ArgumentParser(prog="preview", description=__doc__)
    parser.add_argument("model", help="name of a model of include/models")
    parser.add_argument("--as-of", default="", help="the run's time, 2013-11-20T03:00:00Z (default: now)")
    given = parser.parse_args(arguments)
    return print_answer(lambda: _answer(given.model, given.as_of))


def _answer(model: str, as_of: str) -> tuple[list[str], bool]:
    cloud, include = OwnCloud(), include_path()
    return preview(make_plan(model, as_of, cloud, include), cloud, include)


if __name__ == "__main__":
    sys.exit(main())

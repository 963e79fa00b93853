"""`python -m retraining`: models, their runs, why they ended so, a decision again, one more run, ordered of Airflow.

In: the settings, this machine's own credentials, and for `run` a login of Airflow. Out: lines for a terminal.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from retraining.commands.stored_runs import (
    find_no_plan,
    find_pause,
    find_run,
    last_ledger_row,
    newest_runs,
    read_stored,
    whole_run,
)
from retraining.commands.trial_message import order_trial, send_trial
from retraining.core.documents import Decision
from retraining.core.documents.json_text import read_json
from retraining.core.errors import PlanError, SpecError
from retraining.core.naming import storage
from retraining.core.planning import pauses
from retraining.core.promotion.replay import REPLAYED, decision_changes, replay_decision
from retraining.core.report import terminal
from retraining.core.settings import include_path
from retraining.core.spec.files import find_specs, load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.suggestions import suggest
from retraining.hooks.airflow_api import AirflowApi
from retraining.hooks.cloud import OwnCloud
from retraining.hooks.ports import CloudPort
from retraining.hooks.shell import print_answer

MOST_RUNS = 20


def list_models(cloud: CloudPort) -> list[str]:
    """Return a line per model: its schedule and its last run."""
    rows = [("model", "schedule", "last run", "outcome")]
    for name in _names():
        run = next(newest_runs(cloud.artifacts, cloud.settings.bucket, name), None)
        schedule = load_spec(include_path() / "models" / f"{name}.yaml").schedule or "by hand"
        rows.append((name, schedule, *((run.plan.run_key, terminal.verdict(run)) if run else ("-", "-"))))
    return terminal.table(rows)


def list_runs(cloud: CloudPort, model: str) -> list[str]:
    """Return a line per run of a model, newest first."""
    runs = list(islice(newest_runs(cloud.artifacts, cloud.settings.bucket, _known(model)), MOST_RUNS))
    return terminal.list_runs(runs) if runs else [f"{model}: no run yet"]


def explain_model(cloud: CloudPort, model: str) -> list[str]:
    """Return why a model's last run ended as it did, what its monitor decided last, and until when it is paused."""
    artifacts, bucket = cloud.artifacts, cloud.settings.bucket
    run = next(newest_runs(artifacts, bucket, _known(model)), None)
    lines = list(terminal.explain_run(whole_run(artifacts, run))) if run else [f"{model}: no run yet"]
    failed = find_no_plan(artifacts, bucket, model)
    lines = [*(terminal.explain_no_plan(failed) if failed else ()), *lines]
    pause = find_pause(artifacts, bucket, model)
    paused = [f"pause     {pauses.explain_pause(pause)}"] if pause and pauses.holds(pause, cloud.clock.now()) else []
    return [*lines, terminal.explain_monitor(last_ledger_row(artifacts, bucket, model)), *paused]


def compare(cloud: CloudPort, before: str, now: str) -> list[str]:
    """Return two runs, by their keys, side by side."""
    names, bucket = _names(), cloud.settings.bucket
    return terminal.compare_runs(*(find_run(cloud.artifacts, bucket, names, key) for key in (before, now)))


def replay(cloud: CloudPort, run: str) -> tuple[list[str], bool]:
    """Return whether a run's decision, taken again from its stored documents, is the same, and what differs."""
    artifacts, folder = cloud.artifacts, run.rstrip("/")
    if not run.startswith("gs://"):
        folder = find_run(artifacts, cloud.settings.bucket, _names(), run).plan.run_uri
    stored = read_stored(artifacts, folder, REPLAYED)
    before = Decision.parse(stored["decision"], storage.document_uri(folder, "decision"))
    changes = decision_changes(before, replay_decision(stored))
    if not changes:
        return [f"{folder}: the same decision, {before.verdict}. {before.words}"], True
    return [f"{folder}: another decision", *changes], False


def order_run(api: AirflowApi, model: str, params: Iterable[str]) -> list[str]:
    """Order a run of a model with some Params, each `name=value` (the value as JSON, else as text)."""
    dag_id = f"retrain__{_known(model)}"
    run_id, paused = api.trigger(dag_id, dict(map(_param, params)))
    waits = f"{dag_id} is paused: it begins when somebody unpauses it"
    return [f"{dag_id}: run {run_id} ordered", *([waits] if paused else [])]


def _param(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise PlanError("--param", repr(text), "name=value", "For example --param as_of=2013-11-20T03:00:00Z")
    try:
        return name, read_json(value)
    except ValueError:
        return name, value


def _names() -> list[str]:
    return [path.stem for path in find_specs(include_path())]


def _known(model: str) -> str:
    known = _names()
    if model not in known:
        raise SpecError("MODEL", f"no model {model!r}", f"one of: {', '.join(known)}", suggest(model, known))
    return model


def _spec(model: str) -> ModelSpec:
    return load_spec(include_path() / "models" / f"{_known(model)}.yaml")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="retraining", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("models", help="every model, and its last run")
    run = commands.add_parser("run", help="order a run of Airflow")
    run.add_argument("--param", action="append", default=[], help="a Param of the form, name=value; may be repeated")
    why = commands.add_parser("why", help="why the last run ended as it did")
    runs = commands.add_parser("runs", help=f"the last {MOST_RUNS} runs of a model")
    trial = commands.add_parser("notify-test", help="send a trial message to who is told of a model")
    trial.add_argument("--airflow", action="store_true", help="send it by Airflow, with its settings and connections")
    for command in (run, why, runs, trial):
        command.add_argument("model")
    both = commands.add_parser("compare", help="two runs side by side")
    both.add_argument("before", help="a run's key, as runs prints it")
    both.add_argument("now", help="another one")
    again = commands.add_parser("replay", help="take a run's decision again from its stored documents")
    again.add_argument("run", help="its key, or the address of its folder")
    return parser


def main(arguments: Sequence[str] | None = None, connect: Callable[[], CloudPort] = OwnCloud) -> int:
    """Do what is asked and print it.

    Returns:
        0, or 1 with the reason; 1 also of a decision that comes out differently.
    """
    given = _parser().parse_args(arguments)
    if given.command == "notify-test":
        if given.airflow:
            return print_answer(lambda: (order_trial(AirflowApi(os.environ), _known(given.model)), True))
        return print_answer(lambda: send_trial(connect(), _spec(given.model), os.environ))
    if given.command == "replay":
        return print_answer(lambda: replay(connect(), given.run))
    return print_answer(lambda: (_answer(given, connect), True))


def _answer(given: argparse.Namespace, connect: Callable[[], CloudPort]) -> list[str]:
    match given.command:
        case "models":
            return list_models(connect())
        case "runs":
            return list_runs(connect(), given.model)
        case "why":
            return explain_model(connect(), given.model)
        case "compare":
            return compare(connect(), given.before, given.now)
        case _:
            return order_run(AirflowApi(os.environ), given.model, given.param)

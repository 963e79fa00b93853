"""Commands about models and their runs: what there is, why a run ended as it did, and its decision taken again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import islice

import click

from retraining.commands.quotas import read_places
from retraining.commands.shell import Shell, print_answer, print_warning
from retraining.core.documents import Decision, Failure, Ledger, Pause, Plan
from retraining.core.documents.document import read_object
from retraining.core.errors import ContractError, DataError
from retraining.core.jobs.places import explain_waiting
from retraining.core.naming import storage
from retraining.core.planning import pauses
from retraining.core.promotion.replay import REPLAYED, decision_changes, replay_decision, unasked_gates
from retraining.core.report import terminal
from retraining.core.report.run import TASK_OF_KIND, Run, read_failures, read_reported_run
from retraining.core.spec.files import load_spec
from retraining.core.spec.own_gates import load_gates
from retraining.core.spec.teams import find_specs
from retraining.hooks.ports import ArtifactsPort

LOGGER = logging.getLogger(__name__)
MOST_RUNS = 20


@click.command("models")
@click.pass_obj
def list_models(shell: Shell) -> None:
    """List every model, its schedule and its last run."""
    cloud, rows = shell.connect(), [("model", "schedule", "last run", "outcome")]
    for path in find_specs(shell.find_include()):
        run = next(newest_runs(cloud.artifacts, cloud.settings.bucket, path.stem), None)
        last = (run.plan.run_key, terminal.verdict(run)) if run else ("-", "-")
        rows.append((path.stem, load_spec(path).schedule or "by hand", *last))
    print_answer(terminal.table(rows))


@click.command("runs", help=f"The last {MOST_RUNS} runs of a model, newest first.")
@click.argument("model")
@click.pass_obj
def list_runs(shell: Shell, model: str) -> None:
    """Print a line per run."""
    cloud = shell.connect()
    newest = newest_runs(cloud.artifacts, cloud.settings.bucket, shell.require_model(model))
    runs = list(islice(newest, MOST_RUNS))
    print_answer(terminal.list_runs(runs) if runs else [f"{model}: no run yet"])


@click.command("why")
@click.argument("model")
@click.pass_obj
def explain_model(shell: Shell, model: str) -> None:
    """Say why a model's last run ended as it did.

    Also what its monitor decided last, and until when its retraining is paused.
    """
    cloud = shell.connect()
    artifacts, bucket = cloud.artifacts, cloud.settings.bucket
    run = next(newest_runs(artifacts, bucket, shell.require_model(model)), None)
    failed = find_no_plan(artifacts, bucket, model)
    lines = [
        *(terminal.explain_no_plan(failed) if failed else ()),
        *(terminal.explain_run(whole_run(artifacts, run)) if run else [f"{model}: no run yet"]),
        terminal.explain_monitor(last_ledger_row(artifacts, bucket, model)),
    ]
    pause = find_pause(artifacts, bucket, model)
    if pause and pauses.holds(pause, cloud.clock.now()):
        lines.append(f"pause     {pauses.explain_pause(pause)}")
    places, region, now = read_places(cloud), cloud.settings.region, cloud.clock.now()
    waiting = explain_waiting(places, region, now).get(model, [])
    print_answer([*lines, *(f"room      {sentence}" for sentence in waiting)])


@click.command("compare")
@click.argument("before")
@click.argument("now")
@click.pass_obj
def compare_runs(shell: Shell, before: str, now: str) -> None:
    """Show two runs side by side, by their keys."""
    cloud, names = shell.connect(), shell.models()
    found = (find_run(cloud.artifacts, cloud.settings.bucket, names, key) for key in (before, now))
    print_answer(terminal.compare_runs(*found))


@click.command("replay")
@click.argument("run")
@click.pass_obj
def replay_run(shell: Shell, run: str) -> None:
    """Take a run's decision again.

    It is taken from the stored documents, by the rules of now. RUN is a run's key, or the address of its folder. The
    status is 1 where the decision comes out differently.
    """
    cloud, folder = shell.connect(), run.rstrip("/")
    if not run.startswith("gs://"):
        folder = find_run(cloud.artifacts, cloud.settings.bucket, shell.models(), run).plan.run_uri
    stored = read_stored(cloud.artifacts, folder, REPLAYED)
    before = Decision.parse(stored["decision"], storage.document_uri(folder, "decision"))
    planned = Plan.parse(stored["plan"], storage.document_uri(folder, "plan"))
    functions = load_gates(planned.spec, shell.find_include()) if planned.gates else {}
    for name in unasked_gates(planned, functions):
        print_warning(f"own.{name} is not asked again: its code of that time is not here. Its stored answer stands")
    if changes := decision_changes(before, replay_decision(stored, functions)):
        print_answer([f"{folder}: another decision", *changes], is_good=False)
    print_answer([f"{folder}: the same decision, {before.verdict}. {before.message}"])


def newest_runs(artifacts: ArtifactsPort, bucket: str, model: str) -> Iterator[Run]:
    """Yield a model's runs as a list needs them, newest first; what cannot be read is passed over with a warning."""
    for folder in reversed(artifacts.list_folders(storage.runs_uri(bucket, model))):
        try:
            run = _read_run(artifacts, folder, terminal.LISTED_KINDS)
        except ContractError as error:
            LOGGER.warning("not listed: %s", error)
            continue
        if run:
            yield run


def whole_run(artifacts: ArtifactsPort, listed: Run) -> Run:
    """Return a run with all of its documents."""
    folder = listed.plan.run_uri
    failed = artifacts.read_some(artifacts.list_uris(storage.failures_uri(folder), suffix=".json"))
    return _read_run(artifacts, folder, TASK_OF_KIND, read_failures(failed)) or listed


def find_no_plan(artifacts: ArtifactsPort, bucket: str, model: str) -> Failure | None:
    """Return why the newest run of a model came to no plan; None: it came to one."""
    uri = storage.no_plan_uri(bucket, model)
    data = artifacts.read_object(uri)
    return Failure.parse(data, uri) if data else None


def find_run(artifacts: ArtifactsPort, bucket: str, models: Iterable[str], key: str) -> Run:
    """Return the run of a key, whichever model's it is.

    Raises:
        DataError: No model has it.
        ContractError: It cannot be read.
    """
    for model in models:
        if run := _read_run(artifacts, storage.run_uri(bucket, model, key), terminal.LISTED_KINDS):
            return run
    raise DataError("RUN", f"no run {key!r} in gs://{bucket}", "the key of a stored run", "List them: runs MODEL")


def last_ledger_row(artifacts: ArtifactsPort, bucket: str, model: str) -> Ledger | None:
    """Return what the monitor wrote last; None: nothing yet."""
    uris = artifacts.list_uris(storage.monitors_uri(bucket, model), suffix="/ledger.json")
    data = artifacts.read_object(uris[-1]) if uris else None
    return Ledger.parse(data, uris[-1]) if data else None


def find_pause(artifacts: ArtifactsPort, bucket: str, model: str) -> Pause | None:
    """Return the pause of a model's retraining that was asked for last; None: there was none."""
    uri = storage.pause_uri(bucket, model)
    data = artifacts.read_object(uri)
    return Pause.parse(data, uri) if data else None


def read_stored(artifacts: ArtifactsPort, folder: str, kinds: Iterable[str]) -> dict[str, bytes]:
    """Return documents of a run as they are stored, by kind.

    Raises:
        DataError: One is not there.
    """
    uris = {kind: storage.document_uri(folder, kind) for kind in kinds}
    stored = artifacts.read_some(list(uris.values()))
    if missing := [uri for uri in uris.values() if uri not in stored]:
        raise DataError("RUN", f"no {missing[0]}", "a run that came to its decision", "List them: runs MODEL")
    return {kind: stored[uri] for kind, uri in uris.items()}


def _read_run(
    artifacts: ArtifactsPort, folder: str, kinds: Iterable[str], failures: tuple[Failure, ...] = ()
) -> Run | None:
    """Return some documents of a run; None: it has no plan."""
    uris = {storage.document_uri(folder, kind): kind for kind in kinds}
    stored = {uris[uri]: read_object(data, uri) for uri, data in artifacts.read_some(list(uris)).items()}
    return read_reported_run(stored, failures) if "plan" in stored else None

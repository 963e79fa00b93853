"""What the Models page reads: an object per model with its history, and one with a row of each model.

Both are made again from stored documents and from what registry and endpoint say, so that nothing rests on them. Of
two tasks at once the last to write has read what the other had written before: generations see to it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from retraining.core.documents import (
    Document,
    Drift,
    Ledger,
    ModelOverview,
    ModelSummary,
    Overview,
    Pause,
    Rollback,
    Rollout,
    Signals,
)
from retraining.core.documents.document import read_object
from retraining.core.documents.overview import ShownRollback, ShownRun, WatchRow
from retraining.core.documents.readiness import RunFacts
from retraining.core.errors import ConflictError, ContractError, RetrainingError, SpecError
from retraining.core.naming import storage
from retraining.core.naming.addresses import ObjectAddress, folder_of
from retraining.core.report.models_page.history import (
    KINDS,
    ROLLBACKS_KEPT,
    RUNS_KEPT,
    WATCHES_KEPT,
    cut,
    newest_runs,
    newest_watches,
    shown_rollback,
    shown_run,
    watch_row,
)
from retraining.core.report.models_page.reading import read_models
from retraining.core.report.models_page.summary import Live, only, shown_versions, summarize, unread, with_row
from retraining.core.report.run import read_failures, read_reported_run
from retraining.core.settings import include_path
from retraining.core.spec.budgets import load_budgets
from retraining.core.spec.files import load_spec
from retraining.core.spec.teams import spec_path
from retraining.hooks.clock import data_days
from retraining.hooks.ports import ArtifactsPort, CloudPort
from retraining.operators.record.readiness import read_run, score_of
from retraining.operators.record.spending import own_budget

LOGGER = logging.getLogger(__name__)
TRIES = 20
STILL_OPEN = 5
"""Newest runs that are read again while they have no end; of older ones nothing more is expected."""
PAUSE_S = 0.5
_D = TypeVar("_D", bound=Document)


def refresh_model(cloud: CloudPort, model: str, *, anew: bool = False, reported: str = "") -> None:
    """Write a model's object, and its row in the one of all models.

    Args:
        cloud: The hooks.
        model: Its name.
        anew: Read everything again, whatever is known.
        reported: Key of the run whose last task this is.

    Raises:
        ConflictError: Others were faster each time.
    """
    bucket, artifacts = cloud.settings.bucket, cloud.artifacts
    uri = storage.model_overview_uri(bucket, model)
    for _ in range(TRIES):
        stored, generation = artifacts.read_generation(uri)
        if not generation and not _path(model).exists():
            return  # a name that is no model's
        earlier = None if anew else _parse(stored, uri)
        overview = _read_model(cloud, model, earlier, reported)
        if artifacts.write_if(uri, overview.to_bytes(), generation) is not None:
            _put_row(cloud, overview.summary)
            return
    raise _overtaken(uri)


def drop_others(cloud: CloudPort, models: Sequence[str]) -> None:
    """Take the rows of models without a file out of the object of all models."""
    uri = storage.overview_uri(cloud.settings.bucket)
    for _ in range(TRIES):
        stored, generation = cloud.artifacts.read_generation(uri)
        there = _parse_all(stored, uri) or Overview(models=())
        left = only(there, models).to_bytes()
        if not generation or left == stored or cloud.artifacts.write_if(uri, left, generation) is not None:
            return
    raise _overtaken(uri)


def _put_row(cloud: CloudPort, row: ModelSummary) -> None:
    """Replace a model's row; one that was read later stays."""
    uri = storage.overview_uri(cloud.settings.bucket)
    for tried in range(TRIES):
        stored, generation = cloud.artifacts.read_generation(uri)
        changed = with_row(_parse_all(stored, uri), row)
        if changed is None or cloud.artifacts.write_if(uri, changed.to_bytes(), generation) is not None:
            return
        cloud.clock.sleep(PAUSE_S * (1 + tried))  # an object takes about one write a second
    raise _overtaken(uri)


def _overtaken(uri: str) -> ConflictError:
    return ConflictError(uri, f"others wrote it {TRIES} times meanwhile", "that one of the writes counts", "Try again")


def _parse(stored: bytes, uri: str) -> ModelOverview | None:
    """Return what was written last; None of what is not there, or is of another release: it is made anew."""
    try:
        return ModelOverview.parse(stored, uri) if stored else None
    except ContractError as error:
        LOGGER.warning("made anew: %s", error)
        return None


def _parse_all(stored: bytes, uri: str) -> Overview | None:
    """Return the rows that can be read; a broken one is made anew by its own model's next task."""
    try:
        read = read_models(stored, uri) if stored else None
    except ContractError as error:
        LOGGER.warning("made anew, the other models come with their next task: %s", error)
        return None
    for model, problem in (read.broken if read else {}).items():
        LOGGER.warning("the row of %s is left out until its next task: %s", model, problem)
    return Overview(models=read.rows) if read else None


def _read_model(cloud: CloudPort, model: str, earlier: ModelOverview | None, reported: str) -> ModelOverview:

    bucket, now = cloud.settings.bucket, cloud.clock.now().replace(microsecond=0)
    unreadable: dict[str, str] = {}
    runs = newest_runs(
        [*_read_runs(cloud.artifacts, bucket, model, earlier, unreadable), *(earlier.runs if earlier else ())]
    )
    runs = tuple(_ended(run, run.run_key == reported or place > 0) for place, run in enumerate(runs))
    watches = newest_watches(
        [*(earlier.watches if earlier else ()), *_read_watches(cloud.artifacts, bucket, model, earlier, unreadable)]
    )
    rollbacks = _read_rollbacks(cloud.artifacts, bucket, model, earlier, unreadable)
    live = _ask(cloud, model)
    versions, spec = shown_versions(live), None
    try:
        spec = load_spec(_path(model))
        summary = summarize(spec, replace(live, ticks=data_days(spec) is None), versions, runs, watches, now)
        budget = own_budget(cloud, load_budgets(include_path()), spec)
        summary = summary.model_copy(update={"budget": budget})
    except SpecError as error:
        summary = unread(model, earlier.summary if earlier else None, str(error), now)
    overview = ModelOverview(
        project=cloud.settings.project,
        bucket=bucket,
        summary=summary,
        versions=versions,
        rollbacks=rollbacks,
        runs=runs,
        watches=watches,
        unreadable=unreadable,
        tested=_read_tested(cloud, model, runs, earlier),
    )
    return (
        overview.model_copy(update={"readiness": score_of(cloud, spec, overview.tested, overview)})
        if spec
        else overview
    )


def _read_tested(
    cloud: CloudPort, model: str, runs: Sequence[ShownRun], earlier: ModelOverview | None
) -> RunFacts | None:
    """Return what the newest live run with an evaluation left; of one that was known to its end nothing is read."""
    newest = next((run for run in runs if run.mode == "live" and run.rows is not None), None)
    if newest is None:
        return None
    known = earlier.tested if earlier else None
    if known and known.run_key == newest.run_key and newest in (earlier.runs if earlier else ()) and newest.ended:
        return known
    # Where a run of this model lies follows from its key; an address that a document says may be anywhere.
    return read_run(cloud.artifacts, storage.run_uri(cloud.settings.bucket, model, newest.run_key))


def _path(model: str) -> Path:
    return spec_path(include_path(), model)


def _ask(cloud: CloudPort, model: str) -> Live:

    bucket = cloud.settings.bucket
    endpoint = cloud.endpoints.get(model)
    uris = [storage.rollout_uri(bucket, model), storage.pause_uri(bucket, model), storage.no_plan_uri(bucket, model)]
    documents = cloud.artifacts.read_some(uris)
    rollout, pause, failed = (documents.get(uri) for uri in uris)
    return Live(
        versions=cloud.registry.list_versions(model),
        endpoint_name=endpoint.name if endpoint else None,
        deployed=endpoint.deployed if endpoint else {},
        traffic=endpoint.traffic if endpoint else {},
        rollout=Rollout.parse(rollout, uris[0]) if rollout else None,
        pause=Pause.parse(pause, uris[1]) if pause else None,
        failed_start=next(iter(read_failures({uris[2]: failed})), None) if failed else None,
    )


def _ended(run: ShownRun, over: bool) -> ShownRun:
    """Take a run without a decision for stopped, if its report was written or another one began since."""
    return run.model_copy(update={"outcome": "stopped"}) if over and run.outcome == "running" else run


def _read_runs(
    artifacts: ArtifactsPort, bucket: str, model: str, earlier: ModelOverview | None, unreadable: dict[str, str]
) -> list[ShownRun]:
    """Read the runs that are not known to their end."""
    known = {run.run_key: run.ended for run in (earlier.runs if earlier else ())}
    folders = artifacts.list_folders(storage.runs_uri(bucket, model))[::-1][:RUNS_KEPT]
    wanted = [
        folder
        for place, folder in enumerate(folders)
        if not known.get(key := ObjectAddress.parse(folder).stem) and (key not in known or place < STILL_OPEN)
    ]
    stored = artifacts.read_some([storage.document_uri(folder, kind) for folder in wanted for kind in KINDS])
    runs = []
    for folder in wanted:
        data = {kind: stored.get(storage.document_uri(folder, kind)) for kind in KINDS}
        if data["plan"] is None:
            continue
        try:
            found = {kind: read_object(raw, storage.document_uri(folder, kind)) for kind, raw in data.items() if raw}
            stored_uris = [] if data["deployment"] else artifacts.list_uris(folder, suffix=".json")
            there = [ObjectAddress.parse(uri).stem for uri in stored_uris if folder_of(uri) == folder]
            failed = [uri for uri in stored_uris if folder_of(uri) == storage.failures_uri(folder)]
            failures = read_failures(artifacts.read_some(failed))
            runs.append(shown_run(read_reported_run(found, failures, there=there)))
        except (RetrainingError, ValueError) as error:  # one broken run does not hide the others
            unreadable[ObjectAddress.parse(folder).stem] = cut(str(error))
    return runs


def _read_rollbacks(
    artifacts: ArtifactsPort, bucket: str, model: str, earlier: ModelOverview | None, unreadable: dict[str, str]
) -> tuple[ShownRollback, ...]:
    """Return the newest rollbacks, newest first; each is written once, and read until it is there."""
    known = {each.name: each for each in (earlier.rollbacks if earlier else ())}
    folders = artifacts.list_folders(storage.rollbacks_uri(bucket, model))[::-1][:ROLLBACKS_KEPT]
    uris = {folder: storage.document_uri(folder, Rollback.kind_name()) for folder in folders}
    wanted = [uri for folder, uri in uris.items() if ObjectAddress.parse(folder).stem not in known]
    for uri, data in artifacts.read_some(wanted).items():
        try:
            found = shown_rollback(Rollback.parse(data, uri))
            known[found.name] = found
        except (RetrainingError, ValueError) as error:  # one broken document does not hide the others
            unreadable[f"rollback {ObjectAddress.parse(folder_of(uri)).stem}"] = cut(str(error))
    return tuple(sorted(known.values(), key=lambda each: each.name, reverse=True)[:ROLLBACKS_KEPT])


def _read_watches(
    artifacts: ArtifactsPort, bucket: str, model: str, earlier: ModelOverview | None, unreadable: dict[str, str]
) -> list[WatchRow]:
    """Read the ledger rows that came since the newest that is known."""
    known = max((row.key for row in (earlier.watches if earlier else ())), default="")
    rows = artifacts.list_uris(storage.monitors_uri(bucket, model), start=known, suffix="/ledger.json")
    folders = [folder for uri in rows if ObjectAddress.parse(folder := folder_of(uri)).stem != known][-WATCHES_KEPT:]
    kinds: tuple[type[Document], ...] = (Ledger, Signals, Drift)
    stored = artifacts.read_some(
        [storage.document_uri(folder, kind.kind_name()) for folder in folders for kind in kinds]
    )
    found = []
    for folder in folders:
        key = ObjectAddress.parse(folder).stem
        try:
            row, signals = _find(stored, folder, Ledger), _find(stored, folder, Signals)
            drift = _find(stored, folder, Drift)
        except ContractError as error:
            unreadable[key] = cut(str(error))
            continue
        if row is not None:
            found.append(watch_row(key, row, signals, drift))
    return found


def _find(stored: Mapping[str, bytes], folder: str, kind: type[_D]) -> _D | None:
    uri = storage.document_uri(folder, kind.kind_name())
    return kind.parse(stored[uri], uri) if uri in stored else None

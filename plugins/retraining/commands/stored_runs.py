"""The documents that runs left in the bucket, read for a terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from retraining.core.documents import Failure, Ledger, Pause
from retraining.core.documents.stored_json import read_object
from retraining.core.errors import ContractError, DataError
from retraining.core.naming import storage
from retraining.core.report.run import TASK_OF_KIND, Run, read_failures, read_reported_run
from retraining.core.report.terminal import LISTED_KINDS
from retraining.hooks.ports import ArtifactsPort

LOGGER = logging.getLogger(__name__)


def newest_runs(artifacts: ArtifactsPort, bucket: str, model: str) -> Iterator[Run]:
    """Yield a model's runs as a list needs them, newest first; what cannot be read is passed over with a warning."""
    for folder in reversed(artifacts.list_folders(storage.runs_uri(bucket, model))):
        try:
            run = _read_run(artifacts, folder, LISTED_KINDS)
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
        if run := _read_run(artifacts, storage.run_uri(bucket, model, key), LISTED_KINDS):
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

"""The page with all runs of a model: made anew from the stored documents each time, so that no run gets lost."""

from __future__ import annotations

from retraining.core.documents import Failure
from retraining.core.documents.document import read_object
from retraining.core.errors import ConflictError, ContractError
from retraining.core.naming import storage
from retraining.core.naming.addresses import ObjectAddress
from retraining.hooks.ports import ArtifactsPort

TRIES = 10


def write_all_runs(artifacts: ArtifactsPort, bucket: str, model: str, airflow: str = "") -> str:
    """Write the page of a model, and return its address.

    The generation is read before the documents: a page is written only over one that was there before they were read.
    So the last of several writers has read what all others had written before their pages.

    Raises:
        ConflictError: Others were faster each time.
    """
    uri = storage.all_runs_page_uri(bucket, model)
    for _ in range(TRIES):
        _, generation = artifacts.read_generation(uri)
        page = render_stored_runs(artifacts, bucket, model, airflow).encode()
        if artifacts.write_if(uri, page, generation, "text/html; charset=utf-8") is not None:
            return uri
    raise ConflictError(uri, f"others wrote it {TRIES} times meanwhile", "that one of the writes counts", "Try again")


def render_stored_runs(artifacts: ArtifactsPort, bucket: str, model: str, airflow: str = "") -> str:
    """Return the page as the stored documents have it."""
    from retraining.core.report import all_runs  # its template engine is not needed to parse a DAG
    from retraining.core.report.run import Run, read_reported_run

    folders = artifacts.list_folders(storage.runs_uri(bucket, model))[::-1]
    shown = folders[: all_runs.SHOWN]
    uris = [storage.document_uri(folder, kind) for folder in shown for kind in all_runs.KINDS]
    stored = artifacts.read_some(uris)
    runs: list[Run] = []
    unreadable: dict[str, str] = {}
    for folder in shown:
        data = {kind: stored.get(storage.document_uri(folder, kind)) for kind in all_runs.KINDS}
        try:
            found = {
                kind: read_object(each, storage.document_uri(folder, kind))
                for kind, each in data.items()
                if each is not None
            }
            ended = data["deployment"] is not None
            runs.append(read_reported_run(found, () if ended else _failures(artifacts, folder)))
        except (ContractError, ValueError) as error:  # one broken run does not hide the others
            unreadable[_key(folder)] = str(error)
    others = [_key(folder) for folder in folders[all_runs.SHOWN :]]
    beside = all_runs.Beside(
        unplanned=_unplanned(artifacts, bucket, model, all_runs.SHOWN),
        reported=artifacts.existing([storage.report_page_uri(folder) for folder in shown]),
    )
    return all_runs.render_all_runs(model, runs, unreadable, others, airflow, beside)


def _failures(artifacts: ArtifactsPort, folder_uri: str) -> tuple[Failure, ...]:
    """Return the messages of the failed tries of a run."""
    from retraining.core.report.run import read_failures

    uris = artifacts.list_uris(storage.failures_uri(folder_uri), suffix=".json")
    return read_failures(artifacts.read_some(uris)) if uris else ()


def _unplanned(artifacts: ArtifactsPort, bucket: str, model: str, most: int) -> dict[str, tuple[Failure, ...]]:
    """Return the messages of the newest runs that came to no plan, by their folders."""
    folders = artifacts.list_folders(storage.unplanned_runs_uri(bucket, model))[::-1][:most]
    return {folder: found for folder in folders if (found := _failures(artifacts, folder))}


def _key(folder_uri: str) -> str:
    return ObjectAddress.parse(folder_uri).stem

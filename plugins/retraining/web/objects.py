"""Stored objects as Airflow shows them: pages of runs, and the documents of runs, monitors, scorings and rollbacks.

An address is made here from the parts of the request after each was checked, below the environment's own bucket and the
folder of a model whose DAG the reader may read; what a job can have written is shown so that it can do nothing. Every
answer, of pages of the application's own too, has headers that keep it harmless.
"""

from __future__ import annotations

from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from retraining.core.documents import Failure
from retraining.core.documents.document import LOOK
from retraining.core.documents.json_text import read_json
from retraining.core.errors import ContractError
from retraining.core.naming import pages, storage
from retraining.core.report.models_page.folder import FolderPage
from retraining.core.report.models_page.rendering import policy, render_documents, render_message
from retraining.web.stored import Bucket

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SANDBOX = "sandbox allow-popups allow-popups-to-escape-sandbox"
"""Of what a job can have written: an origin of its own, no script, no form; a link leads on, also into a new tab."""
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
STORED_PAGE_POLICY = f"{NOTHING}; style-src 'unsafe-inline'; img-src data:; {SANDBOX}"
"""A run's page is one file: its styles and pictures are in it, and it has no script."""
DOCUMENT_POLICY = f"{NOTHING}; {SANDBOX}"


def page(html: str, status: int = 200) -> HTMLResponse:
    """Return a page of this application."""
    headers = {**HEADERS, "Content-Security-Policy": f"{policy()}; frame-ancestors 'self'"}
    return HTMLResponse(html, status, headers)


def message(title: str, text: str, way_out: str, status: int = 200, models: str | None = None) -> HTMLResponse:
    """Return a page that says why there is nothing to show, and what to do."""
    return page(render_message(title, text, way_out, models), status)


def stored_page(html: bytes) -> Response:
    """Return a page as it is stored, where nothing in it can act for its reader."""
    headers = {**HEADERS, "Content-Security-Policy": STORED_PAGE_POLICY}
    return Response(html, headers=headers, media_type="text/html; charset=utf-8")


def stored_document(json_text: bytes) -> Response:
    """Return a document as it is stored."""
    headers = {**HEADERS, "Content-Security-Policy": DOCUMENT_POLICY}
    return Response(json_text, headers=headers, media_type="application/json; charset=utf-8")


def show_all_runs(bucket: Bucket, model: str) -> Response:
    """Return the page with all runs of a model."""
    html = bucket.read(storage.all_runs_page_uri(bucket.name, model))
    if html is None:
        text = f"The task report of retrain__{model} has not written it yet."
        return message("No page of all runs", text, "Wait for the end of the first run.", 404, "../../models")
    return stored_page(html)


def show_folder(bucket: Bucket, model: str, folder: str, key: str) -> Response:
    """Return the page with what there is in a folder.

    Raises:
        HTTPException: There can be no such folder.
    """
    if not pages.is_shown(folder, key):
        raise HTTPException(404)
    shown = FolderPage(model=model, folder=folder, key=key, uri=_folder_uri(bucket, model, folder, key))
    there = bucket.existing(list(shown.candidates.values()))
    if folder in pages.WITH_PAGE:
        there += bucket.list_documents(storage.failures_uri(shown.uri))
    return page(
        render_documents(FolderPage(model=model, folder=folder, key=key, uri=shown.uri, there=there)),
        200 if there else 404,
    )


def show_object(bucket: Bucket, model: str, folder: str, key: str, name: str) -> Response:
    """Return a run's page, or a document.

    Raises:
        HTTPException: There can be no such object.
        ContractError: A document is no JSON, of another kind, or of another model.
    """
    if not name or not pages.is_shown(folder, key, name):
        raise HTTPException(404)
    uri = f"{_folder_uri(bucket, model, folder, key)}/{name}"
    data = bucket.read(uri)
    if data is None:
        return _not_written(uri, "../../../../models")
    if name == pages.RUN_PAGE:
        return stored_page(data)
    _require_kind(data, uri, name.removesuffix(".json"), model)
    return stored_document(data)


def show_failure(bucket: Bucket, model: str, folder: str, key: str, name: str) -> Response:
    """Return the message of a task's failed try.

    Raises:
        HTTPException: There can be no such object.
        ContractError: It is no JSON, of another kind, or of another model.
    """
    if not pages.is_shown_failure(folder, key, name):
        raise HTTPException(404)
    uri = f"{storage.failures_uri(_folder_uri(bucket, model, folder, key))}/{name}"
    data = bucket.read(uri)
    if data is None:
        return _not_written(uri, "../../../../../models")
    _require_kind(data, uri, Failure.kind_name(), model)
    return stored_document(data)


def _not_written(uri: str, models: str) -> Response:
    text = f"{uri} is not there: the task that writes it has not come to that, or did not run."
    return message("Not written", text, "The documents of the folder say how far it came.", 404, models)


def _folder_uri(bucket: Bucket, model: str, folder: str, key: str) -> str:
    """Return a folder's address; of a run as all other code makes it."""
    if folder == "runs":
        return storage.run_uri(bucket.name, model, key)
    roots = {
        "monitor": storage.monitors_uri,
        "scoring": storage.scorings_uri,
        "rollbacks": storage.rollbacks_uri,
        "unplanned": storage.unplanned_runs_uri,
        "walk_forward": storage.walk_forwards_uri,
    }
    return f"{roots[folder](bucket.name, model)}/{key}"


def _require_kind(data: bytes, uri: str, kind: str, model: str) -> None:
    """Refuse a document that is not what its name says: a job may have written anything there."""
    try:
        found = read_json(data)
    except ValueError as error:
        raise ContractError(uri, f"not JSON ({type(error).__name__})", "a JSON document", LOOK) from error
    if not isinstance(found, dict) or found.get("kind") != kind:
        raise ContractError(uri, "no document of that kind", repr(kind), LOOK)
    if found.get("model") != model:
        raise ContractError(uri, "a document of another model", f"one of {model}", LOOK)

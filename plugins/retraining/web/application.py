"""The Models page as Airflow's API server serves it: read only, each page from stored objects.

A model is shown to those who may read its DAG `retrain__<model>`, by Airflow's auth manager.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from retraining.core.errors import RetrainingError
from retraining.core.jobs.places import Places, explain_waiting
from retraining.core.naming import storage
from retraining.core.naming.dags import RETRAIN, is_model, retrain_dag_id
from retraining.core.naming.pages import ALL_RUNS, FAILURES
from retraining.core.report.models_page.all_models import AllModels
from retraining.core.report.models_page.one_model import OneModel
from retraining.core.report.models_page.places import in_airflow
from retraining.core.report.models_page.reading import ReadModels, read_model, read_models
from retraining.core.report.models_page.rendering import render_all, render_one
from retraining.web.objects import HEADERS, message, page, show_all_runs, show_failure, show_folder, show_object
from retraining.web.stored import AirflowsBucket, Bucket, Stored


async def readable_models(user: GetUserDep) -> frozenset[str]:
    """Return the models that the caller may see; without a login Airflow's own dependency answers 401."""
    return await asyncio.to_thread(_readable, user)


def _readable(user: BaseUser) -> frozenset[str]:
    dag_ids = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    models = (dag_id.removeprefix(RETRAIN) for dag_id in dag_ids if dag_id.startswith(RETRAIN))
    return frozenset(model for model in models if is_model(model))


async def current_models(readable: Annotated[frozenset[str], Depends(readable_models)]) -> frozenset[str]:
    """Return those of the models that the caller may see whose DAGs are there: Airflow remembers those of long ago."""
    return await asyncio.to_thread(_current, readable)


def _current(models: Collection[str]) -> frozenset[str]:
    of_dags = {retrain_dag_id(model): model for model in models}
    with create_session() as session:
        found = session.query(DagModel.dag_id).filter(DagModel.is_stale.is_(False)).all()
    return frozenset(of_dags[dag_id] for (dag_id,) in found if dag_id in of_dags)


Readable = Annotated[frozenset[str], Depends(readable_models)]
Current = Annotated[frozenset[str], Depends(current_models)]


LOGGER = logging.getLogger(__name__)
FIRST = "Start monitor__<model> or retrain__<model> of a model, or maintain for all of them: their last task writes it."


def make_application(stored: Stored | None = None) -> FastAPI:
    """Return the application.

    Args:
        stored: Where its documents are; by default in the bucket of the settings.
    """
    documents = stored or Stored(AirflowsBucket())
    app = FastAPI(title="Models", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/models")
    async def show_all(readable: Readable, current: Current, request: Request) -> Response:
        number = _page_number(request.query_params.get("page", ""))
        return await documents.make(lambda bucket: _all_models(bucket, readable, current, number))

    @app.get("/models/{model}")
    async def show_one(model: str, readable: Readable) -> Response:
        _require_readable(model, readable)
        return await documents.make(lambda bucket: _one_model(bucket, model))

    @app.get(f"/models/{{model}}/{ALL_RUNS}")
    async def show_runs(model: str, readable: Readable) -> Response:
        _require_readable(model, readable)
        return await documents.make(lambda bucket: show_all_runs(bucket, model))

    @app.get("/models/{model}/{folder}/{key}")
    async def show_documents(model: str, folder: str, key: str, readable: Readable) -> Response:
        _require_readable(model, readable)
        return await documents.make(lambda bucket: show_folder(bucket, model, folder, key))

    @app.get("/models/{model}/{folder}/{key}/{name}")
    async def show_stored(model: str, folder: str, key: str, name: str, readable: Readable) -> Response:
        _require_readable(model, readable)
        return await documents.make(lambda bucket: show_object(bucket, model, folder, key, name))

    @app.get(f"/models/{{model}}/{{folder}}/{{key}}/{FAILURES}/{{name}}")
    async def show_why(model: str, folder: str, key: str, name: str, readable: Readable) -> Response:
        _require_readable(model, readable)
        return await documents.make(lambda bucket: show_failure(bucket, model, folder, key, name))

    app.add_exception_handler(HTTPException, _refuse)
    for kind in (RetrainingError, TimeoutError, Exception):
        app.add_exception_handler(kind, _explain)
    return app


def _require_readable(model: str, readable: frozenset[str]) -> None:
    if not is_model(model) or model not in readable:
        raise HTTPException(404)


def _all_models(bucket: Bucket, readable: frozenset[str], current: frozenset[str], number: int) -> Response:
    uri = storage.overview_uri(bucket.name)
    data, places = bucket.read_with(uri, storage.places_uri(bucket.name, bucket.region))
    if data is None and not current:
        return message("Nothing to show yet", "No task has written the Models page's object so far.", FIRST)
    models = ReadModels() if data is None else read_models(data, uri, readable)
    without_row = sorted(current - {summary.model for summary in models.rows} - set(models.broken))
    now = _now()
    shown = AllModels(
        models=models,
        now=now,
        places=in_airflow(),
        page=number,
        waiting=_waiting(bucket, places, now),
        without_row=without_row,
    )
    return page(render_all(shown))


def _one_model(bucket: Bucket, model: str) -> Response:
    uri = storage.model_overview_uri(bucket.name, model)
    data, places = bucket.read_with(uri, storage.places_uri(bucket.name, bucket.region))
    if data is None:
        raise HTTPException(404)
    overview, now = read_model(data, uri, model), _now()
    waiting = _waiting(bucket, places, now).get(model, ())
    return page(render_one(OneModel(overview=overview, now=now, places=in_airflow(model), waiting=waiting)))


def _waiting(bucket: Bucket, places: bytes | None, now: datetime) -> Mapping[str, Sequence[str]]:
    """Return what waits for room in the region, in sentences by model; unreadable places are the jobs' matter."""
    if places is None:
        return {}
    read = Places.parse(places, storage.places_uri(bucket.name, bucket.region), now)
    return explain_waiting(read, bucket.region, now)


def _page_number(text: str) -> int:
    """Return which part of the models is asked for; the first one where that is no number."""
    return max(1, int(text)) if re.fullmatch(r"[0-9]{1,4}", text) else 1


def _now() -> datetime:
    return datetime.now(UTC)


async def _refuse(request: Request, error: Exception) -> Response:
    """Say what Airflow or a route refused; who is not logged in goes to the login, and comes back."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    depth = _depth(request)
    airflow, models = "../" * depth, f"{'../' * (depth - 1)}models" if depth > 1 else None
    if status == 401 and "text/html" in request.headers.get("accept", ""):
        query = urlencode({"next": request.url.path})
        return RedirectResponse(f"{airflow}api/v2/auth/login?{query}", 303, HEADERS)
    if status == 404:
        why = "There is no such model, it has no run yet, or you may not read its DAG."
        return message("No such model", why, "Go back to all models, or ask who may give you that DAG.", 404, models)
    why = str(getattr(error, "detail", "")) or "The request was refused."
    return message("Refused", why, "Log in to Airflow again, and come back.", status, models)


def _depth(request: Request) -> int:
    """Return how many folders an address is below Airflow's own: that of all models lies in one, a model's in two."""
    path: str = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    return max(1, path.count("/"))


async def _explain(request: Request, error: Exception) -> Response:
    """Say what keeps the documents from being shown, and the way out."""
    del request
    LOGGER.error("the Models page could not be shown", exc_info=error)
    if isinstance(error, TimeoutError):
        why, way_out = "Cloud Storage did not answer in time.", "Try again in a minute."
        return message("No answer", why, way_out, 504)
    if not isinstance(error, RetrainingError):
        why = f"{type(error).__name__}: what was asked for could not be read."
        return message("Not readable", why, "The log of the API server has the rest.", 500)
    return message("Not readable", str(error), f"When that is put right: {FIRST}", 500)

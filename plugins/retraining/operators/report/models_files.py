"""The Models page as files in the bucket: for who has no page in Airflow. Who may read the bucket reads them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.core.report.models_page.all_models import AllModels
from retraining.core.report.models_page.one_model import OneModel
from retraining.core.report.models_page.places import in_bucket
from retraining.core.report.models_page.reading import read_model, read_models
from retraining.core.report.models_page.rendering import render_all, render_one
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.links import airflow_address

LOGGER = logging.getLogger(__name__)
HTML = "text/html; charset=utf-8"


def write_files(cloud: CloudPort, models: Sequence[str]) -> None:
    """Write the page of all models and that of each, from what was just stored of them.

    A model whose object cannot be read keeps no other's page from being written.
    """
    bucket, artifacts, now = cloud.settings.bucket, cloud.artifacts, cloud.clock.now()
    places = in_bucket(bucket, airflow_address())
    uris = {model: storage.model_overview_uri(bucket, model) for model in models}
    stored = artifacts.read_some([*uris.values(), storage.overview_uri(bucket)])
    for model, uri in uris.items():
        if uri not in stored:
            continue
        try:
            overview = read_model(stored[uri], uri, model)
        except ContractError as error:
            LOGGER.warning("no page of %s: %s", model, error)
            continue
        page = render_one(OneModel(overview=overview, now=now, places=places))
        artifacts.overwrite(storage.models_page_uri(bucket, model), page.encode(), HTML)
    uri = storage.overview_uri(bucket)
    if uri in stored:
        page = render_all(AllModels(models=read_models(stored[uri], uri), now=now, places=places, source=uri))
        artifacts.overwrite(storage.models_page_uri(bucket), page.encode(), HTML)

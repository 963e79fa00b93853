"""The run's page for humans, rendered from its documents."""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk import BaseOperator, Context

from retraining.core import names
from retraining.hooks.cloud import Cloud
from retraining.operators.edge import fail_for_good
from retraining.operators.links import ReportLink, object_address, push_link
from retraining.operators.record import RUN_URI


class ReportOperator(BaseOperator):
    """Render `report.html` from whatever documents the run came to, also after a failed task.

    Args:
        run_uri: Folder of the run's record.

    Returns:
        Address of the page.
    """

    template_fields = ("run_uri",)
    operator_extra_links = (ReportLink(),)

    def __init__(self, *, run_uri: str = RUN_URI, **kwargs: Any) -> None:  # noqa: ANN401 - BaseOperator's
        super().__init__(**kwargs)
        self.run_uri = run_uri

    @fail_for_good
    def execute(self, context: Context) -> str:
        """Read all documents, render, store."""
        from retraining.core import report  # its template engine is not needed to parse a DAG

        artifacts = Cloud().artifacts
        uris = [
            uri for uri in artifacts.list_uris(self.run_uri, suffix=".json") if "/" not in uri[len(self.run_uri) + 1 :]
        ]
        documents = {
            uri.rsplit("/", 1)[-1].removesuffix(".json"): json.loads(data)
            for uri, data in zip(uris, artifacts.read_many(uris), strict=True)
        }
        page_uri = names.report_page_uri(self.run_uri)
        artifacts.overwrite(page_uri, report.render(documents).encode(), "text/html; charset=utf-8")
        push_link(context["ti"], ReportLink, object_address(page_uri))
        return page_uri

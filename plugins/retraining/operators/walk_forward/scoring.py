"""The jobs of a walk-forward that no other run has: the export of the days, and each version's scoring on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from airflow.sdk import Context

from retraining.core.documents import Manifest, Plan, Report, Snapshot
from retraining.core.jobs import requests
from retraining.core.jobs.requests import JobRequest
from retraining.core.naming import storage
from retraining.core.walk_forward.requests import days_after, scoring_job
from retraining.hooks.ports import CloudPort
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.record.ownership import own_run
from retraining.operators.record.run_record import Record

WALK_URI = "{{ ti.xcom_pull(task_ids='plan', map_indexes=-1)['run_uri'] }}"
"""Folder of the walk-forward, for a task of a version."""
VERSION_URI = "{{ ti.xcom_pull(task_ids='plan_version', map_indexes=ti.map_index)['run_uri'] }}"
"""Folder of the run of a task's own version."""


def request_export_of_days(cloud: CloudPort, record: Record) -> JobRequest:
    """Request the export of the days that are scored. No check judges them: a bad day is one to learn of."""
    plan, snapshot = record.read_document(Plan), record.read_document(Snapshot)
    return requests.export_job(plan, snapshot, cloud.settings.service_account)


class ScoreVersionOperator(VertexJobOperator):
    """Have a version scored on each day from its date on.

    Args:
        walk_uri: Folder of the walk-forward.

    Returns:
        As `VertexJobOperator`.
    """

    template_fields = (*VertexJobOperator.template_fields, "walk_uri")

    def __init__(self, *, walk_uri: str = WALK_URI, **kwargs: Any) -> None:
        super().__init__(**{"run_uri": VERSION_URI, **kwargs})
        self.walk_uri = walk_uri

    def requested_job(self, cloud: CloudPort, context: Context) -> tuple[JobRequest, Callable[[], bool]]:
        """Write down which days are scored, and ask for them."""
        record, walked = self.record(cloud, context), own_run(cloud, context, self.walk_uri)
        version, days = record.read_document(Plan), walked.read_document(Plan)
        folder_uri = storage.scored_version_uri(walked.folder_uri, version.run_key)
        results_uri = storage.scored_version_uri(storage.results_uri(days), version.run_key)
        scored = Record(cloud.artifacts, folder_uri)
        scored.write_once(days_after(version, walked.read_document(Manifest)))
        job_request = scoring_job(
            version, record.read_document(Report), folder_uri, results_uri, cloud.settings.service_account
        )
        return job_request, partial(self.may_create, cloud, scored, job_request, context)

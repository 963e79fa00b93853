"""The task that judges the data before anything is paid for, beside what earlier runs counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TypeVar

from airflow.sdk import Context

from retraining.core.checks import dataset
from retraining.core.checks.history import History, build_history, passed_runs
from retraining.core.data import tfdv
from retraining.core.documents import Checks, Document, Plan, Snapshot, Statistics
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.run_keys import RunKey
from retraining.core.untyped import XCom
from retraining.hooks.ports import ArtifactsPort, CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.data.run_table import RunTable, job_attempt
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
_D = TypeVar("_D", bound=Document)

AT_A_TIME = 16
"""Runs whose verdicts are read at a time while passed ones are looked for."""


def read_history(artifacts: ArtifactsPort, plan: Plan) -> History:
    """Return the last runs of earlier times whose data passed, as many as `data.checks.volume_runs`.

    A document that cannot be read (another release wrote it) is passed over, with a warning.
    """
    runs_uri = storage.runs_uri(plan.bucket, plan.model)
    earlier = artifacts.list_folders(runs_uri, end=RunKey.parse(plan.run_key).stamp)
    stored = passed_runs(_verdicts(artifacts, earlier), plan.spec.data.checks.volume_runs)
    if stored:
        last = folder_of(stored[0][0])
        for kind in (Snapshot, Statistics):
            uri = storage.document_uri(last, kind.kind_name())
            data = artifacts.read_object(uri)
            if data is not None and _parse_document(kind, uri, data) is not None:
                stored.append((uri, data))
    return build_history(stored)


def _verdicts(artifacts: ArtifactsPort, folders: list[str]) -> Iterator[tuple[str, bytes, Checks]]:
    """Yield addresses and bytes of what is there and what it says, the newest run's first."""
    uris = [storage.document_uri(folder, Checks.kind_name()) for folder in reversed(folders)]
    for start in range(0, len(uris), AT_A_TIME):
        for uri, data in artifacts.read_some(uris[start : start + AT_A_TIME]).items():
            checks = _parse_document(Checks, uri, data)
            if checks is not None:
                yield uri, data, checks


def _parse_document(kind: type[_D], uri: str, data: bytes) -> _D | None:
    try:
        return kind.parse(data, uri)
    except ContractError as error:
        LOGGER.warning("not compared with: %s", error)
        return None


class CheckDataOperator(RunTask, CloudOperator):
    """Take the statistics of the run table and judge them, before anything is paid for.

    Returns:
        `{passed, warnings, quarantined}`: the days that the run goes on without; a run whose data does not pass fails
        here.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Take the statistics and judge them; refuse the run where a finding blocks it."""
        record = self.record(cloud, context)
        planned, taken = record.read_document(Plan), record.read_document(Snapshot)
        counted = record.find_document(Statistics) or record.write_once(
            RunTable(cloud, planned, job_attempt(context)).count(taken)
        )
        write_tfdv(cloud, record, planned, taken, counted)
        judged = record.find_document(Checks)
        if judged is None:
            judged = record.write_once(
                dataset.check_data(planned, taken, counted, read_history(cloud.artifacts, planned))
            )
        for finding in judged.findings:
            self.log.warning(
                "%s: %s (found %s, expected %s)", finding.check, finding.words, finding.found, finding.expected
            )
        dataset.require_passed(judged, record.uri(Checks))
        return {
            "passed": True,
            "warnings": [finding.words for finding in judged.findings],
            "quarantined": [day.isoformat() for day in judged.quarantined],
        }


def write_tfdv(cloud: CloudPort, record: Record, plan: Plan, snapshot: Snapshot, statistics: Statistics) -> None:
    """Store schema and statistics as TensorFlow Data Validation reads them, where a shard holds plain examples."""
    if tfdv.are_plain_examples(plan):
        for what, render in (("schema", tfdv.render_schema), ("statistics", tfdv.render_statistics)):
            text = render(plan, snapshot, statistics).encode()
            uri = storage.tfdv_uri(record.folder_uri, what)
            cloud.artifacts.write_once(uri, text, "text/plain; charset=utf-8")

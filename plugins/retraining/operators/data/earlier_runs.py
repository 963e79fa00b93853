"""What earlier runs of a model counted, for the checks that compare. No Airflow: `preview` reads it too."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TypeVar

from retraining.core.checks.history import History, build_history, passed_runs
from retraining.core.documents import Checks, Document, Plan, Snapshot, Statistics
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.run_keys import RunKey
from retraining.hooks.ports import ArtifactsPort

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

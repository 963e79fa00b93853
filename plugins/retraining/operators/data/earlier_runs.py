"""What earlier runs of a model counted, for the checks that compare. No Airflow: `preview` reads it too."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TypeVar

from retraining.core.checks import repetition
from retraining.core.checks.history import History, build_history, passed_runs
from retraining.core.documents import Checks, Decision, Document, Plan, Repetition, Snapshot, Statistics
from retraining.core.errors import ContractError
from retraining.core.naming import storage, vertex
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.run_keys import RunKey
from retraining.hooks.ports import ArtifactsPort, CloudPort
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


LOOKED_THROUGH = 8
"""Newest runs at most among which one that was rejected is looked for."""


def find_repetition(cloud: CloudPort, plan: Plan, snapshot: Snapshot, checks: Checks) -> Repetition | None:
    """Return the run that this one would repeat: the champion's, or the newest that was rejected against it.

    A document that cannot be read (another release wrote it) is no reason to end a run.

    Args:
        cloud: The hooks.
        plan: This run's.
        snapshot: Its rows.
        checks: Its findings.
    """
    champion = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION) if repetition.may_repeat(plan) else None
    if champion is None or champion.run_key in ("", plan.run_key):
        return None
    mine = repetition.Inputs(plan=plan, snapshot=snapshot, quarantined=_days(checks))
    try:
        its_run = _Earlier(cloud, storage.run_uri(plan.bucket, plan.model, champion.run_key))
        if its_run.is_repeated_by(mine):
            return repetition.of_champion(its_run.plan, champion.version_id)
        rejected = _newest_rejected(cloud, plan, champion.run_key)
        if rejected is not None and rejected[0].is_repeated_by(mine):
            return repetition.of_rejected(rejected[0].plan, rejected[1])
    except ContractError as error:
        LOGGER.warning("whether anything is new is not known: %s", error)
    return None


class _Earlier:
    """An earlier run: what it was made of, read where it is needed.

    Args:
        cloud: The hooks.
        folder: Of its record.
    """

    def __init__(self, cloud: CloudPort, folder: str) -> None:
        self.record = Record(cloud.artifacts, folder)

    @property
    def plan(self) -> Plan:
        """Its plan."""
        return self.record.read_document(Plan)

    def is_repeated_by(self, mine: repetition.Inputs) -> bool:
        """Return whether another run has the same rows and would do the same."""
        plan, snapshot = self.record.find_document(Plan), self.record.find_document(Snapshot)
        checks = self.record.find_document(Checks)
        if plan is None or snapshot is None or checks is None:
            return False
        return repetition.is_repetition(
            mine, repetition.Inputs(plan=plan, snapshot=snapshot, quarantined=_days(checks))
        )


def _newest_rejected(cloud: CloudPort, plan: Plan, champion_key: str) -> tuple[_Earlier, Decision] | None:
    """Return the newest run that came to a decision, where that was a rejection by who is champion now."""
    folders = cloud.artifacts.list_folders(storage.runs_uri(plan.bucket, plan.model))[::-1][: LOOKED_THROUGH + 1]
    for folder in folders:
        if folder.rstrip("/") == storage.run_uri(plan.bucket, plan.model, plan.run_key):
            continue
        earlier = _Earlier(cloud, folder.rstrip("/"))
        decision = earlier.record.find_document(Decision)
        if decision is None or decision.mode != "live":
            continue
        is_same = decision.champion is not None and decision.champion.run_key == champion_key
        return (earlier, decision) if decision.verdict == "reject" and is_same else None
    return None


def _days(checks: Checks) -> tuple[str, ...]:
    return tuple(day.isoformat() for day in checks.quarantined)


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

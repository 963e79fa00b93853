"""What earlier runs of a model left for a search: their studies, and the champion's record."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from retraining.core.documents import Document, EvaluateRequest, Evaluation, Plan, Report, Tuning
from retraining.core.errors import ContractError
from retraining.core.naming import storage, vertex
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.run_keys import RunKey
from retraining.core.tuning import decision, warm_start
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
# As many as are remembered, and some for those that cannot be read.
READ_STUDIES = 2 * warm_start.REMEMBERED_STUDIES
_D = TypeVar("_D", bound=Document)


def find_studies(cloud: CloudPort, plan: Plan) -> tuple[list[Tuning], int]:
    """Find the newest studies of runs before this one's time, newest last; and how many there are of any age.

    A document that cannot be read (another release wrote it) is passed over, with a warning.
    """
    before = RunKey.parse(plan.run_key).stamp
    uris = cloud.artifacts.list_uris(storage.studies_uri(plan.bucket, plan.model), end=before, suffix=".json")
    stored = cloud.artifacts.read_some(uris[-READ_STUDIES:])
    studies = (_readable(partial(Tuning.parse, data, uri)) for uri, data in stored.items())
    return [study for study in studies if study is not None], len(uris)


def _readable(read_document: Callable[[], _D | None]) -> _D | None:
    """Read a document; None, with a warning, where another release wrote what cannot be read."""
    try:
        return read_document()
    except ContractError as error:
        LOGGER.warning("not remembered: %s", error)
        return None


def find_champion(cloud: CloudPort, plan: Plan) -> decision.ChampionRecord | None:
    """Find the champion's hyperparameters, and its metric then and in its newest comparison before this run."""
    version = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
    if version is None or not decision.is_earlier(version.run_key, plan):
        return None
    record = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, version.run_key))
    report, champion_plan = (
        _readable(partial(record.find_document, Report)),
        _readable(partial(record.find_document, Plan)),
    )
    promoted, settled = (
        _readable(partial(record.find_document, Evaluation)),
        _readable(partial(record.find_document, Tuning)),
    )
    if report is None or champion_plan is None:
        return None
    known = decision.champion_record(plan, version.run_key, report, champion_plan, promoted, settled)
    comparisons = _comparisons(cloud, plan, version.run_key)
    return dataclasses.replace(known, now=decision.newest_metric(plan, version.run_key, comparisons))


def _comparisons(
    cloud: CloudPort, plan: Plan, champion: str
) -> Iterator[tuple[EvaluateRequest | None, Evaluation | None]]:
    """Yield requests and evaluations of the runs between the champion's and this one, newest first."""
    folder = storage.runs_uri(plan.bucket, plan.model)
    uris = cloud.artifacts.list_uris(folder, start=champion, end=plan.run_key, suffix="/evaluate_request.json")
    for uri in reversed(uris):
        record = Record(cloud.artifacts, folder_of(uri))
        yield (
            _readable(partial(record.find_document, EvaluateRequest)),
            _readable(partial(record.find_document, Evaluation)),
        )

"""What earlier runs of a model left for a search: their studies, and the champion's record."""

from __future__ import annotations

import logging
from collections.abc import Callable
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
    """The newest studies of runs before this one's time, newest last; and how many there are of any age.

    A document that cannot be read (another release wrote it) is passed over, with a warning.
    """
    before = RunKey.parse(plan.run_key).stamp
    uris = cloud.artifacts.list_uris(storage.studies_uri(plan.bucket, plan.model), end=before, suffix=".json")
    stored = cloud.artifacts.read_some(uris[-READ_STUDIES:])
    read = (_readable(partial(Tuning.parse, data, uri)) for uri, data in stored.items())
    return [study for study in read if study is not None], len(uris)


def _readable(read: Callable[[], _D | None]) -> _D | None:
    """What is read; None, with a warning, where another release wrote what cannot be."""
    try:
        return read()
    except ContractError as error:
        LOGGER.warning("not remembered: %s", error)
        return None


def find_champion(cloud: CloudPort, plan: Plan) -> decision.ChampionRecord | None:
    """The champion's hyperparameters, and its metric when it was promoted and in the newest duel before this run."""
    version = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
    if version is None or RunKey.parse(version.run_key).as_of >= plan.as_of:
        return None
    made = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, version.run_key))
    report, then = _readable(partial(made.find, Report)), _readable(partial(made.find, Plan))
    promoted, settled = _readable(partial(made.find, Evaluation)), _readable(partial(made.find, Tuning))
    if report is None or then is None:
        return None
    metric = plan.spec.evaluation.metric
    return decision.ChampionRecord(
        run_key=version.run_key,
        hyperparameters=report.hyperparameters,
        given=then.spec.training.hyperparameters,
        tuned=settled is not None and settled.source != "spec",
        then=getattr(promoted.challenger.metrics, metric) if promoted else None,
        now=_newest_duel(cloud, plan, version.run_key, metric),
    )


def _newest_duel(cloud: CloudPort, plan: Plan, champion: str, metric: str) -> float | None:
    """The champion's metric in the newest duel that it was in, before this run."""
    folder = storage.runs_uri(plan.bucket, plan.model)
    uris = cloud.artifacts.list_uris(folder, start=champion, end=plan.run_key, suffix="/evaluate_request.json")
    for uri in reversed(uris):
        duel = Record(cloud.artifacts, folder_of(uri))
        request, found = _readable(partial(duel.find, EvaluateRequest)), _readable(partial(duel.find, Evaluation))
        known = request is not None and request.champion is not None and request.champion.run_key == champion
        if known and found is not None and found.champion is not None:
            value: float | None = getattr(found.champion.metrics, metric)
            return value
    return None

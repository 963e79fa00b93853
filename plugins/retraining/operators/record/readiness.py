"""What the ML Test Score is made of: the documents of a model's newest run, and its history, read from the bucket."""

from __future__ import annotations

import logging
from typing import TypeVar

from retraining.core.documents import (
    Checks,
    Decision,
    Deployment,
    Document,
    Evaluation,
    ModelOverview,
    Plan,
    Registration,
    Timings,
    Tuning,
)
from retraining.core.documents.readiness import Readiness
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.core.notification.messages import recipients
from retraining.core.report.readiness.score import score_model
from retraining.core.report.readiness.stored import StoredRun, facts_of
from retraining.core.spec.model import ModelSpec
from retraining.hooks.ports import ArtifactsPort, CloudPort

LOGGER = logging.getLogger(__name__)
RUNS_LOOKED_AT = 20
"""Newest runs, of which the first live one with an evaluation counts."""
_D = TypeVar("_D", bound=Document)


def read_score(
    cloud: CloudPort, spec: ModelSpec, overview: ModelOverview | None = None, run_uri: str | None = None
) -> Readiness:
    """Return a model's score as of now.

    Args:
        cloud: The hooks.
        spec: The model, as its file says.
        overview: Its history; None: the stored one.
        run_uri: Folder of the run that counts; None: the newest live one with an evaluation.
    """
    artifacts, bucket = cloud.artifacts, cloud.settings.bucket
    if overview is None:
        uri = storage.model_overview_uri(bucket, spec.name)
        overview = _find(artifacts.read_some([uri]), uri, ModelOverview)
    run = read_run(artifacts, run_uri) if run_uri else newest_run(artifacts, bucket, spec.name)
    told = len(recipients(spec.notify, cloud.settings))
    return score_model(spec, facts_of(spec, cloud.clock.now().date(), told, run, overview))


def newest_run(artifacts: ArtifactsPort, bucket: str, model: str) -> StoredRun | None:
    """Return the newest live run of a model with an evaluation; None: there is none among the newest."""
    folders = artifacts.list_folders(storage.runs_uri(bucket, model))[::-1][:RUNS_LOOKED_AT]
    uris = {storage.document_uri(folder, Evaluation.kind_name()): folder for folder in folders}
    for uri in artifacts.existing(list(uris)):
        run = read_run(artifacts, uris[uri])
        if run is not None and run.plan.mode == "live":
            return run
    return None


def read_run(artifacts: ArtifactsPort, folder: str) -> StoredRun | None:
    """Return the documents of a run; None: it has no plan or no evaluation that can be read."""
    kinds: tuple[type[Document], ...] = (Plan, Evaluation, Checks, Decision, Registration, Deployment, Timings, Tuning)
    stored = artifacts.read_some([storage.document_uri(folder, kind.kind_name()) for kind in kinds])

    def find(kind: type[_D]) -> _D | None:
        return _find(stored, storage.document_uri(folder, kind.kind_name()), kind)

    plan, evaluation = find(Plan), find(Evaluation)
    if plan is None or evaluation is None:
        return None
    return StoredRun(
        plan=plan,
        evaluation=evaluation,
        checks=find(Checks),
        decision=find(Decision),
        registration=find(Registration),
        deployment=find(Deployment),
        timings=find(Timings),
        tuning=find(Tuning),
    )


def _find(stored: dict[str, bytes], uri: str, kind: type[_D]) -> _D | None:
    """Return a document; None of one that is not there or cannot be read: it satisfies no test."""
    try:
        return kind.parse(stored[uri], uri) if uri in stored else None
    except ContractError as error:
        LOGGER.warning("not counted: %s", error)
        return None

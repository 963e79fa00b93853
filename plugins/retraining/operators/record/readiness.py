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
from retraining.core.documents.readiness import Readiness, RunFacts
from retraining.core.errors import ContractError, SpecError
from retraining.core.naming import storage
from retraining.core.notification.messages import recipients
from retraining.core.report.readiness.score import score_model
from retraining.core.report.readiness.stored import StoredRun, facts_of, facts_of_run
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import spec_path
from retraining.hooks.ports import ArtifactsPort, CloudPort

LOGGER = logging.getLogger(__name__)
RUNS_LOOKED_AT = 20
"""Newest runs, of which the first live one with an evaluation counts."""
_D = TypeVar("_D", bound=Document)


def read_score(cloud: CloudPort, spec: ModelSpec) -> Readiness:
    """Return a model's score as of now, by its newest live run with an evaluation and its stored history."""
    run = newest_run(cloud.artifacts, cloud.settings.bucket, spec.name)
    return score_of(cloud, spec, run, read_history(cloud, spec.name))


def score_of(cloud: CloudPort, spec: ModelSpec, run: RunFacts | None, overview: ModelOverview | None) -> Readiness:
    """Return a model's score as of now, of what was read of it."""
    told = len(recipients(spec.notify, cloud.settings))
    return score_model(spec, facts_of(spec, cloud.clock.now().date(), told, run, overview))


def score_of_run(cloud: CloudPort, plan: Plan) -> Readiness:
    """Return a model's score as of now with the documents of one run, by the plan's spec.

    What the file alone says, who is told and what people state, is read from the file, as far as there is one.
    """
    spec = plan.spec
    try:
        file = load_spec(spec_path(include_path(), plan.model))
        spec = spec.model_copy(update={"notify": file.notify, "reviews": file.reviews})
    except SpecError as error:
        LOGGER.warning("scored without what the file alone says: %s", error)
    return score_of(cloud, spec, read_run(cloud.artifacts, plan.run_uri), read_history(cloud, plan.model))


def read_history(cloud: CloudPort, model: str) -> ModelOverview | None:
    """Return a model's history, as the Models page has it; None: there is none that can be read."""
    uri = storage.model_overview_uri(cloud.settings.bucket, model)
    return _find(cloud.artifacts.read_some([uri]), uri, ModelOverview)


def newest_run(artifacts: ArtifactsPort, bucket: str, model: str) -> RunFacts | None:
    """Return what the newest live run of a model with an evaluation left; None: there is none among the newest."""
    folders = artifacts.list_folders(storage.runs_uri(bucket, model))[::-1][:RUNS_LOOKED_AT]
    uris = {storage.document_uri(folder, Evaluation.kind_name()): folder for folder in folders}
    for uri in artifacts.existing(list(uris)):
        run = _read_documents(artifacts, uris[uri])
        if run is not None and run.plan.mode == "live":
            return facts_of_run(run)
    return None


def read_run(artifacts: ArtifactsPort, folder: str) -> RunFacts | None:
    """Return what a run left; None: it has no plan or no evaluation that can be read."""
    run = _read_documents(artifacts, folder)
    return facts_of_run(run) if run else None


def _read_documents(artifacts: ArtifactsPort, folder: str) -> StoredRun | None:
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

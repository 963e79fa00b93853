"""Scores of models of other frameworks: the jobs of their own trainers' images that make them.

In: who meets whom. Out: a job for each image, before the comparison's own: a model is asked by the image that made it,
and one image answers for both sides at once where it made both, so a comparison is at most three paid jobs and between
TensorFlow's models one.
"""

from __future__ import annotations

from collections.abc import Collection

from retraining.core.catalog.machines import planned_machines
from retraining.core.documents.evaluation import Challenger, Champion, EvaluateRequest
from retraining.core.documents.plan import Plan
from retraining.core.documents.scores import ModelScores, ScoredModel, ScoredSplit, ScoreRequest
from retraining.core.jobs.requests import COMMAND, JobRequest, custom_job
from retraining.core.naming import storage, vertex

SCORE = "score"


def scoring_jobs(
    plan: Plan,
    request: EvaluateRequest,
    champion_image: str | None,
    service_account: str | None = None,
    *,
    best_image: str | None = None,
    with_digest: Collection[str] = (),
) -> dict[str, JobRequest]:
    """Return the jobs by the first side that they score: `challenger`, `champion`; none where nobody is to be asked.

    Args:
        plan: The run.
        request: Who meets whom; the sides with `scores_uri` are scored by their own trainers.
        champion_image: Image that made the champion; None: it is not known.
        service_account: Whom the jobs run as.
        best_image: Image that made the best champion of late: it is asked beside another side of the same image.
        with_digest: Sides whose training reports have the digest of their request: an image that wrote it there writes
            it into scores too. A champion's image may be of an earlier release, which would refuse to be asked for it.
    """
    images: dict[str, dict[str, Challenger | Champion]] = {}
    if request.challenger.scores_uri and (image := plan.spec.training.runtime.scoring_image):
        images.setdefault(image, {})[vertex.CHALLENGER] = request.challenger
    if request.champion and request.champion.scores_uri and champion_image:
        images.setdefault(champion_image, {})[vertex.CHAMPION] = request.champion
    if request.best and request.best.scores_uri and best_image in images:
        images[best_image][vertex.BEST] = request.best
    return {
        next(iter(sides)): _scoring_job(
            plan, request, image, sides, service_account, digest_required=not sides.keys().isdisjoint(with_digest)
        )
        for image, sides in images.items()
    }


def _scoring_job(
    plan: Plan,
    request: EvaluateRequest,
    image: str,
    sides: dict[str, Challenger | Champion],
    service_account: str | None,
    *,
    digest_required: bool,
) -> JobRequest:
    first, last = next(iter(sides)), next(reversed(sides))
    asked = ScoreRequest(
        digest_required=digest_required,
        model=request.model,
        run_key=request.run_key,
        manifest_uri=request.manifest_uri,
        splits=_splits(request, sides),
        label=request.label,
        key=request.key,
        models=tuple(
            ScoredModel(model_uri=side.model_uri, scores_uri=side.scores_uri or "", model_digest=side.model_digest)
            for side in sides.values()
        ),
    )
    folder_uri = f"{storage.scores_uri(storage.results_uri(plan))}/{first}"
    request_uri = storage.document_uri(f"{storage.scores_uri(plan.run_uri)}/{first}", asked.kind_name())
    job = custom_job(plan, "evaluate", request_uri, folder_uri, planned_machines(plan, "evaluate"), service_account)
    container = {"image_uri": image, "command": list(COMMAND), "args": [SCORE, f"--request={request_uri}"]}
    for pool in job["job_spec"]["worker_pool_specs"]:
        pool["container_spec"] = container
    return JobRequest(
        request=asked,
        request_uri=request_uri,
        result_uri=asked.models[-1].scores_uri,
        adopted_uri=storage.scores_document_uri(plan.run_uri, last),
        result_kind=ModelScores.kind_name(),
        plan=plan,
        custom_job={**job, "display_name": vertex.job_display_name(plan.model, SCORE, plan.run_key)},
    )


def _splits(request: EvaluateRequest, sides: Collection[str]) -> tuple[ScoredSplit, ...]:
    """Return what an image's models answer: the challenger alone chooses a threshold."""
    asked: dict[ScoredSplit, bool] = {
        "test": True,
        "golden": request.golden,
        "validation": request.needs_validation and vertex.CHALLENGER in sides,
    }
    return tuple(name for name, there in asked.items() if there)


def unscored_champion(request: EvaluateRequest, champion: Champion, reason: str) -> ModelScores:
    """Return what stands in the place of a champion's scores when nobody can make them: the floor alone judges then."""
    return ModelScores(
        model=request.model,
        run_key=request.run_key,
        model_uri=champion.model_uri,
        splits={},
        skipped=f"cannot be scored any more: {reason}",
    )

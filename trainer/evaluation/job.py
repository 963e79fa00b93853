"""The evaluation job: challenger and champion score the same examples; nothing is decided here.

Comes in: an evaluate request, a source of examples and stored models. Goes out: `evaluation.json` with metrics, slices,
the interval of the difference, and the digests of the shards that both were judged on. A champion that cannot read
this run's examples, because a column is gone or the label has other classes, is left out and the evaluation says why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainer.contract.documents import (
    Difference,
    EvaluateRequest,
    Evaluation,
    GoldenScores,
    Manifest,
    ManifestSplit,
    Quality,
    RegressionLabel,
    Report,
    Scores,
    Shard,
    Slice,
)
from trainer.contract.reading import read_document, serialise
from trainer.errors import NEW_ATTEMPT, DataError
from trainer.evaluation.leakage import require_no_leakage
from trainer.evaluation.lite.artifacts import make_lite_models
from trainer.evaluation.scoring import Columns, Scored, load_model, score
from trainer.input.source import Source
from trainer.objective.bootstrap import bootstrap_difference
from trainer.objective.metrics import Floats, confusion, count_labels, measure_baseline
from trainer.objective.number_metrics import describe_answers, measure_baselines
from trainer.objective.quality import measure_by
from trainer.saved_model.model import StoredModel
from trainer.storage import Storage

LOGGER = logging.getLogger(__name__)
CHALLENGER, CHAMPION = "challenger", "champion"
_MOST_CLASSES_SHOWN = 100


def evaluate(request: EvaluateRequest, manifest: Manifest, source: Source, storage: Storage) -> Evaluation:
    """Score, measure, and write the evaluation.

    Args:
        source: Opens the split, and the split golden where the request asks for it.
        storage: Where models are and the evaluation goes.

    Raises:
        RequestError: No examples, an unknown column, a challenger that cannot read these examples, or a champion that
            was trained on some of them.
    """
    columns = Columns(manifest, request.label)
    columns.require_slices(request.slices)
    columns.require_numbers(request.baselines)
    split = source.open_split(request.split)
    models, skipped = _judged_models(request, columns, storage)
    if skipped:
        LOGGER.warning("evaluate: the challenger is not compared with the champion: %s", skipped)
    if request.champion and CHAMPION in models and request.prove_unseen:
        require_no_leakage(request, request.champion, manifest.splits[request.split], storage)
    scored = score(split, columns, request.label, models, request.slices, tuple(request.baselines.values()))
    judged = {name: _judge(request, scored, scores) for name, scores in scored.scores.items()}
    for name, judgement in judged.items():
        LOGGER.info("evaluate: %s on %s examples: %s", name, len(scored.labels), _numbers(judgement.metrics))
    full = judged[CHALLENGER].metrics
    lite = make_lite_models(request, manifest, split, full, storage)
    golden = _score_frozen_set(request, manifest, source, columns, models) if request.golden else None
    evaluation = Evaluation(
        model=request.model,
        run_key=request.run_key,
        split=request.split,
        rows=len(scored.labels),
        **_constants(request, scored),
        shards=_judged_shards(manifest.splits[request.split]),
        challenger=judged[CHALLENGER],
        champion=judged.get(CHAMPION),
        champion_skipped=skipped,
        difference=_difference(request, scored) if CHAMPION in judged else None,
        golden=golden,
        lite=lite,
    )
    storage.write_once(request.evaluation_uri, serialise(evaluation))
    return evaluation


def _judged_models(
    request: EvaluateRequest, columns: Columns, storage: Storage
) -> tuple[dict[str, StoredModel], str | None]:
    """Load the models that can be scored, the challenger first; and say why the champion is not among them."""
    report_uri = request.challenger.report_uri
    digest = read_document(Report, report_uri, storage).model_digest if report_uri else None
    challenger = load_model(request.challenger.model_uri, storage, digest)
    if misfit := columns.misfit(challenger):
        raise DataError(f"{CHALLENGER} model", *misfit, NEW_ATTEMPT)
    models = {CHALLENGER: challenger}
    if request.champion is None:
        return models, None
    champion = load_model(request.champion.model_uri, storage)
    if misfit := columns.misfit(champion):
        return models, f"champion version {request.champion.version_id} {misfit[0]}"
    return {**models, CHAMPION: champion}, None


def _constants(request: EvaluateRequest, scored: Scored) -> dict[str, Any]:
    """Return the evaluation's fields about the labels, and what answers without a model reach."""
    label, labels = request.label, scored.labels
    if isinstance(label, RegressionLabel):
        columns = {name: (column, scored.numbers[column]) for name, column in request.baselines.items()}
        baselines = measure_baselines(labels, scored.scores[CHALLENGER], columns, label.quantiles)
        return {"label_rate": None, "baseline": None, "baselines": baselines}
    if label.kind == "binary":
        return {"label_rate": float(labels.mean()), "baseline": measure_baseline(labels)}
    counts = tuple(count_labels(labels, label.classes).tolist())
    return {"label_rate": None, "label_counts": counts, "baseline": measure_baseline(labels, label.classes)}


def _score_frozen_set(
    request: EvaluateRequest,
    manifest: Manifest,
    source: Source,
    columns: Columns,
    models: Mapping[str, StoredModel],
) -> GoldenScores:
    """Score the frozen set.

    Raises:
        DataError: The run has none.
    """
    if "golden" not in manifest.splits:
        raise DataError(
            f"manifest of run {manifest.run_key}",
            "no split golden",
            "one, as the request asks for it",
            f"Delete {request.manifest_uri}, then clear the run's export task and what follows it",
        )
    scored = score(source.open_split("golden"), columns, request.label, models)
    metrics_by_model = {
        name: measure_by(request.label, scored.labels, scores) for name, scores in scored.scores.items()
    }
    for name, metrics in metrics_by_model.items():
        LOGGER.info("evaluate: %s on %s examples of the frozen set: %s", name, len(scored.labels), _numbers(metrics))
    return GoldenScores(
        rows=len(scored.labels),
        shards=_judged_shards(manifest.splits["golden"]),
        challenger=metrics_by_model[CHALLENGER],
        champion=metrics_by_model.get(CHAMPION),
    )


def _judged_shards(split: ManifestSplit) -> tuple[Shard, ...]:
    return tuple(Shard(uri=file.uri, sha256=file.sha256, rows=file.rows) for file in split.files)


def _judge(request: EvaluateRequest, scored: Scored, scores: Floats) -> Scores:
    """Measure one model on all examples and on every slice that is large enough, largest first."""
    slices = []
    for column, values in scored.slices.items():
        distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        for index in np.argsort(-counts, kind="stable"):
            if counts[index] >= request.min_slice_examples:
                chosen = inverse == index
                metrics = measure_by(request.label, scored.labels[chosen], scores[chosen])
                value = distinct[index].decode(errors="replace")
                slices.append(Slice(column=column, value=value, rows=int(counts[index]), metrics=metrics))
    metrics, label = measure_by(request.label, scored.labels, scores), request.label
    if isinstance(label, RegressionLabel):
        answers = describe_answers(scored.labels, scores, label.quantiles)
        return Scores(metrics=metrics, slices=tuple(slices), answers=answers)
    return Scores(metrics=metrics, slices=tuple(slices), confusion=_confusion(scored.labels, scores))


def _difference(request: EvaluateRequest, scored: Scored) -> Difference | None:
    return bootstrap_difference(
        scored.labels,
        scored.scores[CHALLENGER],
        scored.scores[CHAMPION],
        metric=request.metric,
        samples=request.bootstrap.samples,
        seed=request.bootstrap.seed,
        confidence=request.bootstrap.confidence,
        quantiles=request.label.quantiles if isinstance(request.label, RegressionLabel) else (),
    )


def _confusion(labels: Floats, scores: Floats) -> tuple[tuple[int, ...], ...] | None:
    if scores.ndim == 1 or scores.shape[1] > _MOST_CLASSES_SHOWN:
        return None
    return tuple(tuple(row) for row in confusion(labels, scores).tolist())


def _numbers(metrics: Quality) -> str:
    return ", ".join(f"{key} {value:.4f}" for key, value in vars(metrics).items() if value is not None)

"""The scoring job: models of this trainer answer the examples of a run, perhaps of another framework's run.

Comes in: a score request, a source of examples and stored models. Goes out: a document `scores` for each model. One
that cannot read these examples gets a document that says why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import tensorflow as tf

from trainer.contract.documents import EvaluateRequest, Manifest, ModelScores, ScoreRequest, ScoresFile
from trainer.contract.reading import serialise
from trainer.evaluation.scores import Examples, write_scores
from trainer.evaluation.scoring import Columns, load_model, score
from trainer.input.source import Source
from trainer.saved_model.model import StoredModel
from trainer.storage import Storage

LOGGER = logging.getLogger(__name__)


def score_models(
    request: ScoreRequest, manifest: Manifest, source: Source, storage: Storage, request_digest: str | None = None
) -> None:
    """Score, and write the documents in the request's order.

    Args:
        request_digest: SHA-256 of the request's bytes.

    Raises:
        RequestError: No examples, a model that is gone, or scores that are not finite.
    """
    columns = Columns(manifest, request.label)
    models = {asked.scores_uri: load_model(asked.model_uri, storage, asked.model_digest) for asked in request.models}
    mismatches = {uri: columns.mismatch(model) for uri, model in models.items()}
    readable = {uri: model for uri, model in models.items() if mismatches[uri] is None}
    files: dict[str, dict[str, ScoresFile]] = {uri: {} for uri in models}
    for name in request.splits if readable else ():
        scored = score(source.open_split(name), columns, request.label, request.key, readable)
        examples = Examples(split=manifest.splits[name], keys=scored.keys, labels=scored.labels)
        for uri, scores in scored.scores.items():
            files[uri][name] = write_scores(file_uri(uri, name), examples, scores, storage)
    for asked in request.models:
        mismatch = mismatches[asked.scores_uri]
        document = scores_document(
            request, request_digest, models[asked.scores_uri], files[asked.scores_uri], mismatch and mismatch[0]
        )
        storage.replace(asked.scores_uri, serialise(document))
        LOGGER.info("score: %s: %s", asked.model_uri, mismatch[0] if mismatch else f"wrote {asked.scores_uri}")


def scores_document(
    request: ScoreRequest | EvaluateRequest,
    request_digest: str | None,
    model: StoredModel,
    splits: Mapping[str, ScoresFile],
    skipped: str | None = None,
) -> ModelScores:
    """Return what says that a model's files are all there."""
    return ModelScores(
        model=request.model,
        run_key=request.run_key,
        request_digest=request_digest,
        model_uri=model.uri,
        model_digest=model.digest,
        framework={"tensorflow": tf.__version__},
        splits=splits,
        skipped=skipped,
    )


def file_uri(document_uri: str, split: str) -> str:
    """Return where a model's answers to a split go: beside the document."""
    return f"{document_uri.rpartition('/')[0]}/{split}.parquet"

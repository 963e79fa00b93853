"""The evaluator of a job: scores each new checkpoint on the validation split, beside the training, for TensorBoard.

Comes in: the training's request. Goes out: scalars `evaluator/…` in the job's log directory. It decides nothing and
ends with the job: a training does not wait for it, and does not miss it.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from trainer.contract.results import is_done
from trainer.errors import DataError
from trainer.features.preprocessing import FeatureColumns, Preprocessing
from trainer.input.source import Source
from trainer.objective.outputs import objective_of
from trainer.training.callbacks import Validation
from trainer.training.checkpoints import Checkpoints
from trainer.training.examples import Encoding
from trainer.training.recipe import Recipe
from trainer.training.training_job import TrainingJob

LOGGER = logging.getLogger(__name__)
_POLL_S = 2.0


def evaluate_checkpoints(job: TrainingJob, source: Source, sleep: Callable[[float], None] = time.sleep) -> None:
    """Score checkpoints until the report is there.

    Args:
        source: Opens the validation split.
        sleep: Waits for some seconds.
    """
    request, manifest, storage = job.request, job.manifest, job.storage
    objective = objective_of(request.label, request.auxiliary_labels, job.statistics, request.weight)
    recipe = Recipe.from_training(request.training, objective)
    columns = FeatureColumns(request.features, manifest.columns, manifest.images)
    preprocessing = Preprocessing(request.features, job.statistics, request.crosses)
    split = source.open_split("validation", may_be_empty=True)
    examples = Encoding.of(manifest, columns, preprocessing, recipe.objective).blocks(split, None).plain
    model = recipe.build_model(preprocessing.shape)
    validation = Validation(examples, recipe.objective)
    validation.set_model(model)
    validation.on_train_begin()
    checkpoints = Checkpoints(request.checkpoint_uri, storage)
    attached, scored = checkpoints.attach(model, writes=False), 0
    with tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.create_file_writer(str(Path(folder) / "evaluator"))
        while not is_done(request, storage):
            state = checkpoints.newest_state()
            if state is None or state.step <= scored:
                sleep(_POLL_S)
                continue
            try:
                attached.restore(state.step)
            except DataError:  # damaged, or replaced by a newer one meanwhile
                sleep(_POLL_S)
                continue
            scored, metrics = state.step, recipe.objective.epoch_metrics(*validation.score())
            numbers = " ".join(f"{name}={value:.4f}" for name, value in metrics.items())
            LOGGER.info("evaluator: step %s %s", scored, numbers)
            with writer.as_default(step=scored):
                for name, value in metrics.items():
                    tf.summary.scalar(f"evaluator/{name}", value)
            writer.flush()
            storage.upload_folder(Path(folder), request.tensorboard_uri)

"""Steps fed by the reader and from memory: `python -m bench.train_step REQUEST ROUNDS STEPS` prints one JSON line.

In: a request that `train_files` wrote. Out: seconds per step of both, round by round, in turns in one process. The
reader is the training's own with its cache off: each epoch reads, parses, encodes, shuffles and batches the files
again. From memory, the same batch comes again and again. The model, the loop and the compiled function are the same.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from trainer.batches import plan_steps
from trainer.building import Recipe
from trainer.contract import read
from trainer.documents import Manifest, TrainRequest
from trainer.examples import Encoding
from trainer.input import open_source
from trainer.input.pipeline import Reading, epochs
from trainer.labels import labels_of
from trainer.learning_rate import plan_rate
from trainer.models.features import FeatureColumns, Preprocessing
from trainer.replica import Replica
from trainer.statistics import Statistics
from trainer.storage import Storage
from trainer.strategy import choose_strategy

_STEPS_PER_CALL = 8


def main(request_uri: str, rounds: int, steps: int) -> None:
    """Measure and print."""
    storage = Storage()
    request = read(TrainRequest, request_uri, storage)
    manifest = read(Manifest, request.manifest_uri, storage)
    preprocessing = Preprocessing(request.features, read(Statistics, request.statistics_uri, storage))
    columns = FeatureColumns(request.features, manifest.schema, manifest.images)
    encoding = Encoding.of(request, manifest, columns, preprocessing)
    recipe = Recipe.read(request.training, labels_of(request.label))
    strategy = choose_strategy(Replica())
    plan = plan_steps(request.training, manifest.splits["train"], strategy, strategy.share)
    model = recipe.build(preprocessing.shape)
    recipe.compile(model, plan_rate(request.training, recipe.hyperparameters.learning_rate, plan, strategy))
    model.steps_per_execution = _STEPS_PER_CALL
    with open_source(manifest, {"train": manifest.splits["train"]}, storage) as source:
        split = source.open_split("train")
        uncached = encoding.blocks(split, request.seed, Reading(cache_bytes=0))
        batches = epochs(uncached, first=0, last=1 << 30, batch_size=request.training.batch_size, seed=request.seed)
        one = next(iter(batches))
        feeds = {"reader": batches, "memory": tf.data.Dataset.from_tensors(one).repeat()}
        taken = _take_turns(model, {name: iter(feed) for name, feed in feeds.items()}, rounds, steps)
    weights = sum(variable.shape.num_elements() for variable in model.trainable_variables)
    print(json.dumps({"seconds_per_step": taken, "parameters": weights, "batch_size": request.training.batch_size}))


def _take_turns(
    model: Any,  # noqa: ANN401 - a Keras model
    feeds: dict[str, Iterator[Any]],
    rounds: int,
    steps: int,
) -> dict[str, list[float]]:
    """Take some steps with each feed, again and again; the first calls, which compile, do not count."""
    call = model.make_train_function()
    taken: dict[str, list[float]] = {name: [] for name in feeds}
    for number in range(rounds + 1):
        for name, feed in feeds.items():
            start = time.monotonic()
            for _ in range(steps // _STEPS_PER_CALL):
                logs = call(feed)
            float(logs["loss"])
            if number:
                taken[name].append((time.monotonic() - start) / (steps // _STEPS_PER_CALL * _STEPS_PER_CALL))
    return taken


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).absolute()), int(sys.argv[2]), int(sys.argv[3]))

"""Steps fed by the reader and from memory: `python -m bench.train_step REQUEST ROUNDS EPOCHS` prints one JSON line.

In: a request that `train_files` wrote. Out: seconds per step of each feed, round by round, in turns in one process:

    files    the training's own reader with its cache off: each epoch reads, unpacks, parses and encodes the files again
    cache    the same reader as a training has it: from the second pass on, it shuffles and batches what is in memory
    memory   one batch that is there already, again and again

A turn is of whole epochs, so all that an epoch costs is in it. Model, loop and compiled function are the same. `alone`
is the reader with its cache off and nobody who trains, per batch: what the two cores have to do beside a step.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from trainer.cluster.replica import Replica
from trainer.cluster.strategy import choose_strategy
from trainer.contract.documents import Manifest, Statistics, TrainRequest
from trainer.contract.reading import read_document
from trainer.features.preprocessing import FeatureColumns, Preprocessing
from trainer.input import open_source
from trainer.input.pipeline import Reading, epochs
from trainer.input.source import Split
from trainer.objective.outputs import objective_of
from trainer.storage import Storage
from trainer.training.batches import plan_steps
from trainer.training.examples import Encoding
from trainer.training.learning_rate import plan_rate
from trainer.training.model import compile_model
from trainer.training.recipe import Recipe

_STEPS_PER_CALL = 8
_ENDLESS = 1 << 30

Feed = Iterator[Any]  # batches
Turn = Callable[[], object]  # some steps


def main(request_uri: str, rounds: int, epochs_per_turn: int) -> None:
    """Measure and print."""
    storage = Storage()
    request = read_document(TrainRequest, request_uri, storage)
    manifest = read_document(Manifest, request.manifest_uri, storage)
    statistics = read_document(Statistics, request.statistics_uri, storage)
    preprocessing = Preprocessing(request.features, statistics)
    columns = FeatureColumns(request.features, manifest.columns, manifest.images)
    objective = objective_of(request.label, statistics=statistics)
    encoding = Encoding.of(manifest, columns, preprocessing, objective)
    steps = manifest.splits["train"].rows // request.training.batch_size * epochs_per_turn
    model = _build(request, manifest, preprocessing)
    with open_source(manifest, {"train": manifest.splits["train"]}, storage) as source:
        feeds = _feeds(request, encoding, source.open_split("train"))
        alone = feeds.pop("alone")
        call = model.make_train_function()
        turns: dict[str, Turn] = {name: partial(_train, call, feed, steps) for name, feed in feeds.items()}
        turns["alone"] = lambda: [next(alone) for _ in range(steps)]
        taken = _take_turns(turns, rounds)
    measured = {
        "parameters": sum(variable.shape.num_elements() for variable in model.trainable_variables),
        "batch_size": request.training.batch_size,
        "seconds_per_step": {name: [seconds / steps for seconds in some] for name, some in taken.items()},
    }
    print(json.dumps(measured))


def _build(request: TrainRequest, manifest: Manifest, preprocessing: Preprocessing) -> Any:  # noqa: ANN401 - a Keras model
    recipe = Recipe.from_training(request.training, objective_of(request.label))
    strategy = choose_strategy(Replica())
    plan = plan_steps(request.training, manifest.splits["train"], strategy, strategy.share)
    model = recipe.build_model(preprocessing.shape)
    compile_model(recipe, model, plan_rate(request.training, recipe.of_steps.learning_rate, plan, strategy))
    model.steps_per_execution = _STEPS_PER_CALL
    return model


def _feeds(request: TrainRequest, encoding: Encoding, split: Split) -> dict[str, Feed]:
    """Return endless batches by feed."""

    def batches(reading: Reading | None) -> tf.data.Dataset:
        blocks = encoding.blocks(split, request.seed, reading)
        if reading is None:
            for _ in blocks.plain:  # a training's first pass, which counts rows
                pass
        return epochs(blocks, first=0, last=_ENDLESS, batch_size=request.training.batch_size, seed=request.seed)

    uncached, cached = batches(Reading(cache_bytes=0)), batches(None)
    memory = tf.data.Dataset.from_tensors(next(iter(cached))).repeat().map(partial(_unsized, cached.element_spec))
    datasets = {"files": uncached, "cache": cached, "memory": memory, "alone": uncached}
    return {name: iter(dataset) for name, dataset in datasets.items()}


def _unsized(spec: Any, *batch: Any) -> Any:  # noqa: ANN401 - nested tensors
    """Forget how many rows a batch has, as the reader's batches do: the same function is compiled for both."""
    return tf.nest.map_structure(
        lambda tensor, wanted: tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=wanted.shape), batch, spec
    )


def _train(call: Callable[[Feed], Mapping[str, Any]], feed: Feed, steps: int) -> None:
    for _ in range(steps // _STEPS_PER_CALL):
        logs = call(feed)
    float(logs["loss"])


def _take_turns(turns: Mapping[str, Turn], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each turn; the first round, in which functions are compiled, does not count."""
    taken: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, turn in turns.items():
            start = time.monotonic()
            turn()
            if number:
                taken[name].append(time.monotonic() - start)
    return taken


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).absolute()), int(sys.argv[2]), int(sys.argv[3]))

"""A training's examples: both splits parsed, encoded, counted and kept in memory.

Comes in: a source of examples, the features and their preprocessing. Goes out: `Examples`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from trainer.cluster.strategy import Strategy
from trainer.contract.documents import Manifest
from trainer.features.preprocessing import FeatureColumns, Preprocessing
from trainer.features.values import parse_feature
from trainer.input.pipeline import Blocks, Reading, blocks
from trainer.input.source import ParseSpec, Source, Split, Tensors
from trainer.input.tracing import traced_plainly
from trainer.objective.labels import label_type, weight_type
from trainer.objective.outputs import Objective
from trainer.training.augmentation import ImageAugmentation
from trainer.training.recipe import Recipe
from trainer.training.training_job import TrainingJob


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Both splits as model inputs: blocks of (encoded features, labels).

    Attributes:
        preprocessing: Encoded the features.
        train: Blocks.
        validation: Blocks.
        train_rows: Examples that this process reads.
        validation_rows: Examples that this process reads.
        raw_validation: The validation split as a prediction request would hold it, but for images, which are pixels;
            in batches.
        rebuild_train: Makes `train` again, on another machine of the job.
        augmentation: Changes the images of `train`, after all of this; None: nothing does.
        splits: Both, with what proves them.
    """

    preprocessing: Preprocessing
    train: Blocks
    validation: tf.data.Dataset
    train_rows: int
    validation_rows: int
    raw_validation: tf.data.Dataset
    rebuild_train: Callable[[], Blocks]
    augmentation: ImageAugmentation | None = None
    splits: Mapping[str, CheckedSplit] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CheckedSplit:
    """A split that is proven while it is read.

    Attributes:
        name: Of the split.
        split: Where its examples come from.
        spec: Columns that are read.
        encoded: Its blocks.
        objective: Knows which labels are right.
    """

    name: str
    split: Split
    spec: ParseSpec
    encoded: Blocks
    objective: Objective

    def blocks(self) -> Iterator[tuple[Tensors, npt.NDArray[Any]]]:
        """Yield (encoded features, targets) of a whole pass, and check labels and the number of examples.

        Raises:
            DataError: A record is corrupt, a label is no class, or examples are missing.
        """
        rows = 0
        with self.split.reading(self.spec):
            for inputs, targets in self.encoded.plain:
                values = targets.numpy()
                rows += len(values)
                self.objective.require_labels(values, f"split {self.name}, ")
                yield inputs, values
        self.split.require_rows(rows)


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """From a split's columns to (encoded features, labels).

    Attributes:
        spec: Columns to read.
        encode: What becomes of them.
    """

    spec: ParseSpec
    encode: Callable[[Tensors], Tensors]

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        columns: FeatureColumns,
        preprocessing: Preprocessing,
        objective: Objective,
    ) -> Encoding:
        """Return a model's.

        Raises:
            DataError: There is no such label column, or its type has no such values.
        """

        def encode(parsed: Tensors) -> Tensors:
            return preprocessing(columns.raw(parsed)), objective.targets(parsed)

        parsed = {each.name: parse_feature(label_type(each, manifest)) for each in objective.labels}
        if objective.weighting:
            column = objective.weighting.column
            parsed[column] = parse_feature(weight_type(column, manifest))
        return cls(spec={**columns.parse_spec(), **parsed}, encode=encode)

    def blocks(self, split: Split, seed: int | None, reading: Reading | None = None) -> Blocks:
        """Return a split's blocks; the seed decides the order of files."""
        return blocks(split, self.spec, self.encode, seed, reading)


def read_examples(job: TrainingJob, source: Source, recipe: Recipe, strategy: Strategy) -> Examples:
    """Parse and encode both splits, and check that the examples are as many as the manifest says.

    Args:
        source: Opens the splits train and validation.
        recipe: Of the model that reads them.
        strategy: Says where lookup tables must be.

    Raises:
        RequestError: A feature that the table or the architecture has no place for.
        DataError: No examples, not as many as the manifest says, a corrupt one, or a label that is no class.
    """
    examples = open_examples(job, source, recipe, strategy)
    for split in examples.splits.values():
        for _ in split.blocks():  # which fills its cache
            pass
    job.clock.lap("read")
    return examples


def open_examples(
    job: TrainingJob, source: Source, recipe: Recipe, strategy: Strategy, *, kept: bool = True
) -> Examples:
    """Open both splits; who reads them checks them (`Examples.splits`).

    Args:
        source: Opens the splits train and validation.
        recipe: Of the model that reads them.
        strategy: Says where lookup tables must be.
        kept: Whether their blocks stay in memory after the first pass, where they fit; those whose order is not that
            of files always do.

    Raises:
        RequestError: A feature that the table or the architecture has no place for.
        DataError: No examples.
    """
    job.clock.lap("startup")
    request, manifest = job.request, job.manifest
    columns = FeatureColumns(request.features, manifest.columns, manifest.images)
    with strategy.tables():
        preprocessing = Preprocessing(request.features, job.statistics, request.crosses)
    recipe.require_inputs(preprocessing.shape)
    encoding = Encoding.of(manifest, columns, preprocessing, recipe.objective)
    splits = {"train": source.open_split("train"), "validation": source.open_split("validation", may_be_empty=True)}
    seeds = {"train": request.seed, "validation": None}

    def encoded(name: str) -> Blocks:
        reading = None if kept or not splits[name].stable else Reading(cache_bytes=0)
        return encoding.blocks(splits[name], seeds[name], reading)

    spec, objective = encoding.spec, recipe.objective
    checked = {
        name: CheckedSplit(name=name, split=split, spec=spec, encoded=encoded(name), objective=objective)
        for name, split in splits.items()
    }
    return Examples(
        preprocessing=preprocessing,
        splits=checked,
        train=checked["train"].encoded,
        validation=checked["validation"].encoded.plain,
        train_rows=splits["train"].rows,
        validation_rows=splits["validation"].rows,
        raw_validation=_raw(splits["validation"], encoding.spec, columns),
        rebuild_train=lambda: encoding.blocks(splits["train"], seeds["train"]),
        augmentation=ImageAugmentation.of(
            request.training.augmentation,
            preprocessing.shape.images,
            getattr(recipe.hyperparameters, "augmentation_strength", 1.0),
        ),
    )


@traced_plainly
def _raw(split: Split, spec: ParseSpec, columns: FeatureColumns) -> tf.data.Dataset:
    return split.batches(spec).map(columns.raw)

"""A training's examples: both splits parsed, encoded, counted and kept in memory.

Comes in: a source of examples, the features and their preprocessing. Goes out: `Examples`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    """

    preprocessing: Preprocessing
    train: Blocks
    validation: tf.data.Dataset
    train_rows: int
    validation_rows: int
    raw_validation: tf.data.Dataset
    rebuild_train: Callable[[], Blocks]
    augmentation: ImageAugmentation | None = None


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
    job.clock.lap("startup")
    request, manifest = job.request, job.manifest
    columns = FeatureColumns(request.features, manifest.columns, manifest.images)
    with strategy.tables():
        preprocessing = Preprocessing(request.features, job.statistics, request.crosses)
    recipe.require_inputs(preprocessing.shape)
    encoding = Encoding.of(manifest, columns, preprocessing, recipe.objective)
    splits = {"train": source.open_split("train"), "validation": source.open_split("validation", may_be_empty=True)}
    seeds = {"train": request.seed, "validation": None}
    encoded = {name: encoding.blocks(split, seeds[name]) for name, split in splits.items()}
    for name, split in splits.items():
        _count_examples(encoded[name], split, encoding.spec, recipe.objective, name)
    job.clock.lap("read")
    return Examples(
        preprocessing=preprocessing,
        train=encoded["train"],
        validation=encoded["validation"].plain,
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


def _count_examples(encoded: Blocks, split: Split, spec: ParseSpec, objective: Objective, name: str) -> None:
    """Read a split once (which fills its cache), check the labels and the number of examples.

    Raises:
        DataError: A record is corrupt, a label is no class, or examples are missing.
    """
    rows = 0
    with split.reading(spec):
        for _, targets in encoded.plain:
            values = targets.numpy()
            rows += len(values)
            objective.require_labels(values, f"split {name}, ")
    split.require_rows(rows)

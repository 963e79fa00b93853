"""The sections `features` and `label` of a model's YAML: what a model reads, and what it predicts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from retraining.core.spec.section import ColumnName, Section

MAX_FEATURES = 2000
Size = Annotated[int, Field(ge=1, le=4096)]
"""Of an image's side, in pixels, or of a sequence, in steps."""
EmbeddingDim = Annotated[int, Field(ge=1, le=1024)]


class NumericFeature(Section):
    """A number."""

    name: ColumnName
    kind: Literal["numeric"]
    normalize: bool = True
    """Subtract the training mean, divide by the training standard deviation."""
    missing: Literal["mean", "zero"] = "mean"
    """What stands in for NULL; a second column says that it was missing."""


class CategoricalFeature(Section):
    """A category. The 1000 most frequent training values get an embedding each, all others share one."""

    name: ColumnName
    kind: Literal["categorical"]
    embedding_dim: EmbeddingDim | None = None
    """Width of the embedding; null: min(50, round(1.6 * values ** 0.56))."""


class ImageFeature(Section):
    """A PNG or JPEG in a BYTES column, resized once at export; 1 channel is grey, 3 are RGB."""

    name: ColumnName
    kind: Literal["image"]
    height: Size
    width: Size
    channels: Literal[1, 3] = 3
    encoding: Literal["raw", "png", "jpeg"] = "raw"


class SequenceFeature(Section):
    """An ARRAY of numbers or categories."""

    name: ColumnName
    kind: Literal["sequence"]
    of: Literal["numeric", "categorical"]
    """What its elements are."""
    length: Size
    """Steps that the model reads; shorter ones are filled up at the end."""
    keep: Literal["first", "last"] = "last"
    """Which end of a longer one is read."""
    normalize: bool = True
    """Of numbers: by mean and deviation of the elements."""
    embedding_dim: EmbeddingDim | None = None
    """Of categories; null: chosen by the number of values."""

    @model_validator(mode="after")
    def _embeds_categories(self) -> Self:
        if self.of == "numeric" and self.embedding_dim is not None:
            raise ValueError("embedding_dim is of categories, and this is a sequence of numbers: remove it")
        return self


class TextFeature(Section):
    """A text as it stands, for architectures that bring a module that reads texts."""

    name: ColumnName
    kind: Literal["text"]


Feature = Annotated[
    NumericFeature | CategoricalFeature | ImageFeature | SequenceFeature | TextFeature, Field(discriminator="kind")
]


class BinaryLabel(Section):
    """What is predicted: 0 or 1."""

    name: ColumnName
    kind: Literal["binary"]


class MulticlassLabel(Section):
    """What is predicted: one of `classes` whole numbers from 0."""

    name: ColumnName
    kind: Literal["multiclass"]
    classes: Annotated[int, Field(ge=2, le=100_000)]


Label = Annotated[BinaryLabel | MulticlassLabel, Field(discriminator="kind")]

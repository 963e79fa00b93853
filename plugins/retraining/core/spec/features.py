"""The sections `features` and `label` of a model's YAML: what a model reads, and what it predicts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from retraining.core.spec.section import ColumnName, Section

MAX_FEATURES = 2000


class NumericFeature(Section):
    """A number. `missing` names what stands in for NULL: the training mean or zero."""

    name: ColumnName
    kind: Literal["numeric"]
    normalize: bool = True
    missing: Literal["mean", "zero"] = "mean"


class CategoricalFeature(Section):
    """A category. `embedding_dim` null: the trainer chooses it by the number of values."""

    name: ColumnName
    kind: Literal["categorical"]
    embedding_dim: Annotated[int, Field(ge=1, le=1024)] | None = None


class ImageFeature(Section):
    """A PNG or JPEG in a BYTES column, resized once at export; 1 channel is grey, 3 are RGB."""

    name: ColumnName
    kind: Literal["image"]
    height: Annotated[int, Field(ge=1, le=4096)]
    width: Annotated[int, Field(ge=1, le=4096)]
    channels: Literal[1, 3] = 3
    encoding: Literal["raw", "png", "jpeg"] = "raw"


class SequenceFeature(Section):
    """An ARRAY of numbers or categories. Longer ones are cut to `length` at the other end than `keep`."""

    name: ColumnName
    kind: Literal["sequence"]
    of: Literal["numeric", "categorical"]
    length: Annotated[int, Field(ge=1, le=4096)]
    keep: Literal["first", "last"] = "last"
    normalize: bool = True
    embedding_dim: Annotated[int, Field(ge=1, le=1024)] | None = None

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

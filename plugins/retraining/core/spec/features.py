"""The sections `features` and `label` of a model's YAML: what a model reads, and what it predicts."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.metrics import METRICS, Metric, metrics_of
from retraining.core.spec.costs import ClassCosts, ErrorCosts, matrix_of_classes, matrix_of_errors, require_class_costs
from retraining.core.spec.section import ColumnName, Section

MAX_FEATURES = 2000
Size = Annotated[int, Field(ge=1, le=4096)]
"""Of an image's side, in pixels, or of a sequence, in steps."""
MAX_HASH_BUCKETS = 1_000_000
HashBuckets = Annotated[int, Field(ge=1, le=MAX_HASH_BUCKETS)]
DEFAULT_VOCABULARY = 1000
"""The most frequent training values that get an embedding of their own where a file says nothing."""
VocabularySize = Annotated[int, Field(ge=1, le=DEFAULT_VOCABULARY)]
BucketCount = Annotated[int, Field(ge=2, le=20)]
Transform = Literal["log1p", "clip", "quantile", "buckets"]
EmbeddingDim = Annotated[int, Field(ge=1, le=1024)]
ObjectsFolder = Annotated[
    str, StringConstraints(max_length=1024, pattern=r"^gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]/([^#?*\[\]]*/)?$")
]
"""A bucket or a folder of it, with a slash at its end."""


def is_none(value: object) -> bool:
    """Whether a key is left out of documents, so that a file without it gives those of earlier releases."""
    return value is None


def is_empty(value: Sized) -> bool:
    """As `is_none`, of lists."""
    return not value


class NumericFeature(Section):
    """A number."""

    name: ColumnName
    """Column of the query."""
    kind: Literal["numeric"]
    normalize: bool = True
    """Subtract the training mean, divide by the training standard deviation."""
    missing: Literal["mean", "zero"] = "mean"
    """What stands in for NULL: the training split's mean, or 0; a second column says that it was missing."""
    transform: Annotated[Transform | None, Field(exclude_if=is_none)] = None
    """What it goes through inside the model, [before it is normalised](#transforms): `log1p` is ln(1 + value)."""
    low: Annotated[float | None, Field(exclude_if=is_none)] = None
    """Of transform `clip`: what is below counts as this; `null`: the training split's 5 % quantile."""
    high: Annotated[float | None, Field(exclude_if=is_none)] = None
    """Of transform `clip`: what is above counts as this; `null`: the training split's 95 % quantile."""
    buckets: Annotated[BucketCount | None, Field(exclude_if=is_none)] = None
    """Of transform `buckets`: as many of equally many training rows; `null`: 10, or `boundaries`."""
    boundaries: Annotated[tuple[float, ...], Field(max_length=100, exclude_if=is_empty)] = ()
    """Of transform `buckets`: where each but the first begins, rising."""

    @model_validator(mode="after")
    def _options_fit_the_transform(self) -> Self:
        of_clip = [name for name in ("low", "high") if getattr(self, name) is not None]
        of_buckets = [name for name in ("buckets", "boundaries") if getattr(self, name)]
        for transform, given in (("clip", of_clip), ("buckets", of_buckets)):
            if given and self.transform != transform:
                raise ValueError(
                    f"{' and '.join(given)} of transform {transform}, and transform is {self.transform or 'null'}: "
                    f"set transform: {transform}, or remove {'it' if len(given) == 1 else 'them'}"
                )
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low:g} and {self.high:g}")
        if len(of_buckets) == 2:
            raise ValueError("buckets and boundaries: a number of buckets, or where they begin. Remove one of them")
        if list(self.boundaries) != sorted(set(self.boundaries)):
            raise ValueError(f"boundaries are rising numbers, each once, got {list(self.boundaries)}")
        return self


class CategoricalFeature(Section):
    """A category. The 1000 most frequent training values get an embedding each, all others share one."""

    name: ColumnName
    """Column of the query."""
    kind: Literal["categorical"]
    embedding_dim: EmbeddingDim | None = None
    """Width of the embedding; `null`: min(50, round(1.6 * values ** 0.56))."""
    max_vocabulary: Annotated[VocabularySize | None, Field(exclude_if=is_none)] = None
    """How many of the most frequent training values get an embedding of their own; `null`: 1000."""
    hash_buckets: Annotated[HashBuckets | None, Field(exclude_if=is_none)] = None
    """All other values share so many embeddings [by their hash](#categories-beyond-the-vocabulary); `null`: one."""


class ImageFeature(Section):
    """A PNG or JPEG, resized once at export. It stands in a BYTES column, or in an object."""

    name: ColumnName
    """Column of the query."""
    kind: Literal["image"]
    height: Size
    """Pixels to which the export resizes."""
    width: Size
    """Pixels to which the export resizes."""
    channels: Literal[1, 3] = 3
    """1: grey, 3: RGB."""
    encoding: Literal["raw", "png", "jpeg"] = "raw"
    """How it is stored: `raw` is bytes of pixels."""
    objects: ObjectsFolder | None = None
    """Folder `gs://bucket/folder/`; the column then has the addresses of [objects](data.md#images-as-objects) in it. It
    is listed by each run."""


class SequenceFeature(Section):
    """An ARRAY of numbers or categories."""

    name: ColumnName
    """Column of the query."""
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
    """Width of the embedding, of categories; `null`: by the number of values."""

    @model_validator(mode="after")
    def _embeds_categories(self) -> Self:
        if self.of == "numeric" and self.embedding_dim is not None:
            raise ValueError("embedding_dim is of categories, and this is a sequence of numbers: remove it")
        return self


TimePart = Literal["hour", "weekday", "month", "days"]


class TimeFeature(Section):
    """A time, of which the model reads parts."""

    name: ColumnName
    """Column of the query."""
    kind: Literal["time"]
    parts: Annotated[tuple[TimePart, ...], Field(min_length=1, max_length=4)]
    """[What it reads](#parts-of-times): `hour` of the day, `weekday` and `month` as cycles, `days` as a number."""

    @model_validator(mode="after")
    def _parts_are_distinct(self) -> Self:
        if twice := next((part for part in self.parts if self.parts.count(part) > 1), None):
            raise ValueError(f"parts has {twice} twice: remove one")
        return self


Delimiter = Annotated[str, StringConstraints(min_length=1, max_length=10)]
NgramSize = Annotated[int, Field(ge=1, le=5)]


class BagFeature(Section):
    """A text of several values, words or n-grams, of which the model reads the mean of their embeddings."""

    name: ColumnName
    """Column of the query."""
    kind: Literal["bag"]
    of: Literal["values", "words", "characters"]
    """[What it is taken apart into](#bags): what stands between delimiters, words, or n-grams of characters."""
    delimiter: Delimiter | None = None
    """Of `values`: what stands between them; `null`: a comma."""
    sizes: Annotated[tuple[NgramSize, ...], Field(max_length=5)] = ()
    """Of `words` and `characters`: how many in a row are one part, such as `[1, 2]`; `[]`: words one by one, three
    characters."""
    length: Size = 64
    """Parts that the model reads, the first ones."""
    hash_buckets: Annotated[int, Field(ge=2, le=MAX_HASH_BUCKETS)] = 1000
    """Embeddings that all parts share by their hash."""
    embedding_dim: EmbeddingDim | None = None
    """Width of the embedding; `null`: min(50, round(1.6 * hash_buckets ** 0.56))."""

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        if self.of == "values" and self.sizes:
            raise ValueError("sizes are of words and characters, and this is a bag of values: remove them")
        if self.of != "values" and self.delimiter is not None:
            raise ValueError(f"delimiter is of values, and this is a bag of {self.of}: remove it, or set of: values")
        if twice := next((size for size in self.sizes if self.sizes.count(size) > 1), None):
            raise ValueError(f"sizes has {twice} twice: remove one")
        return self


class TextFeature(Section):
    """A text as it stands, for architectures that bring a module that reads texts."""

    name: ColumnName
    """Column of the query."""
    kind: Literal["text"]


Feature = Annotated[
    NumericFeature | CategoricalFeature | ImageFeature | SequenceFeature | TextFeature | TimeFeature | BagFeature,
    Field(discriminator="kind"),
]


class Cross(Section):
    """Categories, or buckets of numbers, that together are one more category, by a hash of them."""

    columns: Annotated[tuple[ColumnName, ...], Field(min_length=2, max_length=3)]
    """Two or three features of kind `categorical`, or of `transform: buckets`."""
    buckets: Annotated[int, Field(ge=2, le=MAX_HASH_BUCKETS)] = 1000
    """How many embeddings the combinations share by their hash."""
    embedding_dim: EmbeddingDim | None = None
    """Width of the embedding; `null`: min(50, round(1.6 * buckets ** 0.56))."""


def cross_problem(cross: Cross, features: Sequence[Feature]) -> str | None:
    """Return why features cannot be crossed; None: they can."""
    by_name = {feature.name: feature for feature in features}
    name = f"the cross of {' and '.join(cross.columns)}"
    if len(set(cross.columns)) < len(cross.columns):
        return f"{name} has a column twice: remove one"
    for column in cross.columns:
        feature = by_name.get(column)
        if feature is None:
            return f"{name}: {column!r} is no feature. Add it to features, or remove the cross"
        if feature.kind != "categorical" and not (feature.kind == "numeric" and feature.transform == "buckets"):
            return (
                f"{name}: {column!r} is {feature.kind}; expected kind: categorical, or numbers of transform: buckets. "
                "Set one of them, or remove the cross"
            )
    return None


MAX_CLASS_NAMES = 1000
MAX_CLASS_NAME = 200
ClassName = Annotated[str, StringConstraints(max_length=MAX_CLASS_NAME)]
ClassNames = Annotated[tuple[ClassName, ...], Field(max_length=MAX_CLASS_NAMES)]
"""Texts of a label's column, each once."""
ClassCount = Annotated[int, Field(ge=2, le=100_000)]


def _require_classes(names: ClassNames, *, exactly: int | None = None) -> None:
    """Refuse names of classes of which one stands twice, or that are too few or too many.

    Raises:
        ValueError: They are.
    """
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"classes has {twice!r} twice: remove one")
    if exactly is not None and len(names) != exactly:
        way_out = "set kind: multiclass" if len(names) > exactly else "add the other text, or remove the key"
        raise ValueError(f"classes of a binary label are two texts, got {len(names)}: {way_out}")
    if len(names) < 2:
        raise ValueError(f"classes lists {len(names)}, and a label needs two or more: add the other texts")


class BinaryLabel(Section):
    """0 or 1, or one of two texts."""

    name: ColumnName
    """Column of the query."""
    kind: Literal["binary"]
    classes: Annotated[ClassNames | None, Field(exclude_if=is_none)] = None
    """The two [texts of the column](#labels-that-are-texts), the second of which is 1; `null`: it has 0 and 1."""
    costs: Annotated[ErrorCosts | None, Field(exclude_if=is_none)] = None
    """What the two errors [cost](evaluation.md#costs), in any unit: the metric `cost`."""

    @model_validator(mode="after")
    def _has_two_classes(self) -> Self:
        if self.classes is not None:
            _require_classes(self.classes, exactly=2)
        return self


class MulticlassLabel(Section):
    """One of `classes` whole numbers from 0, or one of the texts that it lists."""

    name: ColumnName
    """Column of the query."""
    kind: Literal["multiclass"]
    classes: ClassCount | ClassNames
    """How many classes, or the [texts of the column](#labels-that-are-texts): a model's scores have their order."""
    costs: Annotated[ClassCosts | None, Field(exclude_if=is_none)] = None
    """What errors [cost](evaluation.md#costs), in any unit, by the right class and the answer: the metric `cost`. What
    is not said costs 1. As `{lynx: {cat: 5}}`."""

    @model_validator(mode="after")
    def _has_classes(self) -> Self:
        if not isinstance(self.classes, int):
            _require_classes(self.classes)
        if self.costs is not None:
            require_class_costs(self.costs, [class_text(self, number) for number in range(class_count(self))])
        return self


Loss = Literal["mse", "mae", "huber", "poisson", "quantile"]
Quantile = Annotated[float, Field(gt=0, lt=1)]
MEDIAN = 0.5


class RegressionLabel(Section):
    """A number.

    Training sees it by its mean and deviation over the training split, after `transform`; answers, scores and metrics
    are in the label's own unit. `huber` changes from squares to absolute values at one such deviation. `poisson` is for
    counts and other numbers from 0 on: the model's output is the logarithm of the answer.
    """

    name: ColumnName
    """Column of the query."""
    kind: Literal["regression"]
    loss: Loss = "mse"
    """What training minimises; `poisson` is of counts."""
    transform: Literal["none", "log1p"] = "none"
    """What the label goes through before training, and back after the model: `log1p` is ln(1 + label)."""
    quantiles: Annotated[tuple[Quantile, ...], Field(max_length=99)] = ()
    """Of loss `quantile`: what the model answers with, two or more, rising; the median 0.5 among them is the answer
    that is judged."""
    min: float | None = None
    """The least label that is right."""
    max: float | None = None
    """The greatest label that is right."""

    @model_validator(mode="after")
    def _loss_fits(self) -> Self:
        if self.loss == "quantile" and not self.quantiles:
            raise ValueError("loss quantile needs quantiles, such as [0.1, 0.5, 0.9]")
        if self.loss != "quantile" and self.quantiles:
            raise ValueError(
                f"quantiles {list(self.quantiles)} are learnt by loss quantile, and loss is {self.loss}: "
                "set loss: quantile, or remove them"
            )
        if list(self.quantiles) != sorted(set(self.quantiles)):
            raise ValueError(f"quantiles are rising numbers, each once, got {list(self.quantiles)}")
        if len(self.quantiles) == 1:
            raise ValueError(f"quantiles {list(self.quantiles)} is one: give two or more; loss mae learns the median")
        if self.quantiles and MEDIAN not in self.quantiles:
            raise ValueError(
                f"quantiles {list(self.quantiles)} lack {MEDIAN}: the median is the answer that is judged. Add it"
            )
        if self.loss == "poisson" and self.transform != "none":
            raise ValueError("loss poisson has a logarithm of its own: remove transform")
        return self

    @model_validator(mode="after")
    def _bounds_fit(self) -> Self:
        if self.min is not None and self.max is not None and not self.min < self.max:
            raise ValueError(f"min must be below max, got {self.min:g} and {self.max:g}")
        if self.loss == "poisson" and ((self.min or 0) < 0 or (self.max is not None and self.max <= 0)):
            raise ValueError("loss poisson is of numbers from 0 on: min and max must not be below that")
        if self.transform == "log1p" and ((self.min or 0) <= -1 or (self.max is not None and self.max <= -1)):
            raise ValueError("transform log1p is of numbers above -1: min and max must be too")
        return self

    @property
    def lowest(self) -> float | None:
        """The least label that is right, by `min` or by the loss; `transform: log1p` needs more than -1 beside that."""
        return 0.0 if self.loss == "poisson" and self.min is None else self.min

    @property
    def bounds(self) -> str:
        """Which labels are right, for a sentence."""
        parts = [f"at least {self.lowest:g}"] if self.lowest is not None else []
        if not parts and self.transform == "log1p":
            parts.append("above -1 (transform log1p)")
        if self.max is not None:
            parts.append(f"at most {self.max:g}")
        return f"finite numbers{''.join(f', {part}' for part in parts)}"


Label = Annotated[BinaryLabel | MulticlassLabel | RegressionLabel, Field(discriminator="kind")]
Weight = Annotated[float, Field(gt=0, le=1000)]
"""Of an auxiliary label's loss; that of the label is 1."""


class AuxiliaryBinaryLabel(BinaryLabel):
    """0, 1 or NULL; or one of two texts, or NULL."""

    weight: Weight = 1.0
    """Its loss times this is added to the label's, whose own weight is 1."""


class AuxiliaryMulticlassLabel(MulticlassLabel):
    """One of `classes` whole numbers from 0, or one of the texts that it lists; or NULL."""

    weight: Weight = 1.0
    """Its loss times this is added to the label's, whose own weight is 1."""


class AuxiliaryRegressionLabel(RegressionLabel):
    """A number, or NULL."""

    weight: Weight = 1.0
    """Its loss times this is added to the label's, whose own weight is 1."""


AuxiliaryLabel = Annotated[
    AuxiliaryBinaryLabel | AuxiliaryMulticlassLabel | AuxiliaryRegressionLabel, Field(discriminator="kind")
]


def class_names(label: Label | AuxiliaryLabel) -> tuple[str, ...]:
    """Return the texts that a label's column has, in the order of their numbers; empty: it has numbers."""
    return () if label.kind == "regression" or isinstance(label.classes, int) else label.classes or ()


def class_count(label: Label | AuxiliaryLabel) -> int:
    """Return how many values a label of classes may have, from 0 on."""
    if label.kind == "multiclass" and isinstance(label.classes, int):
        return label.classes
    return len(class_names(label)) or 2


def cost_matrix(label: Label | AuxiliaryLabel) -> tuple[tuple[float, ...], ...]:
    """Return what each answer costs, by the right class; empty: the label has no costs. [classes, classes]."""
    if label.kind == "regression" or label.costs is None:
        return ()
    if label.kind == "binary":
        return matrix_of_errors(label.costs)
    return matrix_of_classes(label.costs, [class_text(label, number) for number in range(class_count(label))])


def class_text(label: Label | AuxiliaryLabel, number: int) -> str:
    """Return what a class is called: by its text, or its number."""
    names = class_names(label)
    return names[number] if number < len(names) else str(number)


OUTPUT_NAMES = ("score", "scores", "prediction", "quantiles")
"""What the label's own output is called; each auxiliary label is an output by its name. Where classes have names there
is one more, `class`, which no column can be called."""


def deciding_metrics(label: Label | AuxiliaryLabel) -> list[Metric]:
    """Return the metrics by which models of a label can be compared: those of its kind that it has."""
    has_quantiles = label.kind == "regression" and bool(label.quantiles)
    is_amount = label.kind != "regression" or label.loss == "poisson" or (label.min is not None and label.min >= 0)
    has_costs = bool(cost_matrix(label))
    classes = class_count(label) if label.kind == "multiclass" else 0
    return [
        name
        for name in metrics_of(label.kind)
        if METRICS[name].decides
        and not 0 < classes <= METRICS[name].likeliest
        and (has_quantiles or not METRICS[name].of_quantiles)
        and (is_amount or not METRICS[name].of_amounts)
        and (has_costs or not METRICS[name].of_costs)
    ]


def plain_label(label: AuxiliaryLabel) -> Label:
    """Return an auxiliary label as one of its kind, without the weight."""
    kinds: dict[str, type[BinaryLabel | MulticlassLabel | RegressionLabel]] = {
        "binary": BinaryLabel,
        "multiclass": MulticlassLabel,
        "regression": RegressionLabel,
    }
    return kinds[label.kind].model_validate(label.model_dump(exclude={"weight"}))

"""From raw columns to what a model reads. The same function feeds training and stands inside the stored model.

Comes in: one tensor per feature, as a prediction request has it: float32 with NaN, or a string with "" for a missing
value; a list of either; a time is int64 microseconds; an image is the string of a PNG or JPEG, or in training its
pixels. Goes out: `Encoded`, all numbers in one matrix (parts of times too), all category ids in another, the pixels of
each image, the steps of each sequence, the codes of each bag, and texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import tensorflow as tf

from trainer.contract.column_types import ROLE_TYPES
from trainer.contract.documents import (
    CategoricalFeature,
    Column,
    Cross,
    Feature,
    ImageColumn,
    NumericFeature,
    SequenceFeature,
    Statistics,
)
from trainer.errors import RequestError
from trainer.features.bags import Bag
from trainer.features.crosses import cross_codes, cross_name
from trainer.features.images import Image
from trainer.features.numbers import Buckets, Number, hold
from trainer.features.sequences import Sequence as Steps
from trainer.features.sequences import window
from trainer.features.times import Time
from trainer.features.values import (
    as_list,
    as_number,
    as_text,
    as_time,
    is_missing,
    parse_feature,
    parse_list_feature,
)
from trainer.features.vocabulary import FIRST_ID, OTHER_ID, Vocabulary, codes_of
from trainer.input.images import ImageFeature
from trainer.input.source import ColumnSpec

Encoded = dict[str, Any]
"""`numeric`: float32 [B, n_numbers]; `categorical`: int32 [B, n_categories]; `image_<name>` of each image: uint8
[B, height, width, channels]; `sequence_<name>` of each sequence: float32 [B, length, 2] or int32 [B, length];
`text_<name>` of each text: string [B]; `bag_<name>` of each bag: int32 [B, length]."""


@dataclass(frozen=True, kw_only=True)
class Category:
    """A categorical feature's place in the model.

    Attributes:
        name: Of the feature.
        ids: How many different ids there are, the missing one and the other one included.
        embedding_dim: Width of its embedding.
    """

    name: str
    ids: int
    embedding_dim: int


@dataclass(frozen=True, kw_only=True)
class InputShape:
    """What an architecture must know to be built.

    Attributes:
        numbers: Width of the numeric matrix.
        categories: One per column of the categorical matrix.
        images: One per feature of that kind.
        sequences: One per feature of that kind.
        texts: One per feature of that kind.
        bags: One per feature of that kind.
        quantiles: Of each of the first numbers, in the unit of the matrix: its distinct quantiles over the training
            split, rising. The numbers after them are parts of times, or only say that another one is missing.
    """

    numbers: int
    categories: tuple[Category, ...]
    images: tuple[Image, ...] = ()
    sequences: tuple[Steps, ...] = ()
    texts: tuple[Text, ...] = ()
    bags: tuple[Bag, ...] = ()
    quantiles: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text feature's place in the model: it is handed on as it is.

    Attributes:
        name: Of the feature.
    """

    name: str

    @property
    def key(self) -> str:
        """Name among the model's inputs."""
        return f"text_{self.name}"


class FeatureColumns:
    """Reads the requested features out of parsed examples.

    Args:
        images: How its images are stored.

    Raises:
        RequestError: A feature is not in the table, or its type does not fit its kind.
    """

    def __init__(
        self, features: Sequence[Feature], schema: Sequence[Column], images: Sequence[ImageColumn] = ()
    ) -> None:
        self._features = tuple(features)
        self._types = {column.name: column.type for column in schema}
        self._lists = {column.name for column in schema if column.mode == "REPEATED"}
        self._images = {image.name: image for image in images}
        for feature in features:
            self._require(feature)

    def parse_spec(self) -> dict[str, Any]:
        """Return the features as a split takes them."""
        return {feature.name: self._column_spec(feature) for feature in self._features}

    def raw(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        """Turn parsed columns into what a prediction request would hold, but for images. [B] or [B, length] each."""
        return {feature.name: self._raw(feature, parsed[feature.name]) for feature in self._features}

    def _column_spec(self, feature: Feature) -> ColumnSpec:
        if feature.kind == "image":
            return ImageFeature.of(self._images[feature.name])
        type_ = self._types[feature.name]
        return parse_list_feature(type_) if feature.kind == "sequence" else parse_feature(type_)

    def _raw(self, feature: Feature, values: tf.Tensor) -> tf.Tensor:
        if feature.kind == "image":
            return values
        if feature.kind == "sequence":
            lists = as_list(values, self._types[feature.name], numeric=feature.of == "numeric")
            return window(lists, feature.length, feature.keep)
        if feature.kind == "time":
            return as_time(values, self._types[feature.name])
        return as_number(values) if feature.kind == "numeric" else as_text(values, self._types[feature.name])

    def _require(self, feature: Feature) -> None:
        type_, is_list = self._types.get(feature.name), feature.name in self._lists
        allowed = ROLE_TYPES[_role(feature)]
        if type_ not in allowed or is_list != (feature.kind == "sequence"):
            mode = "REPEATED " if feature.kind == "sequence" else ""
            actual = f"column of type {'REPEATED ' if is_list else ''}{type_}"
            raise RequestError(
                f"feature {feature.name!r}",
                actual if type_ else "there is no such column in the exported table",
                f"one of {', '.join(f'{mode}{name}' for name in allowed)} for a {feature.kind} feature",
                "Derive it in the query",
            )
        if feature.kind == "image" and feature.name not in self._images:
            raise RequestError(
                f"feature {feature.name!r}", "the export stored no image of it", "one, as in the manifest's images"
            )


class Preprocessing(tf.Module):  # type: ignore[misc]  # TensorFlow has no types
    """Normalises and looks up; its constants come from the training split's statistics and are stored with the model.

    A number or a time that had missing values in training gets one more column that says so. A category's id is 0 for a
    missing value, 1 for one that has no embedding of its own, and from 2 on the rank in the vocabulary; so are those of
    a sequence.
    """

    def __init__(self, features: Sequence[Feature], statistics: Statistics, crosses: Sequence[Cross] = ()) -> None:
        super().__init__(name="preprocessing")
        self._crosses = tuple(crosses)
        self._numbers = [Number.of(feature, statistics) for feature in features if _is_number(feature)]
        self._times = [Time.of(feature, statistics) for feature in features if feature.kind == "time"]
        self._categories: list[tuple[Category, Any]] = []
        self._images = tuple(Image.of(feature) for feature in features if feature.kind == "image")
        self._texts = tuple(Text(name=feature.name) for feature in features if feature.kind == "text")
        bags = (feature for feature in features if feature.kind == "bag")
        self._bags = tuple(Bag.of_feature(feature, _width(feature.hash_buckets)) for feature in bags)
        self._sequences: list[tuple[Steps, Any]] = []
        for feature in features:
            if feature.kind == "categorical":
                self._categories.append(_category(feature, statistics))
            elif feature.kind == "numeric" and not _is_number(feature):
                self._categories.append(_bucketed(feature, statistics))
            elif feature.kind == "sequence":
                self._sequences.append(_sequence(feature, statistics))
        pairs = [*self._categories, *self._sequences]
        # A list of resources, so that the module stores them.
        self._tables = [by.table for _, by in pairs if isinstance(by, Codes)]
        self.vocabulary = Vocabulary.of(features, statistics)

    @property
    def shape(self) -> InputShape:
        """What an architecture must know."""
        indicated = len(self._indicated)
        return InputShape(
            numbers=len(self._numbers) + sum(time.width for time in self._times) + indicated,
            categories=(*(category for category, _ in self._categories), *map(_crossed, self._crosses)),
            images=self._images,
            sequences=tuple(sequence for sequence, _ in self._sequences),
            texts=self._texts,
            bags=self._bags,
            quantiles=tuple(number.quantiles for number in self._numbers),
        )

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numeric matrix's columns, before those that say that one is missing."""
        return tuple(self._numbers)

    @property
    def categories(self) -> dict[str, Codes | Buckets]:
        """What gives ids, by the name of each column of the categorical matrix but the crosses."""
        return {category.name: by for category, by in self._categories}

    @property
    def crosses(self) -> dict[str, Cross]:
        """The crosses, by the name of their column of the categorical matrix."""
        return {cross_name(cross.columns): cross for cross in self._crosses}

    def __call__(self, raw: Mapping[str, Any]) -> Encoded:
        """Encode raw columns. [B] or [B, T] each → [B, n_numbers], [B, n_categories], pixels, steps, texts."""
        batch = tf.shape(next(iter(raw.values())))[0]
        numeric = self._numeric(raw) if self._numbers or self._times else tf.zeros([batch, 0])
        ids = [by.codes(raw[category.name]) for category, by in self._categories]
        ids += self._crossed_ids(raw, ids)
        categorical = tf.stack(ids, axis=1) if ids else tf.zeros([batch, 0], tf.int32)
        pixels = {image.key: image.pixels(raw[image.name]) for image in self._images}
        steps = {sequence.key: sequence.steps(raw[sequence.name], _lookup(by)) for sequence, by in self._sequences}
        texts = {text.key: raw[text.name] for text in self._texts}
        bags = {bag.key: bag.codes(raw[bag.name]) for bag in self._bags}
        return {"numeric": numeric, "categorical": categorical, **pixels, **steps, **texts, **bags}

    def _crossed_ids(self, raw: Mapping[str, tf.Tensor], ids: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        values = {
            category.name: codes if isinstance(by, Buckets) else raw[category.name]
            for (category, by), codes in zip(self._categories, ids, strict=True)
        }
        return [cross_codes([values[name] for name in cross.columns], cross.buckets) for cross in self._crosses]

    @property
    def _indicated(self) -> list[str]:
        """Names of the numbers and times of which one more column says that they are missing."""
        numbers = [number.name for number in self._numbers if number.indicated]
        return numbers + [time.name for time in self._times if time.indicated]

    def _numeric(self, raw: Mapping[str, tf.Tensor]) -> tf.Tensor:
        columns = [self._normalised(raw)] if self._numbers else []
        columns += [time.numbers(raw[time.name]) for time in self._times]
        columns += [tf.cast(is_missing(raw[name]), tf.float32)[:, tf.newaxis] for name in self._indicated]
        return tf.concat(columns, axis=1)

    def _normalised(self, raw: Mapping[str, tf.Tensor]) -> tf.Tensor:
        missing = is_missing(tf.stack([raw[number.name] for number in self._numbers], axis=1))  # [B, n]
        values = tf.stack([number.transformed(raw[number.name]) for number in self._numbers], axis=1)
        fill, mean, scale = (
            tf.constant([getattr(number, field) for number in self._numbers], tf.float32)
            for field in ("fill", "mean", "scale")
        )
        low, high = (tf.constant(side, tf.float32) for side in zip(*(n.ends for n in self._numbers), strict=True))
        return hold((tf.where(missing, fill, values) - mean) * scale, low, high)


def _role(feature: Feature) -> str:
    if feature.kind == "image" and feature.objects:
        return "image_address"
    return feature.of if feature.kind == "sequence" else feature.kind


def _category(feature: CategoricalFeature | SequenceFeature, statistics: Statistics) -> tuple[Category, Any]:
    codes = codes_of(feature, statistics)
    pairs = tf.lookup.KeyValueTensorInitializer(
        tf.constant(list(codes), tf.string), tf.constant(list(codes.values()), tf.int32)
    )
    table = tf.lookup.StaticHashTable(pairs, default_value=OTHER_ID)
    known = len(codes) - 1  # all but the missing value
    hashed = (feature.hash_buckets or 0) if feature.kind == "categorical" else 0
    category = Category(
        name=feature.name, ids=FIRST_ID + known + hashed, embedding_dim=feature.embedding_dim or _width(known + hashed)
    )
    return category, Codes(table=table, known=known, hashed=hashed)


def _bucketed(feature: NumericFeature, statistics: Statistics) -> tuple[Category, Any]:
    buckets = Buckets.of(feature, statistics)
    return Category(name=feature.name, ids=buckets.ids, embedding_dim=_width(buckets.ids - FIRST_ID)), buckets


def _crossed(cross: Cross) -> Category:
    width = cross.embedding_dim or _width(cross.buckets)
    return Category(name=cross_name(cross.columns), ids=FIRST_ID + cross.buckets, embedding_dim=width)


def _width(values: int) -> int:
    width: int = min(50, max(1, round(1.6 * values**0.56)))
    return width


def _sequence(feature: SequenceFeature, statistics: Statistics) -> tuple[Steps, Any]:
    """Return a sequence with what encodes its values: a table, or constants."""
    if feature.of == "numeric":
        return Steps(name=feature.name, length=feature.length, keep=feature.keep), Number.of(feature, statistics)
    category, table = _category(feature, statistics)
    sequence = Steps(
        name=feature.name,
        length=feature.length,
        keep=feature.keep,
        ids=category.ids,
        embedding_dim=category.embedding_dim,
    )
    return sequence, table


def _lookup(by: Any) -> Callable[[tf.Tensor], tf.Tensor]:  # noqa: ANN401 - a table, or a number's constants
    return by.encode if isinstance(by, Number) else by.codes


@dataclass(frozen=True, kw_only=True)
class Codes:
    """A category's ids: by its vocabulary, and beyond that by a hash.

    Attributes:
        table: From text to id.
        known: Values of the vocabulary.
        hashed: Ids that other values share by their hash, after those of the vocabulary; 0: they share one.
    """

    table: tf.lookup.StaticHashTable
    known: int
    hashed: int

    def codes(self, values: tf.Tensor) -> tf.Tensor:
        """Look texts up; whole numbers are ids already (`Vocabulary`). → int32."""
        if values.dtype != tf.string:
            return values
        found = self.table.lookup(values)
        return tf.where(found == OTHER_ID, self.unknown(values), found) if self.hashed else found

    def unknown(self, values: tf.Tensor) -> tf.Tensor:
        """Return the ids of texts that are not in the vocabulary. → int32."""
        if not self.hashed:
            return tf.fill(tf.shape(values), OTHER_ID)
        return FIRST_ID + self.known + tf.cast(tf.strings.to_hash_bucket_fast(values, self.hashed), tf.int32)


def _is_number(feature: Feature) -> TypeGuard[NumericFeature]:
    """Whether a feature is a column of the numeric matrix: a number, and not by its bucket."""
    return feature.kind == "numeric" and feature.transform != "buckets"

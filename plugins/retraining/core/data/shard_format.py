"""The form of a model's shards: what the export does to a row, from the spec. Another form has its own span store."""

from __future__ import annotations

from typing import Literal

from retraining.core.documents.export import ImageColumn, ShardLayout
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import TemplateValues

EXPORT_VERSION = 1
"""Raised when the exporter writes other bytes for the same rows."""


def format_of(spec: ModelSpec) -> Literal["tfrecord", "csv"]:
    """Return CSV where training reads it, else TFRecord."""
    return "csv" if spec.training.input == "csv" else "tfrecord"


def layout_of(spec: ModelSpec) -> ShardLayout:
    """Return how examples lie in TFRecords."""
    layout = spec.data.layout
    numeric = [feature.name for feature in spec.features if feature.kind == "numeric"]
    return ShardLayout(
        numeric=tuple(numeric) if layout.numeric == "vector" else (), rows_per_record=layout.rows_per_record
    )


def images_of(spec: ModelSpec) -> tuple[ImageColumn, ...]:
    """Return the columns that the export resizes."""
    return tuple(
        ImageColumn(
            name=feature.name,
            height=feature.height,
            width=feature.width,
            channels=feature.channels,
            encoding=feature.encoding,
        )
        for feature in spec.features
        if feature.kind == "image"
    )


def form_of(spec: ModelSpec) -> TemplateValues:
    """Return all of it as JSON, for the hash that names the span store."""
    return {
        "version": EXPORT_VERSION,
        "format": format_of(spec),
        "compression": spec.data.compression,
        "layout": layout_of(spec).model_dump(mode="json"),
        "images": [image.model_dump(mode="json") for image in images_of(spec)],
        # A sample's days are not the whole days with other content.
        **({"sample_percent": spec.data.sample_percent} if spec.data.sample_percent < 100 else {}),
    }

"""Crosses inside the model: categories, or buckets of numbers, that together are one more category.

Comes in: of each column its texts, or the ids of its buckets. Goes out: ids by the FarmHash64 of the texts, joined by a
character that no text has: 0 where one of them is missing, else from 2 on.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from trainer.features.values import is_missing
from trainer.features.vocabulary import FIRST_ID, MISSING_ID

SEPARATOR = "\x1f"
"""Of texts that are hashed together, https://www.unicode.org/charts/PDF/U0000.pdf: INFORMATION SEPARATOR ONE."""


def cross_name(columns: Sequence[str]) -> str:
    """Return what the category is called: a name that no feature can have."""
    return ".".join(columns)


def cross_codes(columns: Sequence[tf.Tensor], buckets: int) -> tf.Tensor:
    """Return the ids of a cross. string or int32 [B] each → int32 [B]."""
    is_text = [values.dtype == tf.string for values in columns]
    texts = [values if text else tf.strings.as_string(values) for values, text in zip(columns, is_text, strict=True)]
    missing = [
        is_missing(values) if text else values == MISSING_ID for values, text in zip(columns, is_text, strict=True)
    ]
    hashed = tf.strings.to_hash_bucket_fast(tf.strings.join(texts, SEPARATOR), buckets)
    return tf.where(tf.reduce_any(missing, axis=0), MISSING_ID, FIRST_ID + tf.cast(hashed, tf.int32))

"""Which columns a training can read, by the part they play: the one table of it. Imports nothing of TensorFlow.

Types have the names of BigQuery's API, as in manifests. `trainer.tools.capabilities` writes the table down for who
checks a query before a job is paid for.
"""

from __future__ import annotations

NUMBERS = ("INTEGER", "BOOLEAN", "FLOAT", "NUMERIC", "BIGNUMERIC")
TEXTS = ("STRING", "INTEGER", "BOOLEAN")
"""What becomes the same text in files, in BigQuery's CAST(x AS STRING) and in a request; DATE and FLOAT do not."""

ROLE_TYPES: dict[str, tuple[str, ...]] = {
    "numeric": NUMBERS,
    "categorical": TEXTS,
    "image": ("BYTES",),
    "image_address": ("STRING",),
    "text": ("STRING",),
    "binary": ("INTEGER", "BOOLEAN", "FLOAT"),
    "multiclass": ("INTEGER",),
    "regression": ("INTEGER", "FLOAT", "NUMERIC", "BIGNUMERIC"),
    "slice": TEXTS,
    "weight": ("INTEGER", "FLOAT", "NUMERIC", "BIGNUMERIC"),
}
"""By the kind of a feature (of a sequence: of its elements) or of the label; slices of an evaluation, and weights."""

WITHOUT_CSV = ("BYTES",)
"""Types that no line of a CSV file can hold."""

READ_FROM_TABLE = (
    *("INTEGER", "FLOAT", "NUMERIC", "BIGNUMERIC", "BOOLEAN", "STRING", "BYTES"),
    *("DATE", "DATETIME", "TIME", "TIMESTAMP", "JSON", "GEOGRAPHY"),
)
"""Scalars that a training reads from the run table itself (`training.input: bigquery`)."""

READ_BY_TENSORFLOW_IO = ("INTEGER", "FLOAT", "BOOLEAN", "STRING", "BYTES")
"""Those of them that tensorflow-io's client reads."""

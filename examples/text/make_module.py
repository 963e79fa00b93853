"""`python make_module.py gs://BUCKET/modules/words`: a small text embedding as TensorFlow Hub has them.

Strings [batch] in, vectors [batch, 16] out: the mean of a trainable vector per hashed word.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import tensorflow as tf
from google.cloud import storage

BUCKETS, WIDTH, SEED = 4096, 16, 1


class Words(tf.train.Checkpoint):
    """Called as modules of TensorFlow Hub are."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors = tf.Variable(tf.random.stateless_uniform([BUCKETS, WIDTH], [SEED, SEED], -0.05, 0.05))
        self.trainable_variables = [self.vectors]
        self.variables = self.trainable_variables

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> tf.Tensor:
        """Return the vectors [batch, 16] of texts [batch]."""
        words = tf.strings.split(tf.strings.lower(texts))
        vectors = tf.ragged.map_flat_values(
            lambda flat: tf.gather(self.vectors, tf.strings.to_hash_bucket_fast(flat, BUCKETS)), words
        )
        return tf.math.divide_no_nan(
            tf.reduce_sum(vectors, axis=1), tf.cast(words.row_lengths(), tf.float32)[:, tf.newaxis]
        )


def main(uri: str) -> None:
    """Write the module to `gs://bucket/folder`."""
    bucket, _, folder = uri.removeprefix("gs://").rstrip("/").partition("/")
    client = storage.Client()
    with tempfile.TemporaryDirectory() as path:
        tf.saved_model.save(Words(), path)
        for file in sorted(Path(path).rglob("*")):
            if file.is_file():
                name = f"{folder}/{file.relative_to(path).as_posix()}"
                client.bucket(bucket).blob(name).upload_from_filename(file)
    print(f"{uri}: written")


if __name__ == "__main__":
    main(sys.argv[1])

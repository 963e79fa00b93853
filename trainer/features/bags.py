"""Bags inside the model: a text taken apart into values, words or n-grams, for the mean of their embeddings.

Comes in: the text as a request has it, "" for a missing one. Goes out: int32 [B, length]: 1 + FarmHash64 of each part
modulo the buckets, and 0 after the last one. Parts beyond the length are not read.

    values      between delimiters, without spaces around them; empty ones are none
    words       runs of letters and digits, in lower case, n of them in a row joined by a space
    characters  of the text in lower case, n of them in a row

A text that is shorter than the least n counts as one part, whole. n-grams by their hash: Weinberger et al., Feature
Hashing for Large Scale Multitask Learning, 2009, https://arxiv.org/abs/0902.2206; their mean: Joulin et al., Bag of
Tricks for Efficient Text Classification, 2016, https://arxiv.org/abs/1607.01759
"""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from trainer.contract.documents import BagFeature

FIRST_ID = 1
"""Of a bucket; 0 stands where there is no part."""
_SIZES = {"words": (1,), "characters": (3,)}
"""Where a request says nothing."""
_NO_WORD = r"[^\p{L}\p{N}]+"


@dataclass(frozen=True, kw_only=True)
class Bag:
    """A bag's place in the model.

    Attributes:
        name: Of the feature.
        of: `values`, `words` or `characters`.
        delimiter: Of values.
        sizes: How many words or characters a part has.
        length: Parts that are read.
        buckets: Embeddings that the parts share by their hash.
        embedding_dim: Width of an embedding.
    """

    name: str
    of: str
    delimiter: str
    sizes: tuple[int, ...]
    length: int
    buckets: int
    embedding_dim: int

    @classmethod
    def of_feature(cls, feature: BagFeature, width: int) -> Bag:
        """Return a feature's bag; the width is of its embedding where the feature has none of its own."""
        return cls(
            name=feature.name,
            of=feature.of,
            delimiter=feature.delimiter or ",",
            sizes=feature.sizes or _SIZES.get(feature.of, ()),
            length=feature.length,
            buckets=feature.hash_buckets,
            embedding_dim=feature.embedding_dim or width,
        )

    @property
    def key(self) -> str:
        """Name of its codes among the model's inputs."""
        return f"bag_{self.name}"

    @property
    def ids(self) -> int:
        """How many different codes there are."""
        return FIRST_ID + self.buckets

    def codes(self, texts: tf.Tensor) -> tf.Tensor:
        """Return the codes of each text's parts. [B] → int32 [B, length]."""
        parts = self.parts(texts)
        hashed = tf.strings.to_hash_bucket_fast(parts.flat_values, self.buckets)
        codes = parts.with_flat_values(FIRST_ID + tf.cast(hashed, tf.int32))
        return codes.to_tensor(default_value=0, shape=[None, self.length])

    def parts(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Take texts apart. [B] → [B, (parts)]."""
        if self.of == "values":
            values = tf.strings.split(texts, self.delimiter)
            values = values.with_flat_values(tf.strings.strip(values.flat_values))
            return tf.ragged.boolean_mask(values, values != "")
        lower = tf.strings.lower(texts, encoding="utf-8")
        if self.of == "words":
            return self._joined(tf.strings.split(tf.strings.regex_replace(lower, _NO_WORD, " ")), " ")
        return self._joined(tf.strings.unicode_split(lower, "UTF-8", errors="replace"), "")

    def _joined(self, tokens: tf.RaggedTensor, separator: str) -> tf.RaggedTensor:
        return tf.strings.ngrams(tokens, list(self.sizes), separator=separator, preserve_short_sequences=True)

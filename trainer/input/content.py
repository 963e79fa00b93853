"""A shard's bytes, read slowly: for looking into a file that TensorFlow cannot read."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from typing import Protocol

import tensorflow as tf

from trainer.errors import DataError
from trainer.input.files import WAY_OUT, Shard

_CHUNK_BYTES = 1 << 20
_GZIP_WINDOW = 31  # 15 bits of window, 16: a gzip header


class Content(Protocol):
    """Bytes to read."""

    def read(self, size: int) -> bytes:
        """Return so many bytes, less only at the end."""


class CutOffError(Exception):
    """A gzip stream ends, or stops being one, before it should."""


@contextlib.contextmanager
def opened(shard: Shard, compression: str) -> Iterator[Content]:
    """Open a file, decompressed, wherever it is.

    Raises:
        DataError: It is missing.
    """
    try:
        with tf.io.gfile.GFile(shard.path, "rb") as raw:
            yield _Inflated(raw) if compression == "GZIP" else raw
    except tf.errors.NotFoundError as error:
        raise DataError(shard.uri, "is missing", f"{shard.rows} examples", WAY_OUT) from error


class _Inflated:
    """Gives everything that can be decompressed before it says that the rest cannot (`gzip` may keep some back)."""

    def __init__(self, raw: Content) -> None:
        self._raw, self._buffer, self._fault = raw, bytearray(), ""
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._begun = self._ended = False

    def read(self, size: int) -> bytes:
        """Return so many bytes, less at the end.

        Raises:
            CutOffError: Nothing is left, and the stream is not whole.
        """
        while len(self._buffer) < size and not self._ended:
            self._fill()
        if not self._buffer and self._fault:
            raise CutOffError(self._fault)
        given = bytes(self._buffer[:size])
        del self._buffer[:size]
        return given

    def _fill(self) -> None:
        chunk = self._member.unused_data if self._member.eof else b""
        if self._member.eof:
            self._member, self._begun = zlib.decompressobj(_GZIP_WINDOW), False
        chunk = chunk or self._raw.read(_CHUNK_BYTES)
        if not chunk:
            self._ended = True
            if self._begun:
                self._fault = "the gzip stream is cut off"
            return
        self._begun = True
        try:
            self._buffer += self._member.decompress(chunk)
        except zlib.error as error:
            self._ended, self._fault = True, f"the gzip stream is corrupt ({error})"

"""TFRecord framing and shard files: CRC32C, GZIP, and digests while writing.

Comes in: buffers of whole records. Goes out: one file whose bytes depend on the records alone (the gzip header has no
time and no name), with its size, CRC32C and SHA-256.
"""

from __future__ import annotations

import base64
import concurrent.futures
import functools
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Protocol

import google_crc32c
import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from trainer.export.encoding.wire import BytesLike, Ints

_MASK_DELTA = np.uint32(0xA282EAD8)
_GZIP_LEVEL = 1  # isal's level 1 compresses TFRecords like zlib's 6 at the speed of writing
_GZIP_WINDOW = 31  # 15 bits of window, 16: a gzip header
_GZIP_BLOCK_BYTES = 1 << 20  # what isal is given at once: its output depends on that
_LARGE_BYTES = 256 << 10  # from here on another thread digests
_COPIED_BYTES = 256 << 10  # at once: what the cache holds, and the allocator keeps
_SLICE_BYTES = 1500  # of a record: above this a view beats a copy


def masked(crcs: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Rotate and add, as TFRecord stores CRCs. [n] → [n]."""
    return ((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + _MASK_DELTA


def _length_tables() -> list[npt.NDArray[np.uint32]]:
    """CRC32C of eight little-endian bytes, split by byte: CRCs of equally long strings are affine over XOR."""
    zero = google_crc32c.value(bytes(8))
    tables = []
    for position in range(4):
        strings = (bytes(position) + bytes([byte]) + bytes(7 - position) for byte in range(256))
        tables.append(np.array([google_crc32c.value(string) ^ zero for string in strings], np.uint32))
    tables[0] ^= np.uint32(zero)
    return tables


_TABLES = _length_tables()


def header_crcs(lengths: Ints) -> npt.NDArray[np.uint32]:
    """Return the masked CRC32C of each record length, below 4 GiB. [n] → [n]."""
    crcs = _TABLES[0][lengths & 0xFF]
    for position in (1, 2, 3):
        crcs = crcs ^ _TABLES[position][(lengths >> (8 * position)) & 0xFF]
    return masked(crcs)


def data_crcs(content: npt.NDArray[np.uint8], starts: Ints, ends: Ints) -> npt.NDArray[np.uint32]:
    """Return the masked CRC32C of each slice of the content. [n], [n] → [n]."""
    if len(content) > _SLICE_BYTES * len(starts):
        return masked(_crcs(content, starts, ends))
    rows = max(_COPIED_BYTES * len(starts) // max(len(content), 1), 1)
    crcs = np.empty(len(starts), np.uint32)
    for first in range(0, len(starts), rows):
        some = slice(first, first + rows)
        begin = starts[first]
        copied = content[begin : ends[some][-1]].tobytes()
        crcs[some] = _crcs(copied, starts[some] - begin, ends[some] - begin)
    return masked(crcs)


def _crcs(content: BytesLike, starts: Ints, ends: Ints) -> npt.NDArray[np.uint32]:
    value = google_crc32c.value
    crcs = [value(content[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return np.array(crcs, np.uint32)


@dataclass(frozen=True, kw_only=True)
class FileDigest:
    """How to prove a stored file.

    Attributes:
        bytes: Size.
        crc32c: Base64 of the big-endian CRC32C, as Cloud Storage reports it.
        sha256: Hex.
    """

    bytes: int
    crc32c: str
    sha256: str


class _Compressor(Protocol):
    def compress(self, data: BytesLike, /) -> BytesLike: ...
    def flush(self) -> bytes: ...


class _Plain:
    def compress(self, data: BytesLike, /) -> BytesLike:
        return data

    def flush(self) -> bytes:
        return b""


class ShardFile:
    """A shard's file while it is written: compressed and digested on the way.

    Args:
        file: Open for writing, empty.
        compression: GZIP through isal, or NONE.
    """

    def __init__(self, file: IO[bytes], compression: str) -> None:
        self._file, self._digest = file, _Digest()
        self._compressor: _Compressor = _Plain()
        if compression == "GZIP":
            self._compressor = isal_zlib.compressobj(_GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW)
        self._blocks = Blocks(_GZIP_BLOCK_BYTES if compression == "GZIP" else None)

    def write(self, buffer: BytesLike) -> None:
        """Append some bytes of the shard."""
        for block in self._blocks.cut(buffer):
            self._digest.write(self._file, self._compressor.compress(block))

    def finish(self) -> FileDigest:
        """Write what is left, and prove the file."""
        for block in self._blocks.rest():
            self._digest.write(self._file, self._compressor.compress(block))
        self._digest.write(self._file, self._compressor.flush())
        return self._digest.result()


class Blocks:
    """Cuts the concatenation of buffers anew, into blocks of equal size and a shorter last one.

    Args:
        size: Of a block; None: buffers stay as they are.
    """

    def __init__(self, size: int | None) -> None:
        self._size = size
        self._rest = bytearray()

    def cut(self, buffer: BytesLike) -> Iterator[BytesLike]:
        """Yield the blocks that are full now; those inside the buffer are views of it."""
        view = memoryview(buffer).cast("B")
        if self._size is None:
            yield view
            return
        start = 0
        if self._rest:
            start = min(self._size - len(self._rest), len(view))
            self._rest += view[:start]
            if len(self._rest) < self._size:
                return
            yield self._rest
            self._rest = bytearray()
        whole = start + (len(view) - start) // self._size * self._size
        for begin in range(start, whole, self._size):
            yield view[begin : begin + self._size]
        self._rest += view[whole:]

    def rest(self) -> Iterator[BytesLike]:
        """Yield the last block, unless nothing is left."""
        if self._rest:
            yield self._rest


class _Digest:
    """Digests what is written; what is large, while it is written."""

    def __init__(self) -> None:
        self._bytes, self._crc, self._sha = 0, 0, hashlib.sha256()

    def write(self, file: IO[bytes], data: BytesLike) -> None:
        size = memoryview(data).nbytes
        if size < _LARGE_BYTES:
            self._update(data)
            file.write(data)
            return
        updated = _digesting().submit(self._update, data)
        try:
            file.write(data)
        finally:
            updated.result()

    def _update(self, data: BytesLike) -> None:
        if size := memoryview(data).nbytes:
            self._bytes += size
            view = data if isinstance(data, bytes) else np.frombuffer(data, np.uint8)
            self._crc = google_crc32c.extend(self._crc, view)
            self._sha.update(data)

    def result(self) -> FileDigest:
        return FileDigest(bytes=self._bytes, crc32c=_crc_text(self._crc), sha256=self._sha.hexdigest())


@functools.cache
def _digesting() -> concurrent.futures.ThreadPoolExecutor:
    """Return the process's threads for digests: hashing and writing both run without the interpreter's lock."""
    return concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="digest")


def digest_of(content: bytes) -> FileDigest:
    """Return how to prove a file of this content."""
    return FileDigest(
        bytes=len(content), crc32c=_crc_text(google_crc32c.value(content)), sha256=hashlib.sha256(content).hexdigest()
    )


def _crc_text(crc: int) -> str:
    return base64.b64encode(crc.to_bytes(4, "big")).decode()

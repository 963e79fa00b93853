"""What is compressed does not depend on how it was cut into buffers."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.export.encoding.shard_files import write_shard
from trainer.export.encoding.tfrecord import Blocks

CONTENT = b"".join(b"%d,%d;" % (number, number * number % 977) for number in range(300_000))


def cut(content: bytes, places: list[int]) -> list[np.ndarray]:
    """Cut at these places."""
    edges = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    return [np.frombuffer(content[start:end], np.uint8) for start, end in itertools.pairwise(edges)]


def written(buffers: list[np.ndarray]) -> tuple[bytes, str]:
    """Write a compressed shard."""
    file = io.BytesIO()
    digest = write_shard(buffers, file, "GZIP")
    return file.getvalue(), digest.sha256


@pytest.mark.parametrize("size", [1000, 65_536, 1_000_000, 4 << 20])
def test_compressed_bytes_are_those_of_the_whole_content(size: int) -> None:
    """Isal's output for the same content differs with the sizes of what it is given."""
    buffers = cut(CONTENT, list(range(size, len(CONTENT), size)))
    assert written(buffers) == written([np.frombuffer(CONTENT, np.uint8)])


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=20), st.integers(1, 50))
def test_blocks_are_the_content_in_equal_pieces(content: bytes, places: list[int], size: int) -> None:
    cutter = Blocks(size)
    blocks = [bytes(block) for buffer in cut(content, places) for block in cutter.cut(buffer)]
    blocks += [bytes(block) for block in cutter.rest()]
    assert b"".join(blocks) == content
    assert all(len(block) == size for block in blocks[:-1])
    assert all(0 < len(block) <= size for block in blocks)

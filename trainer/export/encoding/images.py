"""Images, resized once: PNG or JPEG bytes come in, images of one size go out.

Every training epoch would otherwise decode and shrink the same photos again. Grey or RGB by `channels`; bilinear with
antialiasing (https://pillow.readthedocs.io/en/stable/handbook/concepts.html#filters), as `tf.image.resize(…,
antialias=True)`; an image of the right size keeps its pixels. Like `tf.io.decode_image`, it ignores EXIF orientation
and drops an alpha channel. NULL stays NULL. The same bytes give the same bytes, whichever thread works on them.
"""

from __future__ import annotations

import concurrent.futures
import functools
import io
import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from PIL import Image

from trainer.contract.documents import ImageColumn
from trainer.errors import DataError

_FORMATS = ("PNG", "JPEG")
_MODES = {1: "L", 3: "RGB"}
_JPEG_QUALITY = 95  # what is stored here is decoded again for training: losses add up
_OVERSAMPLING = 2  # a JPEG is decoded at a half, a quarter or an eighth, but with so many pixels per pixel wanted
_NAMING_COLUMNS = 3
CORRUPT = (OSError, ValueError, SyntaxError, TypeError, IndexError, EOFError, Image.DecompressionBombError)
"""What Pillow raises of a file that is no whole PNG or JPEG."""


def resize_columns(batch: pa.RecordBatch, images: Sequence[ImageColumn]) -> pa.RecordBatch:
    """Return the batch with these columns resized and encoded anew.

    Args:
        batch: With a BYTES column for each.
        images: Raw is uint8 [height x width x channels], row-major; png and jpeg are files.

    Raises:
        DataError: A value is not a PNG or JPEG image; names column and row.
    """
    for image in images:
        index = batch.schema.get_field_index(image.name)
        contents = batch.column(index).to_pylist()
        try:
            resized = list(decoders().map(functools.partial(_resize_or_none, image=image), contents))
        except CORRUPT:
            raise _refusal(batch, contents, image) from None
        batch = batch.set_column(index, image.name, pa.array(resized, pa.binary()))
    return batch


def resize(content: bytes, image: ImageColumn) -> bytes:
    """Resize one image.

    Raises:
        OSError: Or ValueError, SyntaxError, … as Pillow sees fit: it is not a whole PNG or JPEG.
    """
    size = (image.width, image.height)
    with Image.open(io.BytesIO(content), formats=_FORMATS) as opened:
        opened.draft(_MODES[image.channels], (size[0] * _OVERSAMPLING, size[1] * _OVERSAMPLING))
        pixels = _eight_bits(opened).convert(_MODES[image.channels])
    if pixels.size != size:
        pixels = pixels.resize(size, Image.Resampling.BILINEAR)
    if image.encoding == "raw":
        raw: bytes = pixels.tobytes()
        return raw
    encoded = io.BytesIO()
    pixels.info.clear()  # else an ICC profile or a comment would come along
    pixels.save(encoded, image.encoding, **({"quality": _JPEG_QUALITY} if image.encoding == "jpeg" else {}))
    return encoded.getvalue()


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale 16-bit grey to 8 bits: Pillow's own conversion would cut everything above 255."""
    if not image.mode.startswith("I"):
        return image
    return Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8), "L")


def _resize_or_none(content: bytes | None, image: ImageColumn) -> bytes | None:
    return None if content is None else resize(content, image)


@functools.cache
def decoders() -> concurrent.futures.ThreadPoolExecutor:
    """Return the process's threads for images: Pillow works without the interpreter's lock."""
    return concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="images")


def _refusal(batch: pa.RecordBatch, contents: Sequence[bytes | None], image: ImageColumn) -> DataError:
    """Find the first image that cannot be read: it is the same one in every run."""
    for row, content in enumerate(contents):
        try:
            _resize_or_none(content, image)
        except CORRUPT as error:
            return DataError(
                f"column {image.name}, {row_name(batch, row)}",
                f"{len(content or b'')} bytes that cannot be read as an image ({error})",
                "a PNG or JPEG file of at most 178 million pixels, or NULL",
                "Mend it, or filter it in the query",
            )
    raise AssertionError(f"column {image.name}: an image failed once and not again")


def row_name(batch: pa.RecordBatch, row: int) -> str:
    """Name a row so that it is found in the run table: by its hash, or else by its first columns."""
    if "row_hash" in batch.schema.names:
        return f"row_hash = {batch.column('row_hash')[row].as_py()}"
    fields = [field for field in batch.schema if pa.types.is_string(field.type) or pa.types.is_integer(field.type)]
    values = {field.name: batch.column(field.name)[row].as_py() for field in fields[:_NAMING_COLUMNS]}
    return "row where " + " and ".join(f"{name} = {value!r}" for name, value in values.items())

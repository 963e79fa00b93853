"""Images: resized once, the same bytes each time, and a corrupt one is named."""

from __future__ import annotations

import contextlib
import io
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from trainer.contract.documents import ImageColumn, ShardLayout
from trainer.errors import DataError
from trainer.export.encoding.images import resize


def column(
    height: int, width: int, channels: Literal[1, 3], encoding: Literal["raw", "png", "jpeg"] = "raw"
) -> ImageColumn:
    return ImageColumn(name="photo", height=height, width=width, channels=channels, encoding=encoding)


def photo(height: int, width: int, mode: str = "RGB", format_: str = "PNG", **options: Any) -> bytes:
    """A smooth picture with a little noise."""
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(5).integers(0, 20, (height, width, 3))
    planes = np.stack([x * 200 // width, y * 200 // height, (x + y) * 100 // (width + height)], axis=-1) + noise
    stored = io.BytesIO()
    Image.fromarray(planes.astype(np.uint8)).convert(mode).save(stored, format_, **options)
    return stored.getvalue()


def pixels(raw: bytes, image: ImageColumn) -> np.ndarray:
    return np.frombuffer(raw, np.uint8).reshape(image.height, image.width, image.channels)


def test_an_image_of_the_right_size_keeps_its_pixels() -> None:
    content = photo(8, 6)
    wanted = column(8, 6, 3)
    assert np.array_equal(pixels(resize(content, wanted), wanted), np.asarray(Image.open(io.BytesIO(content))))


def test_shrinking_is_tensorflow_s_antialiased_bilinear() -> None:
    content = photo(100, 150)
    wanted = column(32, 48, 3)
    decoded = tf.cast(tf.io.decode_png(content), tf.float32)
    expected = tf.image.resize(decoded, (32, 48), antialias=True).numpy()
    assert np.abs(pixels(resize(content, wanted), wanted) - expected).max() <= 1


def test_a_large_jpeg_decoded_at_a_fraction_is_as_good() -> None:
    content = photo(1200, 1600, format_="JPEG", quality=95)
    wanted = column(120, 160, 3)
    full = Image.open(io.BytesIO(content)).resize((160, 120), Image.Resampling.BILINEAR)
    assert np.abs(pixels(resize(content, wanted), wanted) - np.asarray(full).astype(int)).mean() < 1


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "1"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_of_a_png_becomes_grey_or_rgb(mode: str, channels: Literal[1, 3]) -> None:
    wanted = column(10, 12, channels)
    assert len(resize(photo(10, 12, mode), wanted)) == 10 * 12 * channels


def test_sixteen_bit_grey_is_scaled_to_eight_bits() -> None:
    stored = io.BytesIO()
    Image.fromarray(np.array([[0, 256, 32768, 65535]], np.uint16)).save(stored, "PNG")
    assert list(resize(stored.getvalue(), column(1, 4, 1))) == [0, 1, 128, 255]


@pytest.mark.parametrize("encoding", ["png", "jpeg"])
def test_stored_files_are_read_by_tensorflow(encoding: Literal["png", "jpeg"]) -> None:
    content = photo(64, 64)
    raw, wanted = column(16, 20, 3), column(16, 20, 3, encoding)
    decoded = tf.io.decode_image(resize(content, wanted)).numpy().astype(int)
    assert decoded.shape == (16, 20, 3)
    assert np.abs(decoded - pixels(resize(content, raw), raw)).max() <= (0 if encoding == "png" else 12)


def test_nothing_of_the_source_file_comes_along() -> None:
    """Neither profile nor text: else equal pixels would give different shards."""
    plain, marked = photo(9, 9), photo(9, 9, icc_profile=b"profile", dpi=(300, 300))
    wanted = column(9, 9, 3, "png")
    assert plain != marked
    assert resize(plain, wanted) == resize(marked, wanted)


def test_columns_of_images_come_out_resized_and_null_stays_absent(examples_of) -> None:
    contents = [photo(20, 20, format_=format_) for format_ in ("PNG", "JPEG")] * 40
    batch = pa.record_batch({"photo": [None, *contents], "x": range(81)})
    wanted = column(4, 5, 3)
    found = examples_of(batch, images=[wanted])
    assert found[0] == {"x": [0]}
    assert [example["photo"] for example in found[1:]] == [[resize(content, wanted)] for content in contents]
    assert examples_of(batch.slice(1), images=[wanted]) == found[1:]


def test_images_fit_in_pre_batched_examples(examples_of) -> None:
    batch = pa.record_batch({"photo": [photo(8, 8), None, photo(9, 9)]})
    wanted = column(8, 8, 1)
    found = examples_of(batch, images=[wanted], layout=ShardLayout(rows_per_record=2))
    assert [[len(value) for value in example["photo"]] for example in found] == [[64, 0], [64, 0]]


def test_a_corrupt_image_is_named_by_column_and_row(records_of) -> None:
    contents = [photo(8, 8)] * 30 + [photo(8, 8)[:-30]] + [b"GIF89a"]
    batch = pa.record_batch({"photo": contents, "row_hash": range(100, 132)})
    with pytest.raises(DataError, match=r"photo, row_hash = 130: \d+ bytes that cannot be read.* PNG or JPEG file"):
        records_of(batch, images=[column(8, 8, 1)])
    with pytest.raises(DataError, match="column photo, row where photo_id = 'b' and label = 1: 6 bytes"):
        records_of(
            pa.record_batch({"photo_id": ["a", "b"], "photo": [contents[0], b"GIF89a"], "label": [0, 1]}),
            images=[column(8, 8, 1)],
        )


@settings(max_examples=300, deadline=None)
@given(data=st.data(), format_=st.sampled_from(["PNG", "JPEG"]))
def test_whatever_bytes_an_image_has_it_is_read_or_refused(data: st.DataObject, format_: str, records_of) -> None:
    content = bytearray(photo(12, 12, format_=format_))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(0, len(content)))])
    batch = pa.record_batch({"photo": [cut]})
    with contextlib.suppress(DataError):
        assert len(records_of(batch, images=[column(8, 8, 3)])) == 1

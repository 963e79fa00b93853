"""Images: what serving sees of a file is what the export stored of it."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from PIL import Image as Pillow

from tests.support.refusals import refuses
from tests.support.trainer_documents import make_feature, make_statistics
from trainer.contract.documents import ImageColumn
from trainer.errors import RequestError
from trainer.export.encoding.images import resize
from trainer.features.images import Image, as_files
from trainer.features.preprocessing import Preprocessing
from trainer.models.cnn import default_filters
from trainer.models.registry import find_architecture, read_hyperparameters


def picture(height: int, width: int, mode: str = "RGB", *, smooth: bool = True) -> Pillow.Image:
    """A photo-like image, or noise."""
    random = np.random.default_rng(height * width)
    source = (6, 5) if smooth else (height, width)
    pixels = random.integers(0, 256, (*source, len(mode)) if len(mode) > 1 else source, dtype=np.uint8)
    return Pillow.fromarray(pixels, mode).resize((width, height), Pillow.Resampling.BICUBIC)


def file_of(image: Pillow.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def difference(content: bytes, height: int, width: int, channels: int) -> np.ndarray:
    """How far the model's pixels are from the export's. [height, width, channels]."""
    column = ImageColumn(name="x", height=height, width=width, channels=channels, encoding="raw")
    stored = np.frombuffer(resize(content, column), np.uint8).reshape(height, width, channels)
    seen = Image(name="x", height=height, width=width, channels=channels).pixels(tf.constant([content]))[0].numpy()
    assert (seen.dtype, seen.shape) == (np.uint8, (height, width, channels))
    return np.abs(seen.astype(int) - stored.astype(int))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_of_the_right_size_keeps_its_pixels(mode: str, channels: int) -> None:
    content = file_of(picture(9, 7, mode, smooth=False))
    assert difference(content, 9, 7, channels).max() == 0


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("size", "wanted"),
    [((64, 48), (8, 8)), ((33, 57), (16, 20)), ((8, 8), (16, 16)), ((200, 300), (32, 32))],
    ids=["smaller", "odd", "larger", "much-smaller"],
)
@pytest.mark.parametrize("smooth", [True, False], ids=["photo", "noise"])
def test_a_png_is_resized_as_at_export_to_one_level(size, wanted, channels: int, smooth: bool) -> None:
    found = difference(file_of(picture(*size, smooth=smooth)), *wanted, channels=channels)
    assert found.max() <= 1


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("size", "wanted", "mean"),
    [((60, 40), (60, 40), 0.1), ((60, 40), (48, 32), 0.5), ((300, 200), (32, 32), 1.0)],
    ids=["same", "smaller", "reduced-while-decoded"],
)
def test_a_jpeg_is_resized_nearly_as_at_export(size, wanted, mean: float, channels: int) -> None:
    found = difference(file_of(picture(*size), "JPEG", quality=90), *wanted, channels=channels)
    assert found.mean() <= mean
    assert found.max() <= 4


def test_a_missing_image_is_black_and_pixels_stay_as_they_are() -> None:
    image = Image(name="x", height=2, width=3, channels=1)
    content = file_of(picture(2, 3, "L"))
    pixels = image.pixels(tf.constant(["", content]))
    assert not pixels[0].numpy().any()
    assert image.pixels(pixels) is pixels


@pytest.mark.parametrize("small", [True, False])
def test_pixels_become_files_without_loss(small: bool) -> None:
    pixels = tf.constant(np.random.default_rng(0).integers(0, 256, (3, 5, 4, 3), dtype=np.uint8))
    image = Image(name="x", height=5, width=4, channels=3)
    np.testing.assert_array_equal(image.pixels(as_files(pixels, small=small)), pixels)


def test_a_file_that_is_no_image_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        Image(name="x", height=2, width=2, channels=1).pixels(tf.constant([b"GIF? no"]))


def shape(*names: str, height: int = 8, width: int = 8):
    features = [make_feature(name=name, kind="image", height=height, width=width, channels=1) for name in names]
    return Preprocessing(features, make_statistics()).shape


def test_a_cnn_is_built_from_the_feature_spec_alone() -> None:
    cnn = find_architecture("cnn")
    model = cnn.build(shape("front", "back", height=12, width=20), 4, read_hyperparameters(cnn, {}))
    assert set(model.input) == {"image_front", "image_back", "numeric", "categorical"}
    assert model.output_shape == (None, 4)
    chosen = cnn.build(shape("front"), 1, read_hyperparameters(cnn, {"filters": "3", "kernel_size": 5}))
    eye = chosen.get_layer("see_front")
    assert isinstance(eye, tf_keras.Sequential)
    assert eye.get_layer("conv_0").kernel.shape == (5, 5, 1, 3)


@pytest.mark.parametrize(
    ("height", "width", "filters"),
    [(1, 1, (32,)), (8, 8, (32, 64)), (28, 28, (32, 64, 128, 256)), (224, 300, (32, 64, 128, 256, 256, 256, 256))],
)
def test_filters_follow_from_the_images_size(height: int, width: int, filters: tuple[int, ...]) -> None:
    assert default_filters(Image(name="x", height=height, width=width, channels=1)) == filters


@pytest.mark.parametrize("name", ["dense", "wide_deep"])
def test_an_architecture_without_eyes_names_one_that_has_them(name: str) -> None:
    with pytest.raises(RequestError, match=r"'dense|wide_deep'.*'front' is one.*Set training\.model to cnn"):
        find_architecture(name).require_inputs(name, shape("front"))


def test_a_cnn_without_images_is_refused() -> None:
    with refuses(RequestError, found="no image", way_out="training.model"):
        find_architecture("cnn").require_inputs("cnn", shape())


def test_statistics_of_images_are_not_needed() -> None:
    statistics = make_statistics()
    feature = make_feature(name="x", kind="image", height=2, width=2, channels=3)
    encoded = Preprocessing([feature], statistics)({"x": tf.zeros([4, 2, 2, 3], tf.uint8)})
    assert encoded["image_x"].shape == (4, 2, 2, 3)
    assert encoded["numeric"].shape == (4, 0)

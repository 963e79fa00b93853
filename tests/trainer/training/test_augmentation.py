"""Images are changed in training alone, by random numbers that follow from seed, epoch and step."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer.cluster.replica import Replica
from trainer.cluster.strategy import Strategy, choose_strategy
from trainer.contract.documents import Augmentation
from trainer.features.images import Image
from trainer.input.pipeline import Blocks
from trainer.input.source import Share
from trainer.training.augmentation import ImageAugmentation
from trainer.training.batches import Steps, training_batches
from trainer.training.contact_sheet import draw_sheet
from trainer.training.examples import Examples

ROWS, HEIGHT, WIDTH = 12, 6, 10
PHOTO = Image(name="photo", height=HEIGHT, width=WIDTH, channels=3)
GREY = Image(name="grey", height=4, width=4, channels=1)
PIXELS = np.random.default_rng(0).integers(1, 256, (ROWS, HEIGHT, WIDTH, 3), dtype=np.uint8)
GREYS = np.random.default_rng(1).integers(1, 256, (ROWS, 4, 4, 1), dtype=np.uint8)
ALL = {"flip": "both", "rotate": 0.1, "zoom": 0.2, "crop": 0.2, "brightness": 0.2, "contrast": 0.3, "noise": 0.05}


def augmentation(times: float = 1.0, images: tuple[Image, ...] = (PHOTO,), **amounts: Any) -> ImageAugmentation:
    chosen = ImageAugmentation.of(Augmentation(**amounts), images, times)
    assert chosen
    return chosen


def batch() -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    inputs = {"numeric": tf.zeros([ROWS, 0]), PHOTO.key: tf.constant(PIXELS), GREY.key: tf.constant(GREYS)}
    return inputs, tf.range(ROWS)


def changed(chosen: ImageAugmentation, seed: tuple[int, int] = (1, 0)) -> np.ndarray:
    """The photos of the batch."""
    inputs, labels = chosen.apply(*chosen.draw(batch(), tf.constant(seed, tf.int64)))
    assert set(inputs) == set(batch()[0])
    np.testing.assert_array_equal(labels, range(ROWS))
    return inputs[PHOTO.key].numpy()


@pytest.mark.parametrize("name", ["rotate", "zoom", "crop", "brightness", "contrast", "noise"])
def test_each_change_changes_pixels_and_more_with_more_strength(name: str) -> None:
    def distance(strength: float) -> float:
        found = changed(augmentation(strength, **{name: 0.1}))
        assert found.dtype == np.uint8
        return float(np.abs(found.astype(float) - PIXELS).mean())

    assert 0.5 < distance(1) < 90
    assert distance(0.05) < distance(1)


@pytest.mark.parametrize(
    ("flip", "axes"), [("horizontal", {(2,)}), ("vertical", {(1,)}), ("both", {(2,), (1,), (1, 2)})]
)
def test_a_flip_is_exact_and_happens_to_some(flip: str, axes: set[tuple[int, ...]]) -> None:
    found, seen = changed(augmentation(flip=flip)), set()
    for row in range(ROWS):
        mirrored = {axis: np.flip(PIXELS[row : row + 1], axis)[0] for axis in [(), *axes]}
        seen.add(next(axis for axis, pixels in mirrored.items() if np.array_equal(pixels, found[row])))
    assert seen == {(), *axes}


def test_brightness_is_bounded_and_the_same_for_a_whole_image() -> None:
    grey = np.full_like(PIXELS, 100)
    chosen = augmentation(brightness=0.1)
    drawn = chosen.draw(batch(), tf.constant([1, 0], tf.int64))[0]["augmentation"][:, 0]
    found = chosen.change(tf.constant(grey), drawn).numpy()
    assert all(len(np.unique(image)) == 1 for image in found)
    levels = found[:, 0, 0, 0].astype(int) - 100
    assert 10 < np.abs(levels).max() <= 26
    assert levels.min() < 0 < levels.max()


def test_nothing_is_beyond_its_bound_whatever_the_strength() -> None:
    assert augmentation(10, rotate=0.2).amounts.rotate == 0.5
    assert augmentation(0.5, rotate=0.2, strength=0.5).amounts.rotate == pytest.approx(0.05)
    assert ImageAugmentation.of(Augmentation(rotate=0.2), [PHOTO], 0.0) is None
    assert ImageAugmentation.of(None, [PHOTO], 1.0) is None


def test_a_missing_image_stays_black() -> None:
    chosen = augmentation(**ALL)
    pixels = PIXELS.copy()
    pixels[3] = 0
    drawn = chosen.draw(batch(), tf.constant([1, 0], tf.int64))[0]["augmentation"][:, 0]
    found = chosen.change(tf.constant(pixels), drawn).numpy()
    assert not found[3].any()
    assert found[4].any()


def test_the_same_seed_gives_the_same_pictures_and_another_step_others() -> None:
    chosen = augmentation(**ALL)
    np.testing.assert_array_equal(changed(chosen), changed(chosen))
    assert not np.array_equal(changed(chosen), changed(chosen, (1, 1)))
    assert not np.array_equal(changed(chosen), changed(chosen, (2, 0)))
    elsewhere = dataclasses.replace(chosen, place=1)
    assert not np.array_equal(changed(chosen), changed(elsewhere))


def test_every_image_feature_is_changed_by_numbers_of_its_own() -> None:
    chosen = augmentation(images=(PHOTO, GREY), brightness=0.3)
    inputs, _ = chosen.apply(*chosen.draw(batch(), tf.constant([1, 0], tf.int64)))
    photos, greys = (
        inputs[key].numpy().astype(float).mean(axis=(1, 2, 3)) - before.mean(axis=(1, 2, 3))
        for key, before in ((PHOTO.key, PIXELS), (GREY.key, GREYS))
    )
    assert np.abs(photos).max() > 5 < np.abs(greys).max()
    assert (np.sign(photos) != np.sign(greys)).any()


def batches(strategy: Strategy, first_step: int = 0, share: Share | None = None) -> Any:
    """Those of a training of two epochs with 5 rows a step and replica."""
    inputs, labels = batch()
    plain = tf.data.Dataset.from_tensors((inputs, labels))
    examples = Examples(
        preprocessing=None,
        train=Blocks(plain=plain),
        validation=plain,
        train_rows=ROWS,
        validation_rows=ROWS,
        raw_validation=plain,
        rebuild_train=lambda: Blocks(plain=plain),
        augmentation=augmentation(images=(PHOTO, GREY), **ALL),
    )
    steps = Steps(rows=ROWS, rows_per_step=6, per_epoch=2, epochs=3)
    return training_batches(examples, steps, first_step, 7, strategy, share or Share())


def test_a_training_that_goes_on_sees_the_pictures_that_it_would_have_seen() -> None:
    plain = choose_strategy(Replica(), "one_device")
    whole = [(inputs[PHOTO.key].numpy(), labels.numpy()) for inputs, labels in batches(plain)]
    for done in range(1, 6):
        rest = [(inputs[PHOTO.key].numpy(), labels.numpy()) for inputs, labels in batches(plain, done)]
        assert len(rest) == len(whole) - done
        for (pixels, labels), (expected, expected_labels) in zip(rest, whole[done:], strict=True):
            np.testing.assert_array_equal(labels, expected_labels)
            np.testing.assert_array_equal(pixels, expected)
    first = {label: pixels for images, labels in whole[:2] for pixels, label in zip(images, labels, strict=True)}
    later = {label: pixels for images, labels in whole[2:4] for pixels, label in zip(images, labels, strict=True)}
    assert all(not np.array_equal(first[label], later[label]) for label in range(ROWS))


class Here:
    """A strategy's scope that has one process's batches as they are."""

    def distribute_datasets_from_function(self, make: Any) -> Any:
        """Return the datasets that a process makes for itself."""
        return make(None)


def test_replicas_in_lockstep_see_the_pictures_of_one_device() -> None:
    """Two workers: each its rows of the batch that one device would have had."""
    whole = [inputs[PHOTO.key].numpy() for inputs, _ in batches(choose_strategy(Replica(), "one_device"))]
    workers = [
        Strategy(name="multi_worker", scope=Here(), replicas=2, share=Share(index=index, count=2)) for index in (0, 1)
    ]
    halves = [[inputs[PHOTO.key].numpy() for inputs, _, _ in batches(worker)] for worker in workers]
    assert len(halves[0]) == len(whole) == 6
    for expected, *parts in zip(whole, *halves, strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_workers_with_files_of_their_own_draw_numbers_of_their_own() -> None:
    worker = Strategy(name="multi_worker", scope=Here(), replicas=2, share=Share(index=0, count=2))
    first, second = (
        next(iter(batches(worker, share=Share(index=index, count=2))))[0][PHOTO.key].numpy() for index in (0, 1)
    )
    assert first.shape == second.shape
    assert not np.array_equal(first, second)


def test_the_contact_sheet_has_each_image_as_it_is_and_changed() -> None:
    chosen = augmentation(images=(PHOTO, GREY), **ALL)
    content = draw_sheet(chosen, batch(), seed=1)
    assert content == draw_sheet(chosen, batch(), seed=1)
    sheet = tf.io.decode_png(content).numpy()
    side = 66
    assert sheet.shape == (ROWS * (38 + 2) + ROWS * side, 5 * side, 3)
    shown = sheet[:38, :64].reshape(-1, 3)
    assert set(map(tuple, shown)) == set(map(tuple, PIXELS[0].reshape(-1, 3)))
    assert not np.array_equal(sheet[:38, :64], sheet[:38, side : side + 64])

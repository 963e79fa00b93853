"""A contact sheet of augmentation: some training images, each as it is and changed a few times, for the run's page.

Comes in: a training's examples. Goes out: a PNG; the same training gives the same one.
"""

from __future__ import annotations

from operator import itemgetter

import tensorflow as tf

from trainer.storage import join_uri
from trainer.training.augmentation import ImageAugmentation
from trainer.training.epochs import Fit

FILE_NAME = "augmentation.png"
_IMAGES, _CHANGED = 8, 4
_SIDE = 64  # pixels of the longer side on the sheet
_GAP = 2


def write_contact_sheet(fit: Fit) -> None:
    """Write it beside the report, where images are changed and the request wants it."""
    request, augmentation = fit.job.request, fit.examples.augmentation
    if augmentation is None or not augmentation.amounts.contact_sheet:
        return
    block = next(iter(fit.examples.train.plain.take(1)))
    inputs, labels = tf.nest.map_structure(itemgetter(slice(_IMAGES)), block)
    png = draw_sheet(augmentation, (inputs, labels), request.seed)
    fit.job.storage.replace(join_uri(request.report_uri.rpartition("/")[0], FILE_NAME), png)


def draw_sheet(augmentation: ImageAugmentation, batch: tuple[dict[str, tf.Tensor], tf.Tensor], seed: int) -> bytes:
    """Return the PNG: a row per image and image feature, the first column as it is."""
    drawn = [augmentation.draw(batch, tf.constant([seed, number], tf.int64)) for number in range(_CHANGED)]
    columns = [batch[0], *(augmentation.apply(*one)[0] for one in drawn)]
    parts = []
    for image in augmentation.images:
        scale = _SIDE / max(image.height, image.width)
        size = [max(1, round(image.height * scale)), max(1, round(image.width * scale))]
        cells = tf.stack([tf.image.resize(column[image.key], size, "nearest") for column in columns], axis=1)
        cells = tf.repeat(cells, 3, axis=4) if image.channels == 1 else cells  # [rows, columns, h, w, 3]
        framed = tf.pad(cells, [[0, 0], [0, 0], [0, _GAP], [0, _SIDE - size[1] + _GAP], [0, 0]], constant_values=255)
        rows, count, height, width, _ = framed.shape
        parts.append(tf.reshape(tf.transpose(framed, [0, 2, 1, 3, 4]), [rows * height, count * width, 3]))
    content: bytes = tf.io.encode_png(tf.concat(parts, axis=0)).numpy()
    return content

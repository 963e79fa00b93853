"""The demo's digits: 1,797 handwritten digits as PNG images of 8 x 8 grey pixels, with the digit that each one is.

In: scikit-learn's copy of the test set of UCI's Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak 1998,
CC BY 4.0; 13 writers). Out: an Arrow table with the columns

- `image_id` STRING: `digit-0000` to `digit-1796`, the place in the package's file.
- `captured_at` TIMESTAMP: made up here, as the data has no times: spread evenly over the 120 days from 2013-08-01, some
  15 a day, in an order that mixes the writers, so that no day is unlike the others.
- `image` BYTES: a PNG. The data's 17 levels of ink become 0 to 255.
- `digit` INT64: 0 to 9.
"""

from __future__ import annotations

import datetime
import gzip
import importlib.util
import io
from pathlib import Path
from typing import TYPE_CHECKING

from localcloud.errors import LocalCloudError

if TYPE_CHECKING:
    import pyarrow as pa

IMAGES = 1_797
SIDE = 8
FIRST_DAY = datetime.datetime(2013, 8, 1, tzinfo=datetime.UTC)
DAYS = 120
_STRIDE = 1_009  # shares no divisor with 1,797: every image gets a time of its own
_INK = 16  # the darkest level


def read_images() -> pa.Table:
    """Read the digits, in the order of their times.

    Raises:
        LocalCloudError: The package is not there, or its data is not what it was when this was written.
    """
    import numpy as np
    import pyarrow as pa

    with gzip.open(package_path() / "digits.csv.gz", "rt") as file:
        values = np.loadtxt(file, delimiter=",", dtype=np.int64)
    _require(values.shape)
    pixels = np.round(values[:, :-1] * (255 / _INK)).astype(np.uint8).reshape(-1, SIDE, SIDE)
    indexes = np.arange(IMAGES) * _STRIDE % IMAGES
    step = datetime.timedelta(days=DAYS) / IMAGES
    times = [FIRST_DAY + step * place for place in range(IMAGES)]
    return pa.table(
        {
            "image_id": [f"digit-{index:04d}" for index in indexes],
            "captured_at": pa.array(times, pa.timestamp("us", tz="UTC")),
            "image": pa.array([_png(pixels[index]) for index in indexes], pa.binary()),
            "digit": values[indexes, -1],
        }
    )


def package_path() -> Path:
    """Return the data folder of scikit-learn without importing it, which takes seconds.

    Raises:
        LocalCloudError: It is not installed.
    """
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise LocalCloudError(
            "seed: digits",
            found="the package scikit-learn is not installed",
            expected="it in the local cloud's environment",
            way_out="Run `make setup`",
        )
    return Path(spec.origin).parent / "datasets" / "data"


def _png(pixels: object) -> bytes:
    """Return a grey image. uint8 [8, 8]."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def _require(shape: tuple[int, ...]) -> None:
    if shape != (IMAGES, SIDE * SIDE + 1):
        raise LocalCloudError(
            "seed: digits",
            found=f"a table of shape {shape} in the package scikit-learn",
            expected=f"{IMAGES} rows of {SIDE * SIDE} pixels and a digit",
            way_out="Install the locked version with `make setup`",
        )

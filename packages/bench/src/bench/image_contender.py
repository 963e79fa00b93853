"""What `make bench-images` runs in the trainer's environment: `python -m bench.image_contender FOLDER COUNT [FETCHES]`.

Without FETCHES it writes so many photos below the folder. With it, it fetches and resizes them as the export does, so
many at once, and prints one line of JSON: rows, seconds, and CPU seconds of this process.
"""

from __future__ import annotations

import io
import json
import sys
import time

import numpy as np
import pyarrow as pa
from google.cloud import storage
from PIL import Image

from trainer.contract.documents import ImageColumn
from trainer.export.encoding.objects import ObjectImages
from trainer.storage import Storage, in_parallel

SIZE = (640, 480)
STORED = ImageColumn(name="photo", height=96, width=96, channels=3, encoding="raw")


def write_photos(folder_uri: str, count: int) -> None:
    """Write JPEG files of a smooth picture with some noise, each another one."""
    bucket, folder = bucket_of(folder_uri)

    def write(number: int) -> None:
        random = np.random.default_rng(number)
        coarse = Image.fromarray(random.integers(0, 255, (6, 8, 3), np.uint8)).resize(SIZE, Image.Resampling.BICUBIC)
        noisy = np.asarray(coarse).astype(int) + random.integers(0, 12, (SIZE[1], SIZE[0], 3))
        stored = io.BytesIO()
        Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(stored, "JPEG", quality=85)
        blob = bucket.blob(f"{folder}/{number:05}.jpg")
        blob.upload_from_string(stored.getvalue(), content_type="image/jpeg")

    in_parallel(write, range(count))


def fetch_photos(folder_uri: str, count: int, fetches: int) -> dict[str, float]:
    """Fetch and resize the photos, and throw them away."""
    bucket, folder = bucket_of(folder_uri)
    addresses = [
        f"gs://{bucket.name}/{blob.name}#{blob.generation},{blob.size}" for blob in bucket.list_blobs(prefix=folder)
    ]
    batch = pa.record_batch({STORED.name: addresses})
    objects = ObjectImages(batch.schema, [STORED], Storage(), fetches)
    warm = batch.slice(0, 1)
    list(objects.fetch(warm, 1))  # the client's import and its token are the job's, not the rows'
    start, cpu = time.perf_counter(), time.process_time()
    rows = sum(piece.num_rows for piece in objects.fetch(batch, 1))
    if rows != count:
        raise ValueError(f"{rows} photos in {folder_uri}, expected {count}")
    return {"rows": rows, "seconds": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}


def bucket_of(folder_uri: str) -> tuple[storage.Bucket, str]:
    """Return the bucket, and the folder's path in it."""
    bucket, _, folder = folder_uri.removeprefix("gs://").partition("/")
    return storage.Client().bucket(bucket), folder


if __name__ == "__main__":
    uri, number, *fetched = sys.argv[1:]
    if fetched:
        print(json.dumps(fetch_photos(uri, int(number), int(fetched[0]))))
    else:
        write_photos(uri, int(number))

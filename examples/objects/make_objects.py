"""`python examples/objects/make_objects.py gs://bucket/folder`: the demonstration's images as objects, a PNG each."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from google.cloud import bigquery, storage

QUERY = "SELECT image_id, image FROM digits.images WHERE captured_at < '2013-11-21'"


def make_objects(folder_uri: str) -> int:
    """Write the objects; return how many."""
    name, _, folder = folder_uri.removeprefix("gs://").partition("/")
    bucket = storage.Client().bucket(name)

    def write(row: bigquery.Row) -> None:
        blob = bucket.blob(f"{folder.rstrip('/')}/{row.image_id}.png")
        blob.upload_from_string(row.image, content_type="image/png")

    rows = list(bigquery.Client().query_and_wait(QUERY))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, rows))
    return len(rows)


if __name__ == "__main__":
    print(f"{make_objects(sys.argv[1])} objects")

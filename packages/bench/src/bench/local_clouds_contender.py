"""Asks a server what every program asks first, through Google's clients or Amazon's; prints the seconds as JSON.

In: what kind of server, and its address; none: the environment leads Google's clients. Out: a JSON object, seconds of
the first answer, and medians of one upload, download and query.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable

CONTENT = os.urandom(10_000)
CALLS = 100


def main(kind: str, address: str = "") -> int:
    """Ask, and print."""
    print(json.dumps(KINDS[kind](address)))
    return 0


def ask_storage(address: str) -> dict[str, float]:
    """Return the seconds of Cloud Storage."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    if address:
        os.environ["STORAGE_EMULATOR_HOST"] = address
    started = time.perf_counter()
    client = storage.Client(project="bench", credentials=AnonymousCredentials()) if address else storage.Client()
    bucket = client.create_bucket(f"bench-{os.getpid()}")
    first = time.perf_counter() - started
    return {
        "first": first,
        "upload": _median(lambda number: bucket.blob(f"o{number}").upload_from_string(CONTENT)),
        "download": _median(lambda number: _expect(bucket.blob(f"o{number}").download_as_bytes())),
    }


def ask_s3(address: str) -> dict[str, float]:
    """Return the seconds of S3."""
    import boto3  # type: ignore[import-not-found]  # only in the environment of emulators

    started = time.perf_counter()
    os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
    client = boto3.client("s3", endpoint_url=address)
    name = f"bench-{os.getpid()}"
    client.create_bucket(Bucket=name)
    first = time.perf_counter() - started
    return {
        "first": first,
        "upload": _median(lambda number: client.put_object(Bucket=name, Key=f"o{number}", Body=CONTENT)),
        "download": _median(lambda number: _expect(client.get_object(Bucket=name, Key=f"o{number}")["Body"].read())),
    }


def ask_bigquery(address: str) -> dict[str, float]:
    """Return the seconds of BigQuery."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import bigquery

    if address:
        os.environ["BIGQUERY_EMULATOR_HOST"] = address
    started = time.perf_counter()
    client = bigquery.Client(project="bench", credentials=AnonymousCredentials()) if address else bigquery.Client()
    client.create_dataset(f"bench_{os.getpid()}")
    first = time.perf_counter() - started

    def query(number: int) -> None:
        rows = list(client.query_and_wait(f"SELECT {number} AS n"))
        if [row["n"] for row in rows] != [number]:
            raise AssertionError(rows)

    return {"first": first, "query": _median(query)}


def _expect(content: bytes) -> None:
    if content != CONTENT:
        raise AssertionError("other bytes came back")


def _median(call: Callable[[int], object]) -> float:
    taken = []
    for number in range(CALLS):
        started = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


KINDS = {"storage": ask_storage, "s3": ask_s3, "bigquery": ask_bigquery}

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Predictions for the lines of files, in files.

Comes in: objects of JSON lines. Goes out: a folder with `prediction.results-NNNNN-of-MMMMM`, lines of
`{"instance": …, "prediction": …}`, and `prediction.errors_stats-00000-of-00001`, a line with reason and count for each
batch that failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from google.cloud.aiplatform_v1.types import BatchPredictionJob

from localcloud.vertex.jobs.batch.conversion import Batch, Conversion, Json
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.validation import split_gcs_uri
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition, InvalidArgument

_SHARD_BYTES = 64 * 1024 * 1024


def read_batches(buckets: Buckets, uris: list[str], conversion: Conversion, batch_size: int) -> Iterator[Batch]:
    """Return the lines of all objects in batches; a line that is no instance is a batch with a problem.

    Raises:
        ApiError: An address means no object, or one cannot be read.
    """
    good: list[tuple[Json, dict[str, Json]]] = []
    for number, (where, line) in enumerate(_lines(buckets, uris), start=1):
        try:
            good.append(conversion.of_line(json.loads(line)))
        except (ValueError, InvalidArgument) as error:
            text = line.decode(errors="replace").rstrip("\r\n")
            problem = InvalidArgument(f"{where}: line {number} is no instance: {error}")
            yield Batch(instances=[text], shown=[{"instance": text}], problem=problem)
        if len(good) == batch_size:
            yield _batch(good)
            good = []
    if good:
        yield _batch(good)


def _batch(lines: list[tuple[Json, dict[str, Json]]]) -> Batch:
    return Batch(instances=[instance for instance, _ in lines], shown=[shown for _, shown in lines])


def _lines(buckets: Buckets, uris: list[str]) -> Iterator[tuple[str, bytes]]:
    """Return every line that is not blank, with the address of its object."""
    for uri in uris:
        bucket, pattern = split_gcs_uri(uri)
        paths = buckets.match_paths(bucket, pattern)
        if not paths:
            raise FailedPrecondition(f"No object fits {uri}. Expected one at least.")
        for path in paths:
            where = f"gs://{bucket}/{path}"
            yield from ((where, line) for line in buckets.read_lines(bucket, path) if line.strip())


class LineOutput:
    """The files of a folder on storage, on this machine until the end.

    Args:
        buckets: Where they go at the end.
        destination: gs:// address of the folder.
        folder: Takes the files.
    """

    def __init__(self, *, buckets: Buckets, destination: str, folder: Path) -> None:
        self._buckets = buckets
        self._destination = destination
        self._folder = folder
        self._shards = [folder / "results-0"]
        self._shard = self._shards[0].open("w", encoding="utf-8")
        self._errors = (folder / "errors").open("w", encoding="utf-8")

    def add(self, batch: Batch, predictions: list[Json]) -> None:
        """Keep lines with their predictions."""
        for shown, prediction in zip(batch.shown, predictions, strict=True):
            self._shard.write(json.dumps({**shown, "prediction": prediction}, ensure_ascii=False) + "\n")
        if self._shard.tell() >= _SHARD_BYTES:
            self._shard.close()
            self._shards.append(self._folder / f"results-{len(self._shards)}")
            self._shard = self._shards[-1].open("w", encoding="utf-8")

    def add_failed(self, batch: Batch, error: ApiError) -> None:
        """Keep why lines have none, and how many."""
        self._errors.write(f"{(error.message, len(batch.instances))}\n")

    def finish(self) -> BatchPredictionJob.OutputInfo:
        """Write the objects.

        Raises:
            ApiError: Storage does not take them.
        """
        self._shard.close()
        self._errors.close()
        bucket, path = split_gcs_uri(self._destination)
        for index, shard in enumerate(self._shards):
            name = f"prediction.results-{index:05}-of-{len(self._shards):05}"
            self._buckets.upload(shard, bucket, f"{path}/{name}")
        errors = f"{path}/prediction.errors_stats-00000-of-00001"
        self._buckets.upload(self._folder / "errors", bucket, errors)
        return BatchPredictionJob.OutputInfo(gcs_output_directory=self._destination)

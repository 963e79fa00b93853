"""TensorFlow Data Validation looks at a run: `python -m tfdv gs://BUCKET/MODEL/runs/KEY`, or `make tfdv`.

Comes in: documents and shards of a run. Goes out: a line for each split of the statistics, one for each split of the
shards, and one for each anomaly below them. Ends with 0 when there is none, 1 when there are some, 2 when the run has
no such documents.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow_data_validation as validation
from google.api_core.exceptions import NotFound
from google.cloud import storage
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

DOCUMENTS = ("schema.pbtxt", "statistics.pbtxt", "manifest.json")


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look found: the anomalies, by feature."""

    what: str
    rows: int
    anomalies: dict[str, str]

    def __str__(self) -> str:
        """Return a line, and one for each anomaly."""
        found = f"{len(self.anomalies)} anomalies" if self.anomalies else "no anomaly"
        return "\n  ".join([f"{self.what}, {self.rows} examples: {found}", *_lines(self.anomalies)])


def _lines(anomalies: dict[str, str]) -> list[str]:
    return [f"{feature}: {message}" for feature, message in sorted(anomalies.items())]


def download(run_uri: str, folder: Path) -> list[str]:
    """Copy the documents and, into a folder for each split, the shards; return the splits that have some.

    Raises:
        NotFound: One of the objects is not there.
    """
    client = storage.Client()

    def copy(uri: str, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(storage.Blob.from_string(uri, client=client).download_as_bytes())

    for name in DOCUMENTS:
        copy(f"{run_uri}/{name}", folder / name)
    splits: dict[str, Any] = json.loads((folder / "manifest.json").read_text())["splits"]
    for split, found in splits.items():
        for number, file in enumerate(found["files"]):
            copy(file["uri"], folder / split / f"{number:06d}-{Path(file['uri']).name}")
    return [split for split, found in splits.items() if found["files"]]


def look(folder: Path, splits: list[str]) -> Iterator[Look]:
    """Hold the statistics that were written, and those that TFDV computes of the shards, to the schema."""
    schema = validation.load_schema_text(str(folder / "schema.pbtxt"))
    for dataset in validation.load_stats_text(str(folder / "statistics.pbtxt")).datasets:
        yield _look(f"statistics.pbtxt, {dataset.name}", dataset, schema)
    options = validation.StatsOptions(schema=schema)
    for split in splits:
        computed = validation.generate_statistics_from_tfrecord(str(folder / split / "*"), stats_options=options)
        yield _look(f"shards, {split}", computed.datasets[0], schema)


def _look(what: str, dataset: statistics_pb2.DatasetFeatureStatistics, schema: schema_pb2.Schema) -> Look:
    statistics = statistics_pb2.DatasetFeatureStatisticsList(datasets=[dataset])
    found = validation.validate_statistics(statistics, schema).anomaly_info
    return Look(
        what=what,
        rows=int(dataset.num_examples),
        anomalies={feature: anomaly.description for feature, anomaly in found.items()},
    )


def main(run_uri: str) -> int:
    """Look, and print what was found."""
    anomalies = 0
    with tempfile.TemporaryDirectory(prefix="tfdv-") as path:
        try:
            splits = download(run_uri.rstrip("/"), Path(path))
        except NotFound as error:
            print(
                f"tfdv: {run_uri}: {error.message}. Expected a run that was exported, with {', '.join(DOCUMENTS)}: its "
                "shards hold plain examples (docs/types.md). Name another run",
                file=sys.stderr,
            )
            return 2
        for found in look(Path(path), splits):
            print(found, flush=True)
            anomalies += len(found.anomalies)
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

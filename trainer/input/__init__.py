"""Examples as `tf.data`: `open_source` gives the splits of a manifest, whichever reader they need.

Comes in: a manifest. Goes out: a `Source`, whose files are fetched and proven in the background while TensorFlow is
imported. What a split needs stands in the manifest: files are TFRecords or CSV by its `format`, and a split with
examples but without files is read from the run table, by the reader that the request names.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.contract.documents import Manifest, ManifestSplit
from trainer.errors import NEW_ATTEMPT, DataError, RequestError
from trainer.input.files import Shards, fetch
from trainer.input.source import Share, Source, Split
from trainer.storage import Storage

if TYPE_CHECKING:
    from trainer.input.splits import Format

STORAGE_READ, TENSORFLOW_IO = "storage_read", "tensorflow_io"
"""What reads the run table itself."""


@contextlib.contextmanager
def open_source(
    manifest: Manifest,
    splits: Mapping[str, ManifestSplit],
    storage: Storage,
    share: Share | None = None,
    *,
    in_place: Collection[str] = (),
    reader: str = STORAGE_READ,
) -> Iterator[Source]:
    """Begin to fetch some splits; what is copied is removed when the block ends.

    Args:
        manifest: Says how the files are written.
        splits: What to read, by the name under which to open it; most often of the manifest.
        storage: Where files are.
        share: Which part of every split to read; default all of it.
        in_place: Splits that other machines read too: they are not copied to this one.
        reader: Of splits that have no files, `training.reader`.
    """
    with contextlib.ExitStack() as stack:
        folder_path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainer-")))
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(max_workers=1))  # ends before the folder goes
        waiting = {}
        for name, split in splits.items():
            where = folder_path / name, share or Share()
            waiting[name] = pool.submit(fetch, split, manifest.compression, storage, *where, in_place=name in in_place)
        yield _ManifestSource(manifest, splits, waiting, share, reader)


def require_input(source: str, manifest: Manifest) -> None:
    """Check that the examples lie where the request says.

    Args:
        source: `training.input` of the request.

    Raises:
        RequestError: They lie elsewhere.
    """
    train = manifest.splits["train"]
    actual = "bigquery" if train.rows and not train.files else manifest.format
    if source != actual:
        raise RequestError(
            f"train_request of run {manifest.run_key}, training.input",
            f"is {source}, and the manifest has the training split as {actual}",
            actual,
            f"{NEW_ATTEMPT}: both are made from the same plan",
        )


class _ManifestSource:
    """Opens splits with the reader that the manifest asks for."""

    def __init__(
        self,
        manifest: Manifest,
        splits: Mapping[str, ManifestSplit],
        waiting: Mapping[str, concurrent.futures.Future[Shards]],
        share: Share | None,
        reader: str,
    ) -> None:
        self._manifest, self._splits, self._waiting, self._share = manifest, splits, waiting, share
        self._reader = reader

    def open_split(self, name: str, *, may_be_empty: bool = False) -> Split:
        """Wait for the split's files and choose the reader."""
        split = self._splits[name]
        if not split.rows and not may_be_empty:
            raise DataError(
                f"manifest of run {self._manifest.run_key}",
                f"split {name} has no examples",
                "at least one",
                "Widen data.window_days, or look at the query and the checks' findings",
            )
        if split.rows and not split.files:
            return self._table_split(name)
        from trainer.input.splits import FileSplit

        return FileSplit(name, self._waiting[name].result(), self._format())

    def _table_split(self, name: str) -> Split:
        if self._reader == TENSORFLOW_IO:
            from trainer.input.tensorflow_io import IoTableSplit

            return IoTableSplit(name, self._manifest, self._share)
        from trainer.input.bigquery import TableSplit

        return TableSplit(name, self._manifest, self._share)

    def _format(self) -> Format:
        """Choose how files are read."""
        if self._manifest.format == "csv":
            from trainer.input.csv import CsvLines

            return CsvLines(self._manifest.columns)
        from trainer.input.tfrecord import Records

        return Records(self._manifest.layout)

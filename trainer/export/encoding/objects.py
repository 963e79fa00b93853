"""Images as objects: addresses come in, images of one size go out, fetched many at a time and in the rows' order.

Comes in: a batch of the run table, where a STRING column of images has `gs://bucket/name#generation,bytes`, as the
snapshot found it. Goes out: batches of some rows with BYTES in its place, so that the encoder sees what it sees of a
column of files. What follows the `#` is otherwise what was wrong with the object: the checks let that pass, and it is
NULL. Each object is read in that generation: whoever exports the row gets the same bytes, or none.
Memory is bounded by what may be ahead of the encoder, and by the bytes that may be arriving.
"""

from __future__ import annotations

import concurrent.futures
import functools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa

from trainer.contract.documents import ImageColumn
from trainer.errors import NEW_ATTEMPT, DataError
from trainer.export.encoding.images import CORRUPT, decoders, resize, row_name
from trainer.export.memory import Room
from trainer.storage import Storage

FETCHES = 32  # as many connections as the storage client keeps
ARRIVING_BYTES = 64 << 20  # of objects as they are stored
AHEAD_BYTES = 32 << 20  # of resized images that nobody has taken yet
_AHEAD = 2 * FETCHES
_PIECE_BYTES = 4 << 20
_FOUND = re.compile(r"(?s)(gs://.+)#([0-9]+),([0-9]+)")

Task = tuple[ImageColumn, str | None, int]  # column, address, row


class ObjectImages:
    """Fetches the images of a schema's columns of addresses.

    Args:
        schema: Of the batches.
        images: As in the export request.
        storage: Where the objects are.
        fetches: How many are fetched at once.
    """

    def __init__(
        self, schema: pa.Schema, images: Sequence[ImageColumn], storage: Storage, fetches: int = FETCHES
    ) -> None:
        self.images = [image for image in images if _has_addresses(schema, image.name)]
        self._storage = storage
        self._row_bytes = sum(image.height * image.width * image.channels for image in self.images) or 1
        self._ahead = max(1, min(_AHEAD, AHEAD_BYTES // self._row_bytes) * len(self.images))
        self._arriving = Room(ARRIVING_BYTES)
        self._fetches = fetches

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what `fetch` gives."""
        for image in self.images:
            schema = schema.set(schema.get_field_index(image.name), pa.field(image.name, pa.binary()))
        return schema

    def fetch(self, batch: pa.RecordBatch, multiple: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows with their images, some megabytes at a time; those that follow are fetched meanwhile.

        Args:
            batch: With addresses.
            multiple: Each piece but the last has a multiple of so many rows.

        Raises:
            DataError: An object is gone, or no PNG or JPEG image; names the first one.
            StorageError: Storage did not answer, also after retries.
        """
        if not self.images:
            yield batch
            return
        rows = max(_PIECE_BYTES // self._row_bytes // multiple, 1) * multiple
        resized = self._in_order(batch)
        for start in range(0, batch.num_rows, rows):
            piece = batch.slice(start, rows)
            images = list(islice(resized, piece.num_rows * len(self.images)))
            for place, image in enumerate(self.images):
                column = pa.array(images[place :: len(self.images)], pa.binary())
                piece = piece.set_column(piece.schema.get_field_index(image.name), image.name, column)
            yield piece

    def _in_order(self, batch: pa.RecordBatch) -> Iterator[bytes | None]:
        """Yield every row's images; at most `_ahead` beyond the one that was asked for are there or on their way."""
        waiting: deque[concurrent.futures.Future[bytes | None]] = deque()
        fetch = functools.partial(self._fetch_one, batch)
        try:
            for task in self._tasks(batch):
                waiting.append(_pool(self._fetches).submit(fetch, *task))
                if len(waiting) > self._ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for unwanted in waiting:
                unwanted.cancel()

    def _tasks(self, batch: pa.RecordBatch) -> Iterable[Task]:
        columns = [(image, batch.column(image.name)) for image in self.images]
        return ((image, column[row].as_py(), row) for row in range(batch.num_rows) for image, column in columns)

    def _fetch_one(self, batch: pa.RecordBatch, image: ImageColumn, address: str | None, row: int) -> bytes | None:
        found = _FOUND.fullmatch(address or "")
        if found is None:
            return None
        uri, generation, size = found[1], int(found[2]), int(found[3])
        where = f"column {image.name}, {row_name(batch, row)}"
        self._arriving.take(size)
        try:
            content = self._storage.read_object(uri, generation)
            if content is None:
                raise DataError(
                    where,
                    f"{uri} is no longer there as the snapshot found it (generation {generation})",
                    "an object that stays as it is until it is exported",
                    f"{NEW_ATTEMPT}: its snapshot takes what is there now",
                )
            return decoders().submit(resize, content, image).result()
        except CORRUPT as error:
            raise DataError(
                where,
                f"{uri} has {size} bytes that cannot be read as an image ({error})",
                "a PNG or JPEG file of at most 178 million pixels",
                f"Replace the object, or leave the row out in the query. {NEW_ATTEMPT}",
            ) from None
        finally:
            self._arriving.give(size)


def _has_addresses(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and pa.types.is_string(schema.field(name).type)


@functools.cache
def _pool(fetches: int) -> concurrent.futures.ThreadPoolExecutor:
    """Return the process's threads that wait for storage."""
    return concurrent.futures.ThreadPoolExecutor(max_workers=fetches, thread_name_prefix="objects")

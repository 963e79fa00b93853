"""Images as objects: fetched many at a time in bounded memory, in the rows' order, as the snapshot found them."""

from __future__ import annotations

import dataclasses
import datetime
import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from trainer.contract.documents import ImageColumn
from trainer.errors import NEW_ATTEMPT, DataError, StorageError
from trainer.export.encoding import objects
from trainer.export.encoding.images import resize
from trainer.export.encoding.objects import ObjectImages
from trainer.storage import Storage

PHOTO = ImageColumn(name="photo", height=4, width=4, channels=3, encoding="raw")
FOLDER = "gs://photos/cats"
GENERATION = 17


def png(seed: int) -> bytes:
    """A picture of its own."""
    pixels = np.random.default_rng(seed).integers(0, 255, (9, 9, 3))
    stored = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(stored, "PNG")
    return stored.getvalue()


class Photos(Storage):
    """Objects in memory, files on disk; notes how many are asked for at once."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        super().__init__()
        self.contents = contents
        self.asked: list[str] = []
        self.at_once = self.most = 0
        self.gate: threading.Barrier | None = None
        self._lock = threading.Lock()

    def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
        """The generation of the snapshot, or nothing."""
        if not uri.startswith("gs://"):
            return super().read_object(uri)
        with self._lock:
            self.asked.append(uri)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        if self.gate is not None:
            self.gate.wait(timeout=20)
        with self._lock:
            self.at_once -= 1
        return self.contents.get(uri) if generation == GENERATION else None


def address(name: str, size: int = 100) -> str:
    """As the run table has it."""
    return f"{FOLDER}/{name}#{GENERATION},{size}"


def batch_of(addresses: list[str | None]) -> pa.RecordBatch:
    """Rows with a key and an address."""
    keys = [f"cat-{row}" for row in range(len(addresses))]
    return pa.record_batch({"cat_id": keys, "photo": pa.array(addresses, pa.string())})


def photos(count: int) -> Photos:
    """So many objects."""
    return Photos({f"{FOLDER}/{row}.png": png(row) for row in range(count)})


def fetched(batch: pa.RecordBatch, storage: Storage, multiple: int = 1, image: ImageColumn = PHOTO) -> list[Any]:
    """The images of all rows."""
    made = ObjectImages(batch.schema, [image], storage)
    pieces = list(made.fetch(batch, multiple))
    assert all(piece.num_rows % multiple == 0 for piece in pieces[:-1])
    assert all(piece.schema == made.schema(batch.schema) for piece in pieces)
    assert [key for piece in pieces for key in piece["cat_id"].to_pylist()] == batch["cat_id"].to_pylist()
    return [value for piece in pieces for value in piece["photo"].to_pylist()]


def test_every_row_gets_its_own_image_resized() -> None:
    """In the rows' order, although they come in any; an address that stands twice is two images."""
    storage = photos(200)
    names = [f"{row * 7 % 200}.png" for row in range(300)]
    found = fetched(batch_of([address(name) for name in names]), storage)
    assert found == [resize(storage.contents[f"{FOLDER}/{name}"], PHOTO) for name in names]


def test_no_address_and_what_the_checks_let_pass_are_null() -> None:
    """Nothing is asked for."""
    storage = photos(1)
    left_out = [None, f"{FOLDER}/0.png#missing", "https://elsewhere/0.png#elsewhere", f"{FOLDER}/a#1,2#text/csv"]
    assert fetched(batch_of(left_out), storage) == [None] * 4
    assert storage.asked == []
    assert fetched(batch_of([]), storage) == []


def test_a_name_may_have_anything_in_it() -> None:
    """The last # is the snapshot's."""
    storage = Photos({f"{FOLDER}/a #1,2\n.png": png(1)})
    assert fetched(batch_of([address("a #1,2\n.png")]), storage) == [resize(png(1), PHOTO)]


def test_columns_of_files_and_of_addresses_may_stand_side_by_side() -> None:
    """The encoder sees files alone; here they are left as they are."""
    other = dataclasses.replace(PHOTO, name="drawing")
    batch = pa.record_batch({"photo": [address("0.png")], "drawing": pa.array([b"x"], pa.binary())})
    made = ObjectImages(batch.schema, [PHOTO, other], photos(1))
    assert made.images == [PHOTO]
    (piece,) = made.fetch(batch, 1)
    assert piece["drawing"].to_pylist() == [b"x"]


def test_many_are_fetched_at_once() -> None:
    """As many as there are connections: each waits here until all of them have asked."""
    storage = photos(objects.FETCHES * 2)
    storage.gate = threading.Barrier(objects.FETCHES)
    fetched(batch_of([address(f"{row}.png") for row in range(objects.FETCHES * 2)]), storage)
    assert storage.most == objects.FETCHES


def test_nothing_is_fetched_far_ahead_of_the_encoder() -> None:
    """Of large images few: what nobody has taken yet is in memory."""
    large = dataclasses.replace(PHOTO, height=1024, width=1024)
    storage = photos(100)
    batch = batch_of([address(f"{row}.png") for row in range(100)])
    pieces = ObjectImages(batch.schema, [large], storage).fetch(batch, 1)
    taken = next(pieces).num_rows
    most = objects.AHEAD_BYTES // (1024 * 1024 * 3)
    assert 0 < len(storage.asked) <= taken + most + 1 < 100
    del pieces


def test_large_objects_arrive_one_after_the_other() -> None:
    """What arrives is bounded by bytes too."""
    storage = photos(8)
    size = objects.ARRIVING_BYTES // 2 + 1
    fetched(batch_of([address(f"{row}.png", size) for row in range(8)]), storage)
    assert storage.most == 1


def test_an_object_that_is_gone_is_named_with_its_row() -> None:
    """Deleted or overwritten since the snapshot: nothing else is taken for it. The first of the rows, in every run."""
    storage = photos(40)
    del storage.contents[f"{FOLDER}/7.png"], storage.contents[f"{FOLDER}/30.png"]
    with pytest.raises(DataError) as refused:
        fetched(batch_of([address(f"{row}.png") for row in range(40)]), storage)
    assert "column photo, row where cat_id = 'cat-7'" in str(refused.value)
    assert f"{FOLDER}/7.png is no longer there as the snapshot found it (generation 17)" in str(refused.value)
    assert NEW_ATTEMPT in str(refused.value)


def test_a_broken_image_is_named_with_its_row() -> None:
    """By its address, and what Pillow says of it."""
    storage = photos(3)
    storage.contents[f"{FOLDER}/1.png"] = png(1)[:60]
    with pytest.raises(DataError, match=r"cat-1.*gs://photos/cats/1\.png has 60 bytes that cannot be read as an image"):
        fetched(batch_of([address("0.png"), address("1.png", 60), address("2.png")]), storage)


def test_storage_that_does_not_answer_is_a_failure_that_may_pass() -> None:
    """Another try of the job may help: the row is not at fault."""

    class Silent(Storage):
        def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
            raise StorageError(uri, f"storage did not answer ({generation})")

    with pytest.raises(StorageError, match="did not answer"):
        fetched(batch_of([address("0.png")] * 100), Silent())


@pytest.fixture
def photo_run(run, monkeypatch) -> Any:
    """The small run, with a photo in each row."""
    from tests.trainer import conftest

    column = {"name": "photo", "type": "STRING", "mode": "NULLABLE"}
    monkeypatch.setattr(conftest, "SCHEMA", [*conftest.SCHEMA, column])
    run.storage = photos(50)
    names = [address(f"{row % 50}.png") for row in range(run.rows.num_rows)]
    run.rows = run.rows.append_column("photo", pa.array(names))
    return run


IMAGES = [dataclasses.asdict(PHOTO)]


def test_a_killed_export_goes_on_and_no_object_is_read_for_what_is_there(photo_run, tmp_path: Path) -> None:
    """To the same bytes as one that was never killed."""
    whole = dataclasses.replace(photo_run, path=tmp_path / "whole")
    whole.path.mkdir()
    whole.export(images=IMAGES)

    class Dying(Photos):
        def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
            if len(self.asked) > 700 and uri.startswith("gs://"):
                raise KeyboardInterrupt
            return super().read_object(uri, generation)

    alive, photo_run.storage = photo_run.storage, Dying(photo_run.storage.contents)
    with pytest.raises(KeyboardInterrupt):
        photo_run.export(images=IMAGES)
    kept = {name for name in photo_run.files() if name.endswith(".gz")}
    assert 0 < len(kept) < 24
    photo_run.storage = alive
    alive.asked.clear()
    photo_run.export(images=IMAGES)
    assert len(alive.asked) < photo_run.rows.num_rows
    assert photo_run.files() == whole.files()


def test_several_rows_in_a_record_and_two_replicas_make_the_same_files(photo_run, tmp_path: Path) -> None:
    """Whoever fetches a row, and with however many others."""
    layout = {"numeric": [], "rows_per_record": 64}
    photo_run.export(images=IMAGES, layout=layout)
    day = {name: data for name, data in photo_run.files().items() if str(datetime.date(2024, 1, 1)) in name}
    assert len([name for name in day if name.endswith(".gz")]) == 4
    other = dataclasses.replace(photo_run, path=tmp_path / "other")
    other.path.mkdir()
    other.storage = Photos(photo_run.storage.contents)
    other.export(images=IMAGES, layout=layout)
    assert other.files() == photo_run.files()

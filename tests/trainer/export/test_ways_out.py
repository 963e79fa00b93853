"""What the exporter's messages advise, done as they say: then it exports."""

from __future__ import annotations

import dataclasses
import datetime
import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image

from tests.support.ways_out import ways_out
from trainer.bigquery.structs import flatten
from trainer.contract.column_types import MAX_COLUMNS
from trainer.contract.documents import Column, ExportRequest, ImageColumn, ShardLayout
from trainer.errors import TrainerError
from trainer.export.encoding.columns import column_encoder
from trainer.export.encoding.formats import make_format
from trainer.export.encoding.images import resize_columns
from trainer.export.encoding.layout import Arrangement
from trainer.export.encoding.objects import ObjectImages
from trainer.export.encoding.types import require_mapped
from trainer.export.reading.sorting import sort_rows
from trainer.export.work import Unit
from trainer.storage import Storage

PHOTO = ImageColumn(name="photo", height=4, width=4, channels=1, encoding="raw")
UNIT = Unit(span="2024-01-01", part="train", shard=0)
OWN = {
    "span": pa.array([datetime.date(2024, 1, 1)]),
    "part": pa.array(["train"]),
    "shard": pa.array([0]),
    "row_hash": pa.array([7]),
}


@dataclass(frozen=True)
class Case:
    """An input that is refused, words of the message's way out, and each input changed as it says."""

    do: Callable[[Any], object]
    wrong: Any
    words: str
    right: tuple[Any, ...]


def column(name: str = "x", type_: str = "STRING", mode: str = "NULLABLE") -> Column:
    """A column as the export request has it."""
    return Column(name=name, type=type_, mode=mode)


def mapped(*columns: Column) -> object:
    """Whether there is a feature for each column."""
    return require_mapped(columns, "schema")


def write(given: tuple[str, pa.Array, dict[str, Any]]) -> bytes:
    """Write one column: a format, its values, other keys of the request."""
    format_, values, changes = given
    types = {pa.string(): "STRING", pa.binary(): "BYTES", pa.int64(): "INTEGER"}
    schema = (column(type_=types[values.type]),) if len(values) else ()
    request = ExportRequest(
        model="m",
        run_key="r",
        table="p.d.t",
        columns=schema,
        schema_hash="0",
        spans=(),
        **{"compression": "NONE", "spans_uri": "/s", "test_start": "2024-01-01", "manifest_uri": "/m", **changes},
        format=format_,
    )
    made = make_format(request, Storage())
    names = [one.name for one in schema]
    return made.head() + b"".join(map(bytes, made.encode(pa.record_batch([values] * len(names), names=names))))


def flat(**types: pa.DataType) -> pa.Schema:
    """Leaves of columns; `_` in a name stands for a dot."""
    schema = pa.schema([(name.replace("_", "."), type_) for name, type_ in types.items()])
    return flatten(pa.RecordBatch.from_pylist([], schema=schema)).schema


def legs(codes: pa.DataType) -> pa.DataType:
    """An array of STRUCTs."""
    return pa.list_(pa.struct([("codes", codes)]))


def laid_out(given: tuple[ShardLayout, pa.Schema]) -> object:
    """Whether columns fit a layout."""
    return Arrangement(given[1], given[0])


def resized(content: bytes | None) -> object:
    """An image as it is stored."""
    return resize_columns(pa.record_batch({"photo": pa.array([content], pa.binary())}), [PHOTO])


class Stored(Storage):
    """One object, of generation 2."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
        """Return it, in that generation alone."""
        return self._content if (uri, generation) == ("gs://b/photo", 2) else None


def fetched(given: tuple[bytes, str | None]) -> object:
    """An object's image as it is stored: what lies there, and the row's address."""
    content, address = given
    batch = pa.record_batch({"photo": pa.array([address], pa.string())})
    return list(ObjectImages(batch.schema, [PHOTO], Stored(content)).fetch(batch, 1))


def in_order(own: dict[str, pa.Array]) -> object:
    """A row of the run table in file order."""
    return sort_rows([pa.record_batch({"x": pa.array([1]), **own})], [UNIT], lambda rows: [b""] * rows.num_rows)


def png() -> bytes:
    """A file."""
    stored = io.BytesIO()
    Image.new("L", (5, 5)).save(stored, "PNG")
    return stored.getvalue()


TEXT, BYTES, NUMBERS, NOTHING = pa.array(["a\nb"]), pa.array([b"x"]), pa.array([1]), pa.array([], pa.string())
VECTOR = ShardLayout(numeric=("x",))
CASES = {
    "columns.py, type": Case(
        lambda type_: column_encoder("x", type_), pa.month_day_nano_interval(), "Cast it in the query", (pa.string(),)
    ),
    "columns.py, NULL": Case(
        lambda value: column_encoder("x", pa.list_(pa.int64())).encode(pa.array([value], pa.list_(pa.int64()))),
        [1, None],
        "Filter or replace them in the query",
        ([1], [1, 0]),
    ),
    "csv.py, line break": Case(
        write,
        ("csv", TEXT, {}),
        "Remove it in the query, or set training.input to tfrecord",
        (("csv", pa.array(["a b"]), {}), ("tfrecord", TEXT, {})),
    ),
    "csv.py, BYTES": Case(
        write,
        ("csv", BYTES, {}),
        "Set training.input to tfrecord, or leave the columns out of the query",
        (("tfrecord", BYTES, {}), ("csv", NOTHING, {})),
    ),
    "csv.py, layout": Case(
        write,
        ("csv", NUMBERS, {"layout": VECTOR}),
        "Set training.input to tfrecord, or data.layout to its defaults",
        (("tfrecord", NUMBERS, {"layout": VECTOR}), ("csv", NUMBERS, {"layout": ShardLayout()})),
    ),
    "csv.py, images": Case(
        write,
        ("csv", NUMBERS, {"images": (PHOTO,)}),
        "Set training.input to tfrecord.",
        (("tfrecord", pa.array([png()]), {"images": (dataclasses.replace(PHOTO, name="x"),)}),),
    ),
    "images.py, file": Case(resized, b"GIF89a", "Mend it, or filter it in the query", (png(), None)),
    "objects.py, gone": Case(
        fetched,
        (png(), "gs://b/photo#1,9"),
        "Trigger the DAG again with this run's as_of and the Param force: its snapshot takes what is there now",
        ((png(), "gs://b/photo#2,9"),),
    ),
    "objects.py, broken": Case(
        fetched,
        (b"GIF89a", "gs://b/photo#2,6"),
        "Replace the object, or leave the row out in the query. Trigger the DAG again with this run's as_of",
        ((png(), "gs://b/photo#2,9"), (b"GIF89a", None)),
    ),
    "layout.py": Case(
        laid_out,
        (VECTOR, flat(x=pa.string())),
        "Change the model's data.layout or its query",
        ((ShardLayout(), flat(x=pa.string())), (VECTOR, flat(x=pa.float64()))),
    ),
    "sorting.py, rows": Case(in_order, {**OWN, "shard": pa.array([3])}, "Start again; if it stays", (OWN,)),
    "sorting.py, own column": Case(
        in_order, {**OWN, "row_hash": pa.array(["7"])}, "The snapshot makes it. Trigger the DAG again", (OWN,)
    ),
    "structs.py, nested": Case(
        lambda type_: flat(legs=type_),
        legs(pa.list_(pa.string())),
        "UNNEST it, or join its values into one STRING, in the query",
        (pa.list_(pa.struct([("code", pa.string())])), legs(pa.string())),
    ),
    "structs.py, twice": Case(
        lambda name: flat(**{name: pa.int64(), "a": pa.struct([("b", pa.int64())])}), "a_b", "Rename one", ("a_c",)
    ),
    "types.py, STRUCT": Case(lambda type_: mapped(column(type_=type_)), "RECORD", "Select its fields", ("STRING",)),
    "types.py, INTERVAL": Case(
        lambda type_: mapped(column(type_=type_)),
        "INTERVAL",
        "Select CAST(x AS STRING), or parts of it: EXTRACT(DAY FROM x)",
        ("STRING", "INTEGER"),
    ),
    "types.py, RANGE": Case(lambda type_: mapped(column(type_=type_)), "RANGE", "Select RANGE_START(x)", ("DATE",)),
    "types.py, another": Case(
        lambda type_: mapped(column(type_=type_)), "NEW", "Select CAST(x AS STRING)", ("STRING",)
    ),
    "types.py, taken name": Case(lambda name: mapped(column(name)), "part", "Rename it", ("part_of_town",)),
    "types.py, columns": Case(
        lambda columns: mapped(*columns),
        [column(f"c{index}", "FLOAT") for index in range(MAX_COLUMNS + 1)],
        "Put numbers that belong together into one ARRAY<FLOAT64>",
        ([column("c", "FLOAT", "REPEATED")],),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_way_out_is_one(name: str) -> None:
    """Refused; and taken when it is changed as the message says."""
    case = CASES[name]
    with pytest.raises(TrainerError) as refused:
        case.do(case.wrong)
    assert case.words in str(refused.value)
    for right in case.right:
        case.do(right)


@dataclass(frozen=True)
class Store:
    """Harm to a stored span, words of the way out, what is deleted as it says, and whether it needs a new attempt."""

    harm: Callable[[Path], object]
    words: str
    delete: Callable[[Path], object] = lambda _folder: None
    action: str = "reuse"


FORCE = "Trigger the DAG again with this run's as_of and the Param force"


def cut(folder: Path) -> None:
    """Take the end off a shard."""
    victim = min(folder.glob("*.gz"))
    victim.write_bytes(victim.read_bytes()[:-1])


def miscount(folder: Path) -> None:
    """Let the span's document miscount."""
    path = folder / "span.json"
    path.write_text(path.read_text().replace('"rows": ', '"rows": 1'))


def overwrite(folder: Path) -> None:
    """Put another file in a shard's place, whose sidecar is not there."""
    victim = min(folder.glob("*.gz"))
    victim.write_bytes(b"another")
    Path(f"{victim}.json").unlink()


def spoil_sidecar(folder: Path) -> None:
    """Empty a sidecar of a span that is not whole."""
    (folder / "span.json").unlink()
    min(folder.glob("*.gz.json")).write_text("{}")


STORES = {
    "span_store.py, other size": Store(
        cut, f"Delete the span's folder. {FORCE}: the span is exported again", shutil.rmtree
    ),
    "span_store.py, other rows": Store(
        miscount, f"Delete the span's folder. {FORCE}: the span is exported again", shutil.rmtree
    ),
    "span_store.py, no span.json": Store(
        lambda folder: (folder / "span.json").unlink(), f"{FORCE}: the span is exported again"
    ),
    "span_store.py, other bytes": Store(
        overwrite, "delete the span's folder and start again", shutil.rmtree, action="export"
    ),
    "span_store.py, sidecar": Store(
        spoil_sidecar, "Delete it and start again", lambda folder: min(folder.glob("*.gz.json")).unlink(), "export"
    ),
}


@pytest.mark.parametrize("name", STORES)
def test_a_damaged_span_is_exported_again(run, name: str) -> None:
    """To the same bytes. A new attempt's snapshot exports what the store has not whole; another try does the same."""
    case = STORES[name]
    run.export()
    whole, spans = run.files(), run.export_json()["spans"]
    (run.path / "manifest.json").unlink()
    folder = next(run.path.glob("spans/2024-01-02/*"))
    case.harm(folder)
    tried = [{**span, "action": case.action} for span in spans]
    with pytest.raises(TrainerError) as refused:
        run.export(spans=tried)
    assert case.words in str(refused.value)
    case.delete(folder)
    if FORCE in case.words:
        with pytest.raises(TrainerError):
            run.export(spans=tried)
        stored = {path.parent.parent.name for path in run.path.glob("spans/*/*/span.json")}
        tried = [{**span, "action": "reuse" if span["span"] in stored else "export"} for span in spans]
    run.export(spans=tried)
    assert run.files() == whole


def test_a_run_table_that_changed_is_another_attempts(run) -> None:
    """Its snapshot counts what is there now."""
    before = run.export_json()["spans"]
    run.rows = run.rows.slice(1)
    with pytest.raises(TrainerError) as refused:
        run.export(spans=before)
    assert CHANGED in str(refused.value)
    run.export()
    assert run.manifest().exported_rows == run.rows.num_rows


CHANGED = f"The run table changed. {FORCE}"
ELSEWHERE = {
    "streams.py: Start again: what is finished is kept": "test_faults.py: a reader that fails",
    "streams.py: Grant them to the account": "reading/test_reader.py",
    f"streams.py: It is not the one that the request was made for. {FORCE}": "reading/test_reader.py",
    "streams.py: It may have expired: clear the run's snapshot task and what follows it": (
        "tests/operators/runs/test_documents.py: an expired table"
    ),
    f"span_store.py: {CHANGED}": "above",
}


def test_every_way_out_of_the_exporter_is_followed() -> None:
    """Here, or where it says."""
    followed = [(name.partition(",")[0], case.words) for name, case in (CASES | STORES).items()]
    followed += [tuple(name.split(": ", 1)) for name in ELSEWHERE]
    for where, texts in ways_out("trainer/export/**/*.py", "trainer/bigquery/*.py"):
        words = [words for file, words in followed if file == where.partition(":")[0]]
        assert any(text in one or one in text for text in texts for one in words), (where, texts)

"""One contender of `make bench-export`: `python -m bench.export_contender WRITER PATH ROWS COMPRESSION OUT`.

In: an Arrow file that `export_tables` wrote. Out: one line of JSON with rows, seconds, bytes written, the growth of
the process while it wrote and, of ours, the seconds to the first records.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from trainer.export.memory import PeakMemory

WRITERS = {
    "ours": "bench.export_ours:Ours",
    "floor": "bench.export_ours:Floor",
    "tutorial": "bench.export_tensorflow:Tutorial",
    "protobuf": "bench.export_tensorflow:ByHand",
    "tfx_bsl": "bench.export_tfx:TfxBsl",
    "beam": "bench.export_tfx:Beam",
}


_FILLED_BYTES = 4 << 20
_COMPRESSED = 4  # a first guess at how much smaller a GZIP file is; what is missing is allocated while writing


class Writer(Protocol):
    """Writes its rows; what it needs in memory it has before."""

    def write(self, path: Path, compression: str) -> None:
        """Write TFRecords to a file, or to files whose names begin like it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write once, and print what it took."""
    name, path, rows, compression, out = arguments or sys.argv[1:]
    writer = make_writer(name, Path(path), int(rows))
    fill(Path(out), getattr(writer, "room", 0) // (1 if compression == "none" else _COMPRESSED))
    memory, start = PeakMemory(), time.perf_counter()
    writer.write(Path(out), compression)
    seconds = time.perf_counter() - start
    written = list(Path(out).parent.glob(f"{Path(out).name}*"))
    taken = {
        "rows": int(rows),
        "seconds": seconds,
        "bytes": sum(file.stat().st_size for file in written),
        "working_set_mb": round((memory.grown() or 0) / 1e6, 1),
        "first_batch_s": getattr(writer, "first_batch_s", None),
        "pandas": "pandas" in sys.modules,
    }
    for file in written:
        file.unlink()
    print(json.dumps(taken))
    return 0


def fill(path: Path, size: int) -> None:
    """Make a file of so many bytes, in memory that is really there; none for no bytes."""
    if size:
        with path.open("wb") as file:
            for _ in range(-(-size // _FILLED_BYTES)):
                file.write(b"\1" * _FILLED_BYTES)


def make_writer(name: str, path: Path, rows: int) -> Writer:
    """Make a writer; only its own module is imported."""
    module, _, class_ = WRITERS[name].partition(":")
    writer: Writer = getattr(importlib.import_module(module), class_)(path, rows)
    return writer


if __name__ == "__main__":
    sys.exit(main())

"""What `make bench-scoring` needs of TensorFlow: `make` trains the flights model, `direct` calls it in this process.

    python -m bench.scoring_contender make FOLDER ROWS     FOLDER/model and FOLDER/lines.jsonl
    python -m bench.scoring_contender direct FOLDER SIZE   one line of JSON: rows, seconds, score by key

`direct` is the ceiling: the SavedModel's signature called with arrays that are in memory already, no server, no JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

KEY = "flight_id"
_TRAINED_ROWS = 20_000


def make(folder_path: Path, rows: int) -> None:
    """Train for an epoch; write flights without a missing number as lines."""
    from bench.flights import LABEL
    from bench.train_files import flights_examples, write_request, write_training_files
    from bench.train_runs import train_at_once

    data_path = folder_path / "data"
    write_training_files(data_path, _TRAINED_ROWS)
    request_path = write_request(data_path, "run", epochs=1)
    train_at_once([request_path])
    (request_path.parent / "model").rename(folder_path / "model")
    flights = flights_examples().drop([LABEL]).drop_null().slice(0, rows).to_pylist()
    lines = [json.dumps({KEY: f"f{number}", **_as_sent(row)}) for number, row in enumerate(flights)]
    (folder_path / "lines.jsonl").write_text("\n".join(lines) + "\n")


def direct(folder_path: Path, size: int) -> dict[str, object]:
    """Call the model with so many rows at once."""
    import numpy as np
    import tensorflow as tf

    rows = [json.loads(line) for line in (folder_path / "lines.jsonl").read_text().splitlines()]
    call = tf.saved_model.load(str(folder_path / "model")).signatures["serving_default"]
    inputs = call.structured_input_signature[1]
    columns = {name: np.array([row[name] for row in rows], spec.dtype.as_numpy_dtype) for name, spec in inputs.items()}

    def score(start: int) -> list[float]:
        batch = {name: tf.constant(column[start : start + size]) for name, column in columns.items()}
        return [float(each) for each in np.ravel(call(**batch)["score"].numpy())]

    score(0)  # the first call traces
    began, cpu = time.perf_counter(), time.process_time()
    scores = [value for start in range(0, len(rows), size) for value in score(start)]
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    return {
        "rows": len(rows),
        "seconds": seconds,
        "cpu_s": cpu_s,
        "scores": dict(zip((row[KEY] for row in rows), scores, strict=True)),
    }


def _as_sent(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, str) else float(value) for name, value in row.items()}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(direct(Path(sys.argv[2]), int(sys.argv[3]))))

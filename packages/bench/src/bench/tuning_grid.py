"""`make bench-tuning-grid`: what trials of the flights model score, by values and by week.

In: nothing but this machine. Out: `tuning_grid.json`: the best validation AUC of the real trainer at
every point of a grid, for windows of 60 days that end a week apart, and of one point with other seeds.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.input import machine
from bench.train_files import write_request, write_training_files
from trainer.cluster.replica import Replica
from trainer.contract.documents import TrainRequest
from trainer.contract.reading import parse_document
from trainer.storage import Storage
from trainer.telemetry.usage import Clock
from trainer.training.training_job import TrainingJob

GRID_PATH = Path(__file__).with_name("tuning_grid.json")
RATES = tuple(round(1e-4 * 300 ** (step / 6), 7) for step in range(7))  # to 0.03
DROPOUTS = (0.0, 0.3, 0.6)
UNITS = ("16", "32", "64-32")
METRIC = "val_auc"
_DAYS, _EPOCHS, _SEEDS = 60, 4, 8
_ENDS = (datetime.date(2013, 11, 12), datetime.date(2013, 11, 19))
_MIDDLE = {"learning_rate": RATES[3], "dropout": 0.3, "hidden_units": "32"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one window or all, and write what is known."""
    parser = argparse.ArgumentParser(prog="bench.tuning_grid", description=__doc__)
    parser.add_argument("--window", type=int, choices=range(len(_ENDS)), help="only this one (default: all)")
    options = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CLOUD_ML_TRIAL_ID"] = "1"
    known: dict[str, Any] = json.loads(GRID_PATH.read_text()) if GRID_PATH.exists() else {"windows": {}}
    for index in range(len(_ENDS)) if options.window is None else [options.window]:
        known["windows"][str(_ENDS[index])] = measure(_ENDS[index])
        known |= {
            "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": machine(),
            "metric": METRIC,
            "epochs": _EPOCHS,
            "axes": {"learning_rate": RATES, "dropout": DROPOUTS, "hidden_units": UNITS},
        }
        GRID_PATH.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return 0


def measure(end: datetime.date) -> dict[str, Any]:
    """Return the scores of every point in the order of the axes, and of the middle with other seeds."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-tuning-") as folder:
        path = Path(folder, "run")
        rows = write_training_files(path, 1 << 20, (end - datetime.timedelta(days=_DAYS), end))
        points = [dict(zip(_MIDDLE, values, strict=True)) for values in itertools.product(RATES, DROPOUTS, UNITS)]
        scores = [score(path, f"point-{index}", point) for index, point in enumerate(points)]
        again = [score(path, f"seed-{seed}", _MIDDLE, seed) for seed in range(2, 2 + _SEEDS)]
    seconds = round(time.monotonic() - begun, 1)
    print(f"window to {end}: {len(points)} points in {seconds} s, {min(scores):.4f} to {max(scores):.4f}", flush=True)
    return {"rows": rows, "scores": scores, "seeds": again, "seconds": seconds}


def score(folder_path: Path, name: str, values: Mapping[str, Any], seed: int = 1) -> float:
    """Return a trial's best validation AUC, as the trainer reports it."""
    from trainer.training.job import train

    os.environ["CLOUD_ML_HP_METRIC_FILE"] = str(folder_path / f"{name}.metrics")
    request = parse_document(TrainRequest, write_request(folder_path, name, epochs=_EPOCHS).read_bytes(), name)
    training = dataclasses.replace(request.training, hyperparameters=values)
    request = dataclasses.replace(request, training=training, seed=seed, trial_metric=METRIC)
    job = TrainingJob.from_request(request, Storage(), Replica(), Clock(time.monotonic()))
    with job.open_source() as source:
        train(job, source)
    history: Sequence[float] = json.loads(Path(request.report_uri).read_bytes())["history"][METRIC]
    return round(max(history), 6)


if __name__ == "__main__":
    sys.exit(main())

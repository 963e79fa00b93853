"""An Airflow environment on this machine, as a command of a person finds it: settings and a DAG file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def airflow_home(folder: Path, monkeypatch: Any) -> Path:
    """Make one in which nothing is wrong; return its DAG file, which takes no time."""
    dags = folder / "dags"
    dags.mkdir(parents=True)
    path = dags / "retrain.py"
    path.write_text("# as the files of dags/, of retraining.dags\n", encoding="utf-8")
    settings = {"LOAD_EXAMPLES": "False", "DAGS_FOLDER": str(dags), "PLUGINS_FOLDER": str(ROOT / "plugins")}
    settings |= {"PARALLELISM": "32", "MAX_ACTIVE_TASKS_PER_DAG": "16", "DAGBAG_IMPORT_TIMEOUT": "600"}
    monkeypatch.setenv("AIRFLOW_HOME", str(folder))
    for name, value in settings.items():
        monkeypatch.setenv(f"AIRFLOW__CORE__{name}", value)
    return path

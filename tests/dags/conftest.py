"""All DAGs, parsed as the DAG processor parses them, with an Airflow home of this session's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

# Before the first import of Airflow: nothing of this machine's Airflow is read or written.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-home-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def dags() -> dict[str, Any]:
    """Every DAG of the repository by id."""
    return parse(ROOT / "dags")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of dags/ and plugins/ as Composer gets it, for changes to include/models."""
    return copy_bundle(tmp_path)


def copy_bundle(path: Path) -> Path:
    """Copy dags/ and plugins/ as Composer gets them into a folder."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "dags", path / "dags", ignore=ignore)
    shutil.copytree(ROOT / "plugins", path / "plugins", ignore=ignore)
    shutil.copytree(ROOT / "include", path / "dags" / "include")
    return path


def write_spec(bundle: Path, name: str, **changes: Any) -> None:
    """Write a spec like flight_delays with changes, by path with two underscores (`data__query`)."""
    models = bundle / "dags" / "include" / "models"
    spec = yaml.safe_load((models / "flight_delays.yaml").read_text())
    spec["name"] = name
    for path, value in changes.items():
        *sections, last = path.split("__")
        section = spec
        for part in sections:
            section = section[part]
        section[last] = value
    (models / f"{name}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))


def parse(dags_path: Path) -> dict[str, Any]:
    """DAGs of a folder by id; fails when a file does not import."""
    from tests.support.airflow_release import DagBag

    bag = DagBag(dag_folder=str(dags_path), known_pools={"default_pool"})
    assert not bag.import_errors
    return dict(bag.dags)


def run_python(bundle: Path, code: str) -> str:
    """Run code in a fresh Python with a bundle's folders on its path; give its output."""
    environ = {**os.environ, "PYTHONPATH": f"{bundle / 'plugins'}:{bundle / 'dags'}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, text=True, capture_output=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

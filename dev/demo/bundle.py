"""A copy of what Composer gets, whose models may be changed.

Comes in: a folder, changes of a model's spec. Goes out: the folder of DAG files there; that of plugins is beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from demo.checkout import REPOSITORY_PATH


def copy_bundle(path: Path) -> Path:
    """Copy dags, plugins and include into a folder, in the place of what was there; return its folder of DAG files."""
    shutil.rmtree(path, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("dags", "plugins"):
        shutil.copytree(REPOSITORY_PATH / name, path / name, ignore=ignore)
    shutil.copytree(REPOSITORY_PATH / "include", path / "dags" / "include")
    return path / "dags"


def change_spec(dags_path: Path, model: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Write a model's YAML file anew, with what a function changes in it.

    Args:
        dags_path: Of a bundle.
        model: Whose.
        change: Takes what the file says.
    """
    path = dags_path / "include" / "models" / f"{model}.yaml"
    spec = yaml.safe_load(path.read_text())
    change(spec)
    path.write_text(yaml.safe_dump(spec, sort_keys=False))

"""The models of `examples/`, each copied into a folder that stands for `include`, as their page says."""

from __future__ import annotations

import shutil
from pathlib import Path

from retraining.core.settings import include_path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def copy_include(folder: Path) -> Path:
    """A copy of `include` as DAGs read it, without its models."""
    for name in ("containers", "prices", "regions", "contracts", "templates"):
        shutil.copytree(include_path() / name, folder / name)
    return folder


def copy_example(name: str, include: Path) -> Path:
    """Let an example's files lie where the page says; gives its YAML file."""
    shutil.copytree(EXAMPLES / name, include, dirs_exist_ok=True)
    (path,) = (include / "models").glob("*.yaml")
    return path

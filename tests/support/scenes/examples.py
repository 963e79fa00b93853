"""The models of `examples/`, each copied into a folder that stands for `include`, as their page says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def make_include(folder: Path) -> Path:
    """A folder as `include` is, without models."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def copy_example(name: str, include: Path, model: str | None = None) -> Path:
    """Let an example's files lie where the page says; gives its YAML file.

    Args:
        name: The example's folder.
        include: From `make_include`.
        model: A name of the test's own, where others of the session have runs of the example on the same cloud.
    """
    shutil.copytree(EXAMPLES / name, include, dirs_exist_ok=True)
    (path,) = (include / "models").glob("*.yaml")
    return path if model is None else rename_model(path, model)


def rename_model(path: Path, model: str) -> Path:
    """Give a model of a YAML file another name; returns its new file."""
    path.write_text(re.sub("(?m)^name: .*$", f"name: {model}", path.read_text(encoding="utf-8")), encoding="utf-8")
    return path.rename(path.with_stem(model))

"""A release has one number."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_changelog_project_trainer_and_image_name_one_release() -> None:
    """The newest dated section of the changelog is what everything else says it is."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", changelog, re.MULTILINE)[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    trainer = re.findall(r'^__version__ = "(.*)"$', (ROOT / "trainer/__init__.py").read_text(), re.MULTILINE)
    config = json.loads((ROOT / "dev/demo/localcloud.json").read_text())
    image = config["variables"]["RETRAINING_TRAINER_IMAGE"].rpartition(":")[2]
    assert [newest] * 3 == [project, *trainer, image]

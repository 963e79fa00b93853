"""What the locks of the trainer's images have in common."""

from __future__ import annotations

import re
from pathlib import Path

TRAINER = Path(__file__).resolve().parents[2] / "trainer"


def locked(name: str) -> set[str]:
    """Return the packages of a lock with their versions."""
    return set(re.findall(r"^[\w.-]+==\S+", (TRAINER / name).read_text(encoding="utf-8"), flags=re.MULTILINE))


def test_the_image_for_gpus_is_the_trainer_s_with_cuda() -> None:
    """So that what was tested is what runs there."""
    cuda = {package for package in locked("requirements-gpu.txt") if package.startswith("nvidia-")}
    assert cuda
    version = next(package for package in locked("requirements.txt") if package.startswith("tensorflow-cpu=="))
    plain = locked("requirements.txt") - {version} | {version.replace("-cpu", "")}
    assert locked("requirements-gpu.txt") - cuda == plain

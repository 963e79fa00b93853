"""The example of a layer split over virtual devices, run as its page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY_PATH = Path(__file__).resolve().parents[2]


def run_example(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "examples/dtensor/split_layer.py", *arguments]
    return subprocess.run(command, cwd=REPOSITORY_PATH, capture_output=True, text=True, check=False, timeout=120)


def test_the_split_layer_trains_as_the_whole_one() -> None:
    """Four devices hold a quarter of the kernel each, and end in the same loss and weights."""
    done = run_example("--devices", "4")
    assert done.returncode == 0, done.stderr
    whole, split = (
        re.search(rf"{name}: loss (\S+) to (\S+), kernel (\[.*\])", done.stdout) for name in ("whole", "split")
    )
    assert whole
    assert split
    assert (whole[3], split[3]) == ("[8, 64]", "[8, 16]")
    assert float(whole[2]) < 0.2 * float(whole[1])
    assert abs(float(split[2]) - float(whole[2])) < 1e-5
    farthest = re.search(r"farthest weight apart: (\S+)", done.stdout)
    assert farthest
    assert float(farthest[1]) < 1e-5


def test_units_that_do_not_divide_are_refused() -> None:
    done = run_example("--devices", "5")
    assert done.returncode == 2
    assert "--devices 5: expected a divisor of 64" in done.stderr

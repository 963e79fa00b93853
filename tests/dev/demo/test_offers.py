"""What the demonstration's trigger form offers can be had there."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_make_demo_makes_the_environment_of_the_tuning_that_the_form_offers(tmp_path: Path) -> None:
    """In a fresh checkout, with the other environments: the Param `tune` needs it."""
    command = ["make", "--dry-run", "demo", f"VENV={tmp_path / 'venv'}"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True, timeout=60)
    for name in ("airflow", "trainer", "localcloud", "tuning"):
        assert f'echo "setup: environment {name}"' in done.stdout

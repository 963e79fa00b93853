"""Which environment a test needs, said before an import fails. Uses nothing but the standard library and pytest."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# By the first folder that matches: the environment, and a package that only it has.
NEEDED = (
    ("tests/trainer", "trainer", "tensorflow"),
    ("tests", "airflow", "airflow"),
    ("packages", "airflow", "airflow"),
)


def require_environment(path: Path) -> None:
    """End with the command that works, where this Python cannot run the tests of a file or folder.

    Raises:
        pytest.UsageError: With that sentence.
    """
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    for folder, environment, package in NEEDED:
        if name == "tests/trainer" or name.startswith(f"{folder}/"):
            if importlib.util.find_spec(package) is None:
                raise pytest.UsageError(
                    f"{name}: this Python has no {package}; expected the environment {environment}. Run make test-one "
                    f"TEST={name}, or after make setup: .venv/{environment}/bin/python -m pytest {name}"
                )
            return

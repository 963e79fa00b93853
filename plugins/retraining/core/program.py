"""How a person runs a command of the program here: by make in a checkout, by its name where the package is installed.

Messages and pages name commands as the way out. `make check-models` helps nobody who has `pip install retraining`, and
`retraining check-models` nobody who has a checkout and its environments. Composer's bundle comes from a checkout.
"""

from __future__ import annotations

import functools
from importlib.metadata import PackageNotFoundError, distribution

DISTRIBUTION = "retraining"
TARGETS = frozenset({"check-models", "new-model", "preview"})
"""Commands that the Makefile has by their own names; others are `make retraining DO='…'`."""
SETTING = "RETRAINING_"
"""What the name of a variable of the environment begins with."""


@functools.cache
def is_installed() -> bool:
    """Return whether this software is an installed package."""
    try:
        distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return False
    return True


def command_line(name: str, model: str = "", **values: str) -> str:
    """Return what a person types.

    Args:
        name: Of the command.
        model: Which, where the command takes one.
        values: Of its options in capitals, `AS_OF`, and of settings, `RETRAINING_REGION`.
    """
    settings = [f"{key}={value}" for key, value in values.items() if key.startswith(SETTING)]
    options = {key: value for key, value in values.items() if not key.startswith(SETTING)}
    if is_installed():
        words = [f"--{key.lower().replace('_', '-')} {value}" for key, value in options.items()]
        return " ".join([*settings, "retraining", name, *filter(None, [model]), *words])
    if name in TARGETS:
        words = [f"{key}={value}" for key, value in {"MODEL": model, **options}.items() if value]
        return " ".join(["make", name, *words, *settings])
    words = [f"--{key.lower().replace('_', '-')} {value}" for key, value in options.items()]
    return " ".join(["make", "retraining", f"DO='{' '.join([name, *filter(None, [model]), *words])}'", *settings])

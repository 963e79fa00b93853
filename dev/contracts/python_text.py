"""Python that is rendered: its docstring, and its form by ruff."""

from __future__ import annotations

import subprocess
import sys


def heading(summary: str, note: str) -> str:
    """Return a module's docstring.

    Args:
        summary: Its first line.
        note: Who renders it from what.
    """
    return f'"""{summary}\n\n{note}\n"""\n'


def formatted(text: str, module: str) -> str:
    """Return a module's text as `make lint` wants it.

    Args:
        text: Of the module.
        module: Its name, or that of a package's.
    """
    for command in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", f"{module.replace('.', '/')}/x.py", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text

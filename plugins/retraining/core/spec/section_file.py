"""A YAML file that is one section: read, parsed, and refused with all findings and their lines."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from retraining.core.spec.messages import explain
from retraining.core.spec.section import Section
from retraining.core.spec.yaml_file import SpecText, read_spec_file

_Kind = TypeVar("_Kind", bound=Section)


def read_section(path: Path, kind: type[_Kind]) -> tuple[_Kind, SpecText]:
    """Return what a file says, and its text, which knows the lines.

    Raises:
        SpecError: Anything is wrong with it; the message has all findings, with lines.
    """
    text = read_spec_file(path)
    try:
        return kind.model_validate(text.values), text
    except ValidationError as error:
        raise explain(error, text, kind) from error


def find_section(path: Path, kind: type[_Kind]) -> _Kind | None:
    """Return what a file says; None: there is none.

    Raises:
        SpecError: Anything is wrong with it.
    """
    return read_section(path, kind)[0] if path.is_file() else None

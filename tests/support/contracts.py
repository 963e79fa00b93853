"""What tests of documents share: where examples are, and what of a document was not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMAS = _REPOSITORY / "include" / "contracts"
EXAMPLES = _REPOSITORY / "tests" / "contracts" / "examples"
STORED = _REPOSITORY / "tests" / "stored"
"""A document of each kind that an earlier release stored."""
VALID = sorted([*EXAMPLES.glob("*.json"), *STORED.glob("*.json")])


def kind_of(path: Path) -> str:
    """Return the kind of an example, by its file's name."""
    return path.stem.split("__")[0]


def missing(stored: Any, read: Any, path: str) -> Iterator[str]:
    """Yield what stands in a stored document and was not read, by its path; further keys with defaults may come."""
    if isinstance(stored, dict) and isinstance(read, dict):
        for key, value in stored.items():
            yield from missing(value, read.get(key), f"{path}.{key}")
    elif isinstance(stored, list) and isinstance(read, list) and len(stored) == len(read):
        for index, pair in enumerate(zip(stored, read, strict=True)):
            yield from missing(*pair, f"{path}[{index}]")
    elif stored != read:
        yield path

"""Nested values, each by its path, as they are held against each other."""

from __future__ import annotations

import json
from collections.abc import Iterator


def leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths like `training.epochs` with their values as JSON.

    A list of named objects goes by name, others whole.
    """
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        for item in value:
            yield from leaves({k: v for k, v in item.items() if k != "name"}, f"{path}.{item['name']}")
    else:
        yield path, json.dumps(value, ensure_ascii=False)

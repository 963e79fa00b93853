"""Patches uploads of type `*/*`, which are refused: the Python client's load_table_from_file and _json send it."""

from __future__ import annotations


def apply() -> None:
    """Accept uploads of any type."""
    from bqemulator.api.routes import upload

    original = upload._is_permitted_media_type
    upload._is_permitted_media_type = lambda kind: kind == "*/*" or original(kind)

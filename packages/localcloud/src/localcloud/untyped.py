"""The name of what has no types here."""

from __future__ import annotations

from typing import Any, TypeAlias

Untyped: TypeAlias = Any
"""What comes from bqemulator, DuckDB, Starlette and pyarrow, which publish no types (or types that change often)."""

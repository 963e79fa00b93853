"""GoogleSQL, and what is none, as they are read; without a server."""

from __future__ import annotations

"""The columns of a Parquet file, from its end: in its footer it says where everything is, and what it is called.

https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

FOOTER_BYTES = 1_000_000
"""Of a file's end that are read: 9,996 columns in 100 row groups take more, but few have so many."""

_MAGIC = b"PAR1"
_LENGTH = 4


def column_names(end: bytes) -> list[str] | None:
    """Return the names of a file's columns, in its order; None: it is no Parquet file, or its footer is longer."""
    import pyarrow
    import pyarrow.parquet

    size = int.from_bytes(end[-len(_MAGIC) - _LENGTH : -len(_MAGIC)], "little") + _LENGTH + len(_MAGIC)
    if not end.endswith(_MAGIC) or len(end) < size:
        return None
    try:
        # The footer alone is a file without data: enough to be asked for its schema.
        return list(pyarrow.parquet.read_schema(pyarrow.BufferReader(_MAGIC + end[-size:])).names)
    except (pyarrow.ArrowException, OSError):
        return None

"""Documents in memory: only as large as any document of this system can be."""

from __future__ import annotations

import io
from typing import Any

from trainer.errors import DataError

MAX_DOCUMENT_BYTES = 256_000_000
_WAY_OUT = "Look who wrote it, delete it, and clear the task that should have written it"


class BoundedBuffer(io.BytesIO):
    """Bytes that end with an error where there are too many, however they were compressed.

    Args:
        uri: Of what is read, for the message.
    """

    def __init__(self, uri: str) -> None:
        super().__init__()
        self._uri = uri

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        """Take more of them.

        Raises:
            DataError: There are too many.
        """
        require_small(self._uri, self.tell() + len(data))
        return super().write(data)


def require_small(uri: str, size: int) -> None:
    """Refuse a document that no memory should take.

    Raises:
        DataError: It is too large.
    """
    if size > MAX_DOCUMENT_BYTES:
        raise DataError(uri, f"more than {MAX_DOCUMENT_BYTES} bytes", "a document", _WAY_OUT)

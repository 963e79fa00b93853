"""Uploads of two parts, metadata and content (https://cloud.google.com/storage/docs/uploading-objects#multipart).

In: a body as it comes, whose lines end in CRLF, or in LF alone, as Google's command lines and gcsfs send them. Out:
the metadata's bytes, and the content piece by piece. What is cut off, or has a third part, is refused: half an object
is none.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from email.parser import BytesHeaderParser

from localcloud.storage.refusals import RefusedError

_METADATA_LIMIT = 1024 * 1024
_HEAD_END = re.compile(rb"\A\r?\n|\r?\n\r?\n")


class RelatedBody:
    """A body of type multipart/related.

    Args:
        content_type: The request's, with the boundary.
        pieces: The body.
    """

    def __init__(self, content_type: str, pieces: AsyncIterator[bytes]) -> None:
        match = re.search(r'boundary=(?:"([^"]+)"|([^;\s]+))', content_type, re.IGNORECASE)
        if match is None:
            raise RefusedError(400, "Malformed multipart body: its Content-Type has no boundary.")
        self._boundary = (match[1] or match[2]).encode("latin-1")
        self._pieces = pieces
        self._buffer = b""
        self._line_end = b"\r\n"
        self.content_type = ""
        self._is_base64 = False

    async def read_metadata(self) -> bytes:
        """Read to the begin of the content; give the metadata.

        Raises:
            RefusedError: It is no such body, or the metadata is too long.
        """
        await self._read_first_line()
        metadata = await self._take(self._separator + self._line_end)
        fields = await self._take_head()
        head = BytesHeaderParser().parsebytes(fields + b"\n\n")
        self.content_type = str(head.get("content-type", "")).strip()
        self._is_base64 = str(head.get("content-transfer-encoding", "")).strip().lower() == "base64"
        ended = _HEAD_END.search(metadata)
        if ended is None:
            raise RefusedError(400, "Malformed multipart body: its first part has no head.")
        return metadata[ended.end() :]

    async def content(self) -> AsyncIterator[bytes]:
        """Yield the content piece by piece.

        Raises:
            RefusedError: It is cut off, or there is a third part.
        """
        if self._is_base64:
            whole = b"".join([piece async for piece in self._content()])
            try:
                yield base64.b64decode(whole)
            except ValueError:
                raise RefusedError(400, "Malformed multipart body: its content is no base64.") from None
            return
        async for piece in self._content():
            yield piece

    @property
    def _separator(self) -> bytes:
        return self._line_end + b"--" + self._boundary

    async def _content(self) -> AsyncIterator[bytes]:
        held = len(self._separator)
        while (at := self._buffer.find(self._separator)) < 0:
            if len(self._buffer) > held:
                yield self._buffer[:-held]
                self._buffer = self._buffer[-held:]
            await self._more()
        yield self._buffer[:at]
        self._buffer = self._buffer[at + held :]
        while len(self._buffer) < 2:
            await self._more()
        if not self._buffer.startswith(b"--"):
            raise RefusedError(
                400, "Malformed multipart body: expected two parts, and nothing like the boundary in them."
            )
        async for _ in self._pieces:
            pass

    async def _read_first_line(self) -> None:
        while b"\n" not in self._buffer.lstrip(b"\r\n"):
            await self._more()
        line, _, rest = self._buffer.lstrip(b"\r\n").partition(b"\n")
        self._line_end = b"\r\n" if line.endswith(b"\r") else b"\n"
        bare = self._boundary.strip(b"'")  # apitools quotes it so
        self._boundary = bare if line.rstrip() == b"--" + bare else self._boundary
        if line.rstrip() != b"--" + self._boundary:
            raise RefusedError(400, "Malformed multipart body: it does not begin with its boundary.")
        self._buffer = rest

    async def _take(self, mark: bytes) -> bytes:
        while (at := self._buffer.find(mark)) < 0:
            self._refuse_long()
            await self._more()
        taken, self._buffer = self._buffer[:at], self._buffer[at + len(mark) :]
        return taken

    async def _take_head(self) -> bytes:
        while (ended := _HEAD_END.search(self._buffer)) is None:
            self._refuse_long()
            await self._more()
        taken = self._buffer[: ended.start()]
        # What follows is the content, also when that is empty: its separator begins with the line's end.
        self._buffer = self._buffer[ended.end() :]
        return taken

    def _refuse_long(self) -> None:
        if len(self._buffer) > _METADATA_LIMIT:
            raise RefusedError(400, f"The upload's metadata is longer than {_METADATA_LIMIT} bytes.")

    async def _more(self) -> None:
        try:
            self._buffer += await anext(self._pieces)
        except StopAsyncIteration:
            raise RefusedError(400, "Malformed multipart body: it ends before its last boundary.") from None

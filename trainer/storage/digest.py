"""The SHA-256 of a file, in bounded memory. Python 3.10, which pre-built containers have, does not bring it along."""

from __future__ import annotations

import hashlib
from typing import IO

_PIECE_BYTES = 1 << 18


def sha256_of(file: IO[bytes]) -> str:
    """Give the SHA-256 of the rest of a file, in hex."""
    digest = hashlib.sha256()
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()

"""Names of buckets and objects, and the paths of the files that they are kept in.

An object is the file of its name below its bucket's directory, so that people can look at it. A name that is no safe
path (`a//b`, `/a`, `d/`, `../x`, long parts), or whose place another object's folder has, is kept below
`.encoded-names/`, in hexadecimal.

In: names. Out: paths below a bucket's directory, and the way back.
"""

from __future__ import annotations

import re

from localcloud.storage.refusals import RefusedError

ENCODED = ".encoded-names"
_CHUNK = 200  # hexadecimal digits in a part of a path; a directory's part ends in "_", so it is never a file's
_PART_BYTES = 220  # what a file system takes, with room to spare
_MOST_BYTES = 1024
# https://cloud.google.com/storage/docs/buckets#naming
_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9_-]|\.(?!\.)){1,220}[a-z0-9]")
_ENCODED_PATH = re.compile(rf"{re.escape(ENCODED)}/((?:[0-9a-f]{{{_CHUNK}}}_/)*[0-9a-f]+)")


def check_bucket_name(name: str) -> str:
    """Return the name of a bucket.

    Raises:
        RefusedError: It cannot be one.
    """
    if _BUCKET.fullmatch(name):
        return name
    expected = "Expected 3 to 222 lower-case letters, digits, '-', '_' and single dots."
    raise RefusedError(400, f"Invalid bucket name: {name!r}. {expected}", xml_code="InvalidBucketName")


def check_object_name(name: str) -> str:
    """Return the name of an object (https://cloud.google.com/storage/docs/objects#naming).

    Raises:
        RefusedError: It cannot be one.
    """
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        length = 0
    if not 1 <= length <= _MOST_BYTES or name in (".", "..") or re.search(r"[\r\n]", name):
        expected = "Expected 1 to 1024 bytes of UTF-8 without line ends, and neither '.' nor '..'."
        raise RefusedError(400, f"Invalid object name: {name[:100]!r}. {expected}", xml_code="InvalidObjectName")
    return name


def is_safe(name: str) -> bool:
    """Whether a name can be a file's path below its bucket."""
    parts = name.split("/")
    return (
        all(part not in ("", ".", "..") and len(part.encode()) <= _PART_BYTES for part in parts)
        and parts[0] != ENCODED
        and "\0" not in name
    )


def encode(name: str) -> str:
    """Return the path that any name can be kept at."""
    digits = name.encode().hex()
    chunks = [digits[begin : begin + _CHUNK] for begin in range(0, len(digits), _CHUNK)]
    return "/".join([ENCODED, *(f"{chunk}_" for chunk in chunks[:-1]), *chunks[-1:]])


def decode(path: str) -> str | None:
    """Return the name that is kept at a path; None for a path that stands for none."""
    if path.split("/", 1)[0] != ENCODED:
        return path
    match = _ENCODED_PATH.fullmatch(path)
    try:
        return bytes.fromhex(match[1].replace("_/", "")).decode() if match else None
    except ValueError:
        return None

"""Lists of objects: https://cloud.google.com/storage/docs/json_api/v1/objects/list.

In: the names in a bucket, in the order of their bytes, and what a list asks for. Out: a page of names and common
prefixes, and the token of the next one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from localcloud.storage.calls import Listing
from localcloud.storage.globs import compile_glob
from localcloud.storage.refusals import RefusedError

_Key = tuple[bytes, bool, int]  # where an entry is in a list: its name, whether it is an object, its generation


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: names with files and generations, common prefixes, and the next page's token ("" for none)."""

    items: list[tuple[str, Path, int]]
    prefixes: list[str]
    token: str


def take_page(names: Iterable[tuple[str, Path, int]], asked: Listing) -> Page:
    """Return the page that a list asks for.

    Args:
        names: All that begin with the prefix, in the order of their bytes, with their files; and with their
            generations where a list asks for all of an object, else 0.

    Raises:
        RefusedError: Glob or token cannot be read.
    """
    glob = _read_glob(asked.glob)
    after = _read_token(asked.token)
    entries: dict[_Key, tuple[str, Path | None, int]] = {}
    for name, path, generation in names:
        if not _is_within(name, asked):
            continue
        cut = name.find(asked.delimiter, len(asked.prefix)) if asked.delimiter else -1
        common = name[: cut + len(asked.delimiter)] if cut >= 0 else None
        if common is not None:
            entries[common.encode(), False, 0] = (common, None, 0)
        if common is None or (asked.keeps_placeholders and common == name):
            entries[name.encode(), True, generation] = (name, path, generation)
    shown = [key for key in entries if glob is None or glob.fullmatch(entries[key][0])]
    keys = sorted(key for key in shown if after is None or key > after)
    taken = [entries[key] for key in keys[: asked.most]]
    return Page(
        items=[(name, path, generation) for name, path, generation in taken if path is not None],
        prefixes=[name for name, path, _ in taken if path is None],
        token=_token(keys[asked.most - 1]) if len(keys) > asked.most else "",
    )


def take_names(names: Iterable[str], asked: Listing) -> tuple[list[str], str]:
    """Return the page of names that a list asks for, and the token of the next one.

    Raises:
        RefusedError: The token cannot be read.
    """
    after = _read_token(asked.token)
    keys: list[_Key] = sorted((name.encode(), True, 0) for name in names)
    keys = [key for key in keys if after is None or key > after]
    token = _token(keys[asked.most - 1]) if len(keys) > asked.most else ""
    return [name.decode() for name, _, _ in keys[: asked.most]], token


def _is_within(name: str, asked: Listing) -> bool:
    encoded = name.encode()
    return encoded >= asked.start.encode() and (not asked.end or encoded < asked.end.encode())


def _read_glob(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    pattern = compile_glob(text)
    if pattern is None:
        raise RefusedError(400, f"Invalid matchGlob {text!r}.")
    return pattern


def _token(key: _Key) -> str:
    name, is_object, generation = key
    head = b"v" + generation.to_bytes(8, "big") if generation else b"o" if is_object else b"p"
    return base64.urlsafe_b64encode(head + name).decode()


def _read_token(token: str) -> _Key | None:
    if not token:
        return None
    try:
        text = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
    except ValueError:
        text = b""
    if text[:1] == b"v" and len(text) >= 9:
        return text[9:], True, int.from_bytes(text[1:9], "big")
    if text[:1] not in (b"o", b"p"):
        raise RefusedError(400, "Invalid pageToken: expected nextPageToken of an earlier page.")
    return text[1:], text[:1] == b"o", 0

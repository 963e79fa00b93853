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


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: names with their files, common prefixes, and the next page's token ("" for none)."""

    items: list[tuple[str, Path]]
    prefixes: list[str]
    token: str


def take_page(names: Iterable[tuple[str, Path]], asked: Listing) -> Page:
    """Return the page that a list asks for.

    Args:
        names: All that begin with the prefix, in the order of their bytes.

    Raises:
        RefusedError: Glob or token cannot be read.
    """
    glob = _read_glob(asked.glob)
    after = _read_token(asked.token)
    entries: dict[tuple[bytes, bool], tuple[str, Path | None]] = {}
    for name, path in names:
        if not _is_within(name, asked):
            continue
        cut = name.find(asked.delimiter, len(asked.prefix)) if asked.delimiter else -1
        common = name[: cut + len(asked.delimiter)] if cut >= 0 else None
        if common is not None:
            entries[common.encode(), False] = (common, None)
        if common is None or (asked.keeps_placeholders and common == name):
            entries[name.encode(), True] = (name, path)
    shown = [key for key in entries if glob is None or glob.fullmatch(entries[key][0])]
    keys = sorted(key for key in shown if after is None or key > after)
    taken = [entries[key] for key in keys[: asked.most]]
    return Page(
        items=[(name, path) for name, path in taken if path is not None],
        prefixes=[name for name, path in taken if path is None],
        token=_token(keys[asked.most - 1]) if len(keys) > asked.most else "",
    )


def take_names(names: Iterable[str], asked: Listing) -> tuple[list[str], str]:
    """Return the page of names that a list asks for, and the token of the next one.

    Raises:
        RefusedError: The token cannot be read.
    """
    after = _read_token(asked.token)
    keys = sorted((name.encode(), True) for name in names)
    keys = [key for key in keys if after is None or key > after]
    token = _token(keys[asked.most - 1]) if len(keys) > asked.most else ""
    return [name.decode() for name, _ in keys[: asked.most]], token


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


def _token(key: tuple[bytes, bool]) -> str:
    return base64.urlsafe_b64encode((b"o" if key[1] else b"p") + key[0]).decode()


def _read_token(token: str) -> tuple[bytes, bool] | None:
    if not token:
        return None
    try:
        text = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
    except ValueError:
        text = b""
    if text[:1] not in (b"o", b"p"):
        raise RefusedError(400, "Invalid pageToken: expected nextPageToken of an earlier page.")
    return text[1:], text[:1] == b"o"

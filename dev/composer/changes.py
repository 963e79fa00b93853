"""What an upload changes in an environment's bucket: worked out from lists, before anything is written.

The folders `dags` and `plugins` of that bucket are shared with other teams. So a record beside them says which files
came from here, and what they were: only those are replaced and removed, and only as they were left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

Digests = Mapping[str, str]
"""SHA-256 of the content, by the object's name."""
Left = Mapping[str, frozenset[str]]
"""The digests that an upload may have left, by the object's name: two, if it was killed; none, without proof."""


class Kind(StrEnum):
    """What happens to a file."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One file's change; `foreign` says why nobody but a person may ask for it."""

    kind: Kind
    name: str
    foreign: str = ""

    def __str__(self) -> str:
        """Return a line of the plan."""
        return f"{self.kind:<8}{self.name}" + (f"   ({self.foreign})" if self.foreign else "")


def plan_changes(bundle: Digests, found: Digests, left: Left) -> list[Change]:
    """Return the changes in their order: plugins before the DAGs that import them, what is gone last and the other way.

    Args:
        bundle: What shall be there.
        found: What is there, in both folders.
        left: What the uploads before left.
    """
    written = [change for name in bundle if (change := _written(name, bundle, found, left))]
    removed = [_removed(name, found, left) for name in left if name in found and name not in bundle]
    return [
        *sorted(written, key=lambda change: (not _is_plugin(change.name), change.name)),
        *sorted(removed, key=lambda change: (_is_plugin(change.name), change.name)),
    ]


def keep_both(bundle: Digests, left: Left, found: Digests) -> dict[str, frozenset[str]]:
    """Return what an upload may leave if it is killed: of each file the new content, or what was there of ours."""
    names = {*bundle, *(name for name in left if name in found)}
    return {name: frozenset({*left.get(name, ()), *_one(bundle, name)}) for name in sorted(names)}


def differences(bundle: Digests, found: Digests, left: Left) -> Iterator[str]:
    """Yield the names of files of ours that are not as the bundle has them."""
    for name in sorted({*bundle, *left}):
        if bundle.get(name) != found.get(name):
            yield name


def _written(name: str, bundle: Digests, found: Digests, left: Left) -> Change | None:
    there = found.get(name)
    if there is None:
        return Change(kind=Kind.ADD, name=name)
    if there == bundle[name]:
        return None
    if name not in left:
        return Change(kind=Kind.REPLACE, name=name, foreign="no upload from here put it there")
    return Change(kind=Kind.REPLACE, name=name, foreign=_changed(there, left[name]))


def _removed(name: str, found: Digests, left: Left) -> Change:
    return Change(kind=Kind.REMOVE, name=name, foreign=_changed(found[name], left[name]))


def _changed(there: str, left: frozenset[str]) -> str:
    if not left:
        return "an earlier release put it there and left no digest of it"
    return "" if there in left else "somebody changed it there"


def _one(bundle: Digests, name: str) -> tuple[str, ...]:
    return (bundle[name],) if name in bundle else ()


def _is_plugin(name: str) -> bool:
    return name.startswith("plugins/")

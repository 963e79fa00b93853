"""Version aliases: which version of a model each name points to. Pure functions.

The rules, from the documentation of MergeVersionAliases and of the model registry
(https://cloud.google.com/vertex-ai/docs/model-registry/model-alias): an alias points to one version of a model; given
to another version it moves there; `-alias` takes it away; an alias both given and taken in one request cancels out;
exactly one version carries `default`, so it can be moved but not taken away; deleting its version moves it to the
newest other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from localcloud.vertex.resources.validation import Finding
from localcloud.vertex.wire.errors import found_errors

DEFAULT = "default"
_PATTERN = re.compile(r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")
Aliases = Mapping[str, Sequence[str]]  # version id -> its aliases


def check_alias(alias: str, field: str) -> Iterator[Finding]:
    """Letters, digits and dashes, at most 128, not a number: it must not look like a version id."""
    if _PATTERN.fullmatch(alias) is None:
        yield field, f"Invalid version alias {alias!r}. Expected the form {_PATTERN.pattern}."


def merge(current: Aliases, version_id: str, changes: Sequence[str]) -> dict[str, list[str]]:
    """Return aliases of every version after MergeVersionAliases.

    Args:
        current: Aliases of every version before.
        changes: `alias` to give to it, `-alias` to take from it.

    Raises:
        InvalidArgument: A malformed alias, or `-default`.
    """
    added = dict.fromkeys(change for change in changes if not change.startswith("-"))  # in the order they were given
    removed = {change[1:] for change in changes if change.startswith("-")}
    both = added.keys() & removed
    findings = [
        finding for alias in sorted(added.keys() | removed) for finding in check_alias(alias, "version_aliases")
    ]
    if DEFAULT in removed - both:
        findings.append(
            (
                "version_aliases",
                (
                    "The alias 'default' cannot be removed: a model has exactly one default version. Give it to"
                    " another version."
                ),
            )
        )
    if findings:
        raise found_errors(findings)
    given, taken = [alias for alias in added if alias not in both], removed - both
    result = {}
    for version, aliases in current.items():
        kept = [alias for alias in aliases if alias not in given]
        if version == version_id:
            kept = [alias for alias in kept if alias not in taken] + given
        result[version] = kept
    return result


def without_version(current: Aliases, version_id: str) -> dict[str, list[str]]:
    """Return aliases of the other versions after one is deleted; `default` goes to the newest of them."""
    result = {version: list(aliases) for version, aliases in current.items() if version != version_id}
    if result and DEFAULT in current[version_id]:
        newest = max(result, key=int)
        result[newest].append(DEFAULT)
    return result


def find_version_id(current: Aliases, version: str) -> str | None:
    """Return version id that an id or an alias stands for, or None."""
    if version in current:
        return version
    return next((version_id for version_id, aliases in current.items() if version in aliases), None)

"""Which of each service's methods the local cloud answers, as the page that shows it.

In: services with the tables of their fields, and the methods that Google has. Out: `docs/calls.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

HEAD = """# Which calls are answered

Rendered by `packages/localcloud/tests/test_fields.py` with `LOCALCLOUD_RENDER=1` from the tables of fields, which the
local cloud itself reads. What is not listed is refused by its name: 501 or UNIMPLEMENTED. The page of a service says
what becomes of each field. Beside these there are tokens, Service Usage, Artifact Registry and `testIamPermissions`
([roles](localcloud.md#roles)), the calls of an upload, and the local cloud's own `/faults`, `/iam` and `/clock`
([localcloud.md](localcloud.md)). Of BigQuery, routines, models and row access policies come from the emulator behind
it, without a table.
"""


def render_calls(services: Iterable[tuple[str, str, set[str], set[str]]]) -> str:
    """Return the page.

    Args:
        services: Of each its title, the page of its fields, the methods that are answered, and all that are known.
    """
    parts = [HEAD]
    for title, page, answered, known in services:
        count = f"{len(answered)} of {len(known)}" if known > answered else f"{len(answered)}"
        parts.append(f"## {title}\n\n{count} methods ([fields]({page})).\n\n| of | methods |\n|---|---|")
        for of, names in _grouped(answered).items():
            parts.append(f"| `{of}` | {', '.join(f'`{name}`' for name in names)} |")
        parts.append("")
    return "\n".join(parts)


def _grouped(methods: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the last words of methods by what stands before them."""
    split = sorted(method.rpartition(".")[::2] for method in methods)
    return {of: [name for _, name in each] for of, each in groupby(split, key=lambda pair: pair[0])}

"""A refusal, held to its class and to what decides in its four parts: names, numbers, keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

Held = str | tuple[str, ...]


@contextmanager
def refuses(
    kind: type[Exception] | tuple[type[Exception], ...],
    *,
    where: Held = (),
    found: Held = (),
    expected: Held = (),
    way_out: Held = (),
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect an error of this class with these texts in its parts.

    What a task ends with for good has the parts of the error that is in it.
    """
    with pytest.raises(kind) as refused:
        yield refused
    error = getattr(refused.value, "error", refused.value)
    for part, held in {"where": where, "found": found, "expected": expected, "way_out": way_out}.items():
        for text in (held,) if isinstance(held, str) else held:
            assert text in getattr(error, part), f"{part} of: {error}"

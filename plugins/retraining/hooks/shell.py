"""What a command in a shell prints: its lines, or one message with the way out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from retraining.core.errors import RetrainingError
from retraining.core.printable import printable
from retraining.hooks.session import explain


def print_answer(answer: Callable[[], tuple[Iterable[str], bool]]) -> int:
    """Print what a command answers.

    Args:
        answer: Gives the lines, and whether all is well.

    Returns:
        The exit status: 0, or 1 where all is not well or a message says why there is no answer.
    """
    try:
        lines, is_good = answer()
    except Exception as error:  # of any class: `explain` knows those of Google's clients, and the rest is raised again
        known = error if isinstance(error, RetrainingError) else explain(error)
        if known is None:
            raise
        print(printable(str(known), keep_lines=True), file=sys.stderr)
        return 1
    print("\n".join(map(printable, lines)))
    return 0 if is_good else 1

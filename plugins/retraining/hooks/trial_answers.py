"""What a trial asks that services should refuse, and deletions of what may be gone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retraining.hooks import limits
from retraining.hooks.session import call, call_once, is_transient


def refusal(ask: Callable[[], object]) -> str | None:
    """Return the class of a service's refusal; what may pass is raised."""
    from google.api_core.exceptions import GoogleAPICallError

    try:
        call_once(ask)
    except GoogleAPICallError as error:
        if is_transient(error):
            raise
        return type(error).__name__
    return None


def delete(begin: Callable[[], Any]) -> None:
    """Delete something, and wait until it is done; what is gone stays gone.

    Args:
        begin: Ask for it; return the operation.
    """
    from google.api_core.exceptions import NotFound

    try:
        operation = call(begin)
        wait = functools.partial(operation.result, timeout=limits.ENDPOINT_S)
        call_once(wait, timeout_s=limits.ENDPOINT_S)
    except NotFound:
        return

"""Patches job ids: one that was used before runs the job again instead of being refused.

A task that is tried again finds its job by that answer instead of paying twice.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable

from localcloud.untyped import Untyped

_Call = Callable[..., Awaitable[Untyped]]


def apply(routes: Untyped) -> None:
    """Answer 409 to a job id that was used before."""
    from bqemulator.domain.errors import AlreadyExistsError, ErrorDetail

    running: set[tuple[str, str]] = set()

    def once(original: _Call) -> _Call:
        signature = inspect.signature(original)

        @functools.wraps(original)
        async def call(*args: Untyped, **kwargs: Untyped) -> Untyped:
            bound = signature.bind(*args, **kwargs).arguments
            project, job_id = key = bound["project_id"], bound["job_id"]
            if bound["config"].get("dryRun"):
                return await original(*args, **kwargs)
            if key in running or bound["ctx"].catalog.get_job(project, job_id) is not None:
                message = f"Already Exists: Job {project}:US.{job_id}"
                raise AlreadyExistsError(message, details=[ErrorDetail(reason="duplicate", message=message)])
            running.add(key)
            try:
                return await original(*args, **kwargs)
            finally:
                running.discard(key)

        return call

    for name in (
        "_handle_query_job",
        "_handle_load_job_with_async_envelope",
        "execute_extract_job",
        "execute_copy_job",
    ):
        setattr(routes, name, once(getattr(routes, name)))

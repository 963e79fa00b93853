"""Patches `configuration` of a job that is read again: what was asked of all kinds of jobs is not in it.

In: a new job with labels, a reservation, an end. Out: the same in `jobs.get` and `jobs.list`, as in the answer to
`jobs.insert`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable

from localcloud.untyped import Untyped

KEPT = ("labels", "reservation", "jobTimeoutMs", "maxSlots")
"""Of `configuration`: what every kind of job may have, and nothing here depends on."""
_Call = Callable[..., Awaitable[Untyped]]


def apply(routes: Untyped) -> None:
    """Keep them with the job; after all other patches of jobs, which make its document."""

    def keeping(original: _Call) -> _Call:
        signature = inspect.signature(original)

        @functools.wraps(original)
        async def call(*args: Untyped, **kwargs: Untyped) -> Untyped:
            asked = signature.bind(*args, **kwargs).arguments["config"]
            kept = {name: asked[name] for name in KEPT if name in asked}
            job = await original(*args, **kwargs)
            if isinstance(job, dict):  # a dry run, which is not read again
                return job
            return job.model_copy(update={"configuration": {**(job.configuration or {}), **kept}})

        return call

    for name in (
        "_handle_query_job",
        "_handle_load_job_with_async_envelope",
        "execute_extract_job",
        "execute_copy_job",
    ):
        setattr(routes, name, keeping(getattr(routes, name)))

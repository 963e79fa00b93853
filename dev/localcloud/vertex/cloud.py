"""What every handler works with, put together once by the server."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localcloud.vertex.endpoints.request_log import RequestLog
    from localcloud.vertex.endpoints.serving import Serving
    from localcloud.vertex.jobs.runner import Runner
    from localcloud.vertex.processes.images import Images
    from localcloud.vertex.resources.buckets import Buckets
    from localcloud.vertex.resources.faults import Faults
    from localcloud.vertex.resources.operations import Operations
    from localcloud.vertex.resources.store import Store
    from localcloud.vertex.tuning.runner import Tuner


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cloud:
    """The rooms behind the counter."""

    store: Store
    faults: Faults
    operations: Operations
    buckets: Buckets
    images: Images
    runner: Runner
    tuner: Tuner
    serving: Serving
    request_log: RequestLog

"""What every handler works with, put together once by the server."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localcloud.vertex.buckets import Buckets
    from localcloud.vertex.faults import Faults
    from localcloud.vertex.images import Images
    from localcloud.vertex.operations import Operations
    from localcloud.vertex.request_log import RequestLog
    from localcloud.vertex.runner import Runner
    from localcloud.vertex.serving import Serving
    from localcloud.vertex.store import Store
    from localcloud.vertex.tuning.tuner import Tuner


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

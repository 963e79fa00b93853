"""What every running process needs, put together once by the server."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from localcloud.vertex.processes.guardian import Guardian
from localcloud.vertex.processes.images import Images
from localcloud.vertex.processes.logs import LogShipper
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.faults import Faults
from localcloud.vertex.resources.store import Store
from localcloud.vertex.resources.tables import Tables


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machinery:
    """What running jobs and deployed models share.

    Args:
        environment: Gives the variables that lead Google's clients to the local cloud, as the named service account
            ("": the one of custom code).
        project_number: What containers are told.
        folder: Jobs keep their files in folders below it.
        grace_s: Between SIGTERM and SIGKILL.
    """

    store: Store
    faults: Faults
    buckets: Buckets
    tables: Tables
    images: Images
    guardian: Guardian
    shipper: LogShipper
    environment: Callable[[str], Mapping[str, str]]
    project_number: str
    folder: Path
    grace_s: float

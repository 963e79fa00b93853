"""What a monitor run's questions to BigQuery may read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from retraining.core.data.sql import Query
from retraining.hooks.ports import WarehousePort
from retraining.hooks.warehouse import Answer

LOGGER = logging.getLogger(__name__)
GIGABYTE = 10**9
LEAST_BYTES = 10**7
"""BigQuery bills no less, and refuses a limit below it."""


@dataclass(frozen=True)
class ByteLimit:
    """So many gigabytes, by the spec's field of this name."""

    gigabytes: float
    field: str = "monitoring.max_gigabytes"

    def reason_to_refuse(self, warehouse: WarehousePort, queries: Mapping[str, Query]) -> str | None:
        """Return why queries, by what they are, may not run: together they would read too much; None: they may."""
        bytes_read = sum(warehouse.dry_run(query, where).bytes_processed for where, query in queries.items())
        found = (
            f"BigQuery would read {bytes_read / GIGABYTE:.3f} GB, at most {self.gigabytes:g} may be read ({self.field})"
        )
        LOGGER.info("%s: %s", ", ".join(queries), found)
        return found if bytes_read > self.gigabytes * GIGABYTE else None

    def run(self, warehouse: WarehousePort, query: Query, job_id: str, where: str) -> Answer:
        """Run one of them, or join the job of this id; BigQuery itself refuses more."""
        max_bytes = max(round(self.gigabytes * GIGABYTE), LEAST_BYTES)
        return warehouse.run_query(query, job_id, where, max_bytes)

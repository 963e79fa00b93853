"""The training pipelines that run now.

Comes in: names of pending pipelines. Goes out: a `PipelineRun` for each, until it ends. Like their custom jobs they do
not outlive this server.
"""

from __future__ import annotations

import threading

from google.cloud.aiplatform_v1.types import PipelineState

from localcloud.vertex.pipelines.run import ACTIVE_STATES, PipelineRun, Services, finish_pipeline
from localcloud.vertex.resources.store import TRAINING_PIPELINES
from localcloud.vertex.wire.errors import ApiError

_JOIN_S = 5.0


class PipelineRunner:
    """The pipelines that run now.

    Args:
        services: What they share.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._runs: dict[str, PipelineRun] = {}

    def start(self, name: str) -> None:
        """Run a pending pipeline in the background."""
        run = PipelineRun(self._services, name, self._forget)
        with self._lock:
            self._runs[name] = run
        run.start()

    def cancel(self, name: str) -> None:
        """Ask a pipeline to end; its state follows."""
        with self._lock:
            run = self._runs.get(name)
        if run is not None:
            run.cancel()

    def resume(self) -> None:
        """After a restart: mark what was running."""
        lost = ApiError(
            "Internal error: the local cloud was stopped while the pipeline ran. Create it again.", code="INTERNAL"
        )
        store = self._services.store
        for pipeline in store.list_in_state(TRAINING_PIPELINES, *ACTIVE_STATES):
            cancelling = pipeline.state == PipelineState.PIPELINE_STATE_CANCELLING
            finish_pipeline(store, pipeline.name, ApiError("CANCELED", code="CANCELLED") if cancelling else lost)

    def close(self) -> None:
        """End all pipelines and wait for them; the next start marks them."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.abandon()
        for run in runs:
            run.join(_JOIN_S)

    def _forget(self, name: str) -> None:
        with self._lock:
            self._runs.pop(name, None)

"""A task that wants a training, in the cloud of memory."""

from __future__ import annotations

import json
from typing import Any

from retraining.core.documents import Report, TrainRequest
from retraining.core.jobs.requests import JobRequest
from retraining.operators.jobs.job import VertexJobOperator
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.job_results import result_of

ASKED = json.loads((EXAMPLES / "train_request__defaults.json").read_bytes())
REQUEST = TrainRequest.parse(json.dumps({**ASKED, "digest_required": True}))


def result_for(request: TrainRequest) -> bytes:
    """What the job of a request leaves."""
    return Report.parse(json.dumps(result_of(request.to_bytes())[1])).to_bytes()


RESULT = result_for(REQUEST)
RESULT_URI = ASKED["report_uri"]
"""Where the job leaves it."""

STORED_URI = "gs://bucket/flight_delays/runs/x/report.json"
"""Where the task takes it over to."""
SPOT_JOB = {
    "display_name": "d",
    "job_spec": {"scheduling": {"strategy": "SPOT", "timeout": "60s"}},
    "labels": {"a": "b"},
}


POOLED_JOB = {
    **SPOT_JOB,
    "job_spec": {
        "scheduling": {"strategy": "SPOT", "timeout": "60s"},
        "worker_pool_specs": [
            {
                "machine_spec": {"machine_type": "n1-standard-4"},
                "disk_spec": {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 100},
                "replica_count": 1,
            }
        ],
    },
}
REQUEST_URI = "gs://bucket/flight_delays/runs/x/train_request.json"


def make_task(
    cloud: FakeCloud, request: TrainRequest = REQUEST, machine_pool: str | None = None, **kwargs: Any
) -> VertexJobOperator:
    """A task that wants a training."""
    job_request = JobRequest(
        request=request,
        request_uri=REQUEST_URI,
        result_uri=RESULT_URI,
        adopted_uri=STORED_URI,
        result_kind="report",
        submission_uri="gs://bucket/flight_delays/runs/x/submit/train",
        machine_pool=machine_pool,
        custom_job=POOLED_JOB if machine_pool else SPOT_JOB,
    )
    return VertexJobOperator(
        task_id="train",
        job_request=lambda *_: job_request,
        run_uri="gs://bucket/flight_delays/runs/20131120t030000z-0123456789ab",
        retries=2,
        cloud=cloud.connect,
        **kwargs,
    )


def finish(cloud: FakeCloud, request: TrainRequest = REQUEST, *, seconds: float | None = None) -> None:
    """The newest job succeeds and leaves its result, or that of another request."""
    cloud.artifacts.objects[RESULT_URI] = result_for(request)
    cloud.jobs.end(cloud.jobs.newest, seconds=seconds)

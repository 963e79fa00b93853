"""A test session to be killed: its test runs a custom job on a local cloud, says so, and waits for ever.

Run by name alone (`pytest tests/support/held_session.py`). Comes in: the file that HELD_SESSION_TELLS names. Goes out:
in it the session's marks and the local cloud's state directory, once both replicas have started a child.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from google.cloud import aiplatform_v1 as v1

from tests.support.local_cloud import LocalCloud
from tests.support.session_guardian import MARK

# Deaf to SIGTERM, with a child in a session of its own that is deaf too.
_REPLICA = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('held-replica'); signal.pause()"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
print("held-replica", flush=True)
signal.pause()
"""


def test_that_never_ends(local_cloud: LocalCloud) -> None:
    """Until it is killed."""
    host = f"{local_cloud.region}-aiplatform.googleapis.com:443"
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": "python:3.11", "command": ["python", "-c", _REPLICA]},
    }
    v1.JobServiceClient(client_options={"api_endpoint": host}).create_custom_job(
        parent=f"projects/{local_cloud.project}/locations/{local_cloud.region}",
        custom_job=v1.CustomJob(display_name="held", job_spec={"worker_pool_specs": [pool, pool]}),
    )
    told_path = Path(os.environ["HELD_SESSION_TELLS"])
    told = {"marks": os.environ[MARK], "state_path": str(local_cloud.state_path)}
    told_path.with_suffix(".new").write_text(json.dumps(told))
    told_path.with_suffix(".new").rename(told_path)
    signal.pause()

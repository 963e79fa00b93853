"""A version that is asked for many rows at once, and a deployment that is called off.

It has a model of its own made first, by the job of the other rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from retraining.commands.trial.deployments import (
    DEPLOYED_WITHIN,
    MACHINE,
    REPLICAS,
    deployed_id,
    find_endpoint,
    version_name,
)
from retraining.commands.trial.jobs import TIMEOUT, model_job, wait_for_job
from retraining.commands.trial.probes import LABEL, MODEL, Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.commands.trial.registry import finish_upload, run_key, start_upload
from retraining.commands.trial.statements import TEMPLATE
from retraining.core.data.sql import Query, render
from retraining.core.jobs.job import SUCCEEDED, Job
from retraining.core.untyped import ProtoJson
from retraining.hooks.endpoints import EndpointOptions

ROWS = 10
ANSWERED_WITHIN = timedelta(minutes=45)
"""Of a batch prediction, its machine's start among it: what goes on after that is cancelled."""
FILES, TABLE = "files", "table"


@dataclass(kw_only=True)
class BatchProbes:
    """Rows JOB-13 and END-13.

    Attributes:
        trial: The trial.
        jobs: Batch predictions, by where their rows are.
    """

    trial: Trial
    jobs: dict[str, Job] = field(default_factory=dict)

    def probes(self) -> Sequence[Probe]:
        """Return them; the first makes the model."""
        return (
            Probe(
                id="JOB-13",
                asked=f"{ROWS} rows of files and of a table are predicted",
                supposed={
                    "both": SUCCEEDED,
                    "answers in the folder that is named": ROWS,
                    "rows in the table that is named": ROWS,
                },
                ask=self.predict,
            ),
            Probe(
                id="END-13",
                asked="a deployment is called off",
                supposed={"it ended": True, "deployed only where it was refused": True},
                ask=self.call_off,
            ),
        )

    def predict(self) -> Mapping[str, Fact]:
        """Have the model made, and predict by it from files and from a table at once."""
        made = self.trial.cloud.jobs.create(model_job(self.trial))
        if wait_for_job(self.trial, made.name, TIMEOUT).state != SUCCEEDED:
            raise LookupError("the job that makes the model failed")
        finish_upload(self.trial, start_upload(self.trial, 1))
        for name, request in ((FILES, self._of_files()), (TABLE, self._of_table())):
            self.jobs[name] = self.trial.cloud.jobs.create(request)
        ended = self._wait_for_both()
        return {
            "both": ", ".join(sorted({job.state for job in ended.values()})),
            "answers in the folder that is named": self._count_answers(ended[FILES].output_folder),
            "rows in the table that is named": self._count_rows("answers", ended[TABLE].output_table),
        }

    def _wait_for_both(self) -> Mapping[str, Job]:
        """Return the predictions once both have ended; one that takes longer is cancelled, and not paid meanwhile."""
        jobs = self.trial.cloud.jobs

        def look() -> dict[str, Job] | None:
            now = {name: jobs.get(job.name) for name, job in self.jobs.items()}
            return None if any(job.active for job in now.values()) else now

        try:
            return self.trial.wait("both predictions", look, ANSWERED_WITHIN)
        finally:
            for job in self.jobs.values():
                jobs.cancel(job.name)  # one that has ended stays as it is

    def call_off(self) -> Mapping[str, Fact]:
        """Begin a deployment, ask at once that it ends, and wait for its end, whichever."""
        endpoints = self.trial.cloud.endpoints
        endpoint = endpoints.ensure(MODEL, None, {}, EndpointOptions(dedicated=True))
        begun = endpoints.start_deploy(endpoint, self._version(), run_key(self.trial, 1), REPLICAS)
        if begun is None:
            raise LookupError("the model is deployed already")
        refused = self.trial.calls.endpoints.cancel_refused(begun.name)

        def ended() -> bool:
            now = endpoints.operation(begun.name)
            return now is None or now.done

        is_over = self.trial.comes("its end", ended, DEPLOYED_WITHIN)
        there = deployed_id(self.trial, 1) in find_endpoint(self.trial).deployed
        self.trial.measured["refused"] = float(refused is not None)
        return {
            "it ended": is_over,
            "deployed only where it was refused": refused is not None or not there,
        }

    def _of_files(self) -> ProtoJson:
        uri = self.trial.uri("instances.jsonl")
        lines = "".join(json.dumps({"x": float(number)}) + "\n" for number in range(ROWS))
        self.trial.cloud.artifacts.overwrite(uri, lines.encode(), "application/jsonl")
        return self._request(
            FILES,
            {"instances_format": "jsonl", "gcs_source": {"uris": [uri]}},
            {"predictions_format": "jsonl", "gcs_destination": {"output_uri_prefix": self.trial.uri("predicted")}},
        )

    def _of_table(self) -> ProtoJson:
        settings, table = self.trial.cloud.settings, self.trial.table("instances")
        query = Query(sql=render(TEMPLATE, statement="instances", table=table, rows=ROWS))
        self.trial.cloud.warehouse.run_query(query, self.trial.job_id("instances"), "trial, instances")
        return self._request(
            TABLE,
            {"instances_format": "bigquery", "bigquery_source": {"input_uri": f"bq://{table}"}},
            {
                "predictions_format": "bigquery",
                "bigquery_destination": {"output_uri": f"bq://{settings.project}.{settings.dataset}"},
            },
        )

    def _request(self, name: str, source: ProtoJson, output: ProtoJson) -> ProtoJson:
        settings = self.trial.cloud.settings
        machines = {"machine_spec": {"machine_type": MACHINE}, "starting_replica_count": 1, "max_replica_count": 1}
        return {
            "display_name": f"{MODEL}__{self.trial.number}",
            "model": self._version(),
            "input_config": source,
            "instance_config": {"instance_type": "object"},
            "output_config": output,
            "dedicated_resources": machines,
            "labels": {LABEL: self.trial.number, "retraining-task": f"batch-{name}"},
            **({"service_account": settings.service_account} if settings.service_account else {}),
        }

    def _count_answers(self, folder_uri: str) -> int:
        artifacts = self.trial.cloud.artifacts
        uris = [uri for uri in artifacts.list_uris(folder_uri.rstrip("/")) if "prediction.results" in uri]
        return sum(len(data.splitlines()) for data in artifacts.read_many(uris))

    def _count_rows(self, name: str, table: str) -> int:
        query = Query(sql=render(TEMPLATE, statement="count", table=table))
        (row,) = self.trial.cloud.warehouse.run_query(query, self.trial.job_id(name), "trial, answers").rows
        return int(row["count"])

    def _version(self) -> str:
        return version_name(self.trial, 1)

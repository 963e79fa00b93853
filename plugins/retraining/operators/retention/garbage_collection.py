"""The daily cleaning: look, end jobs that nobody waits for, delete what no run refers to any more.

Each task reads the plan that the first one wrote; what has changed since is looked at again before anything goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context, Param

from retraining.core.documents import CleanedJob, Maintenance, MaintenancePlan
from retraining.core.documents.document import MODEL_PATTERN
from retraining.core.naming import pages, storage
from retraining.core.planning.params import require_known
from retraining.core.retention import spans, summary, versions
from retraining.core.retention.spans import Limits, whole_second
from retraining.core.settings import include_path
from retraining.core.spec.teams import find_specs
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.dag_run import run_type
from retraining.operators.airflow.links import RunDocumentsLink, push_link
from retraining.operators.record.ownership import own_garbage_collection, require_own_bucket
from retraining.operators.record.run_record import Record
from retraining.operators.retention.deletion import cancel_unattended_job, delete_garbage
from retraining.operators.retention.survey import find_garbage

CLEANING_URI = "{{ ti.xcom_pull(task_ids='look')['cleaning_uri'] }}"


def maintain_params() -> dict[str, Param]:
    """Make the trigger form of `maintain`."""
    section = "This run"
    return {
        "dry_run": Param(
            True,
            type="boolean",
            title="Dry run",
            section=section,
            description=(
                "Say what would go, delete and cancel nothing. Only for a run by hand: one by the schedule deletes."
            ),
        ),
        "min_age_days": Param(
            spans.DEFAULT_AGE_DAYS,
            type="integer",
            minimum=spans.LEAST_AGE_DAYS,
            maximum=spans.MOST_AGE_DAYS,
            title="Age limit in days",
            section=section,
            description="What was written or used since is kept, whoever refers to it.",
        ),
        "keep_versions": Param(
            versions.DEFAULT_KEEP,
            type="integer",
            minimum=1,
            maximum=1000,
            title="Versions kept",
            section=section,
            description="Of each model so many of the newest stay in the registry, and all with an alias or deployed.",
        ),
        "models": Param(
            [],
            type="array",
            items={"type": "string", "pattern": MODEL_PATTERN},
            title="Models",
            section=section,
            description="Only these, also one whose YAML file is gone. Empty: every model with a file.",
        ),
    }


class FindGarbageOperator(CloudOperator):
    """Look at everything, and write down what shall go and why; deletes nothing.

    The time is the DAG run's `run_after`: no run starts before it, so nothing is taken for older than it is.

    Returns:
        `{cleaning_uri, spans, jobs, refused}`; the numbers count what shall go.
    """

    operator_extra_links = (RunDocumentsLink(),)

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Ask the hooks, ask `core`, store the plan (or take the one of an earlier try)."""
        dag_run, params = context["dag_run"], context["params"]
        require_own_bucket(cloud)
        require_known(params, maintain_params())
        limits = Limits(as_of=whole_second(dag_run.run_after), min_age_days=params["min_age_days"])
        folder = storage.garbage_collection_uri(cloud.settings.bucket, limits.as_of, dag_run.run_id)
        record = Record(cloud.artifacts, folder)
        plan = record.find_document(MaintenancePlan)
        if plan is None:
            dry_run = spans.is_dry_run(run_type(dag_run), asked=bool(params["dry_run"]))
            models, keep_versions = chosen_models(params["models"]), params["keep_versions"]
            plan = record.write_once(find_garbage(cloud, limits, models, keep_versions, dry_run, dag_run.run_id))
        for line in summary.plan_lines(plan):
            self.log.info(line)
        push_link(self, context, RunDocumentsLink, pages.folder_address(folder, cloud.settings.project))
        return {
            "cleaning_uri": folder,
            "spans": sum(len(model.delete) for model in plan.models),
            "jobs": sum(job.cancel for job in plan.jobs),
            "refused": [model.model for model in plan.models if model.refused],
        }


class CollectionTask(CloudOperator):
    """A task that carries the plan of a cleaning out.

    Args:
        cleaning_uri: Folder of the cleaning's documents.
    """

    template_fields = ("cleaning_uri",)

    def __init__(self, *, cleaning_uri: str = CLEANING_URI, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cleaning_uri = cleaning_uri


class CancelUnattendedJobsOperator(CollectionTask):
    """Cancel the jobs that nobody waits for, unless somebody does again.

    Returns:
        What became of each, as in the document `maintenance`.
    """

    def act(self, cloud: CloudPort, context: Context) -> list[XCom]:
        """Look at each once more, cancel."""
        plan = own_garbage_collection(cloud, context, self.cleaning_uri).read_document(MaintenancePlan)
        done = [] if plan.dry_run else [cancel_unattended_job(cloud, job) for job in plan.jobs if job.cancel]
        for job in done:
            self.log.warning("%s %s: %s", job.name, job.outcome, job.message)
        return [job.model_dump(mode="json") for job in done]


class DeleteGarbageOperator(CollectionTask):
    """Delete what the plan says and what is still so, and write down what was done.

    A model of which nothing may be deleted fails the task for good, when all others are done.

    Returns:
        `{maintenance_uri, freed_bytes, words}`.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Delete model by model, then what lies about; conclude once."""
        record = own_garbage_collection(cloud, context, self.cleaning_uri)
        done = record.find_document(Maintenance)
        if done is None:
            ended = context["ti"].xcom_pull(task_ids="cancel_jobs") or []
            jobs = [CleanedJob.model_validate(job) for job in ended]
            done = record.write_once(delete_garbage(cloud, record, jobs))
        for line in summary.result_lines(done):
            self.log.info(line)
        summary.require_none_refused(done, record.uri(Maintenance))
        return {"maintenance_uri": record.uri(Maintenance), "freed_bytes": done.freed_bytes, "words": done.message}


def chosen_models(models: Sequence[str]) -> list[str]:
    """Return the models of a cleaning: those chosen, or every one that has a file, broken or not."""
    return sorted({*models} or {path.stem for path in find_specs(include_path())})

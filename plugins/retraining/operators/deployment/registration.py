"""Registering what was trained: a version per run, found again by its label."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context

from retraining.core.documents import Decision, Plan, Registration, Report
from retraining.core.naming import console, storage, vertex
from retraining.core.naming.run_keys import RunKey
from retraining.hooks.cloud import Cloud
from retraining.hooks.registry import Registry, Upload, Version
from retraining.operators.airflow.boundary import fail_for_good, timed
from retraining.operators.airflow.links import ModelVersionLink, push_link
from retraining.operators.deployment.version_upload import require_reported_model, upload_once
from retraining.operators.record.ownership import own_run, require_own_model
from retraining.operators.record.run_record import RUN_URI, Record


class RegisterModelOperator(BaseOperator):
    """Register the run's model as a version; a promoted one becomes `challenger`, a backfilled one `as-of-YYYYMMDD`.

    Ours instead of the provider's `UploadModelOperator`: a retry of that one makes another version.

    Args:
        run_uri: Folder of the run's record.

    Returns:
        `{version_name, aliases}`.
    """

    template_fields = ("run_uri",)
    operator_extra_links = (ModelVersionLink(),)

    def __init__(self, *, run_uri: str = RUN_URI, **kwargs: Any) -> None:  # noqa: ANN401 - BaseOperator's
        super().__init__(**kwargs)
        self.run_uri = run_uri

    @timed
    @fail_for_good
    def execute(self, context: Context) -> dict[str, Any]:
        """Upload (once), give aliases, write it down."""
        cloud = Cloud()
        record = own_run(cloud, context, self.run_uri)
        found = self._stored(cloud, record)
        if found is None:
            plan, decision = record.read(Plan), record.read(Decision)
            require_own_model(cloud, plan.model)  # it may have come since the plan
            report = record.read(Report)
            require_reported_model(cloud, report)
            upload = upload_of(plan, decision, report)
            version = upload_once(cloud, plan.model, upload, storage.upload_claim_uri(plan.run_uri))
            version = give_aliases(cloud.registry, plan, decision, version)
            found = record.write_once(
                Registration(
                    model=plan.model,
                    run_key=plan.run_key,
                    model_name=version.model_name,
                    version_id=version.version_id,
                    version_name=version.version_name,
                    aliases=tuple(sorted(version.aliases)),
                )
            )
        push_link(self, context, ModelVersionLink, console.version_address(found.version_name))
        self.log.info("%s with aliases %s", found.version_name, ", ".join(found.aliases) or "none")
        return {"version_name": found.version_name, "aliases": list(found.aliases)}

    def _stored(self, cloud: Cloud, record: Record) -> Registration | None:
        """What an earlier try registered; of a version that is gone nothing, so that the model is registered again."""
        found = record.find(Registration)
        if found is None or cloud.registry.find_by_run(found.model, found.run_key) is not None:
            return found
        self.log.warning("%s is gone from the registry: the model is registered again", found.version_name)
        if stored := cloud.objects.find(record.uri(Registration)):
            list(cloud.objects.delete([stored]))
        return None


def upload_of(plan: Plan, decision: Decision, report: Report) -> Upload:
    """What the registry is given: its labels are the way back to the run."""
    return Upload(
        display_name=plan.model,
        description=decision.words,
        artifact_uri=report.model_uri,
        serving_image=plan.serving_image,
        labels=vertex.version_labels(plan),
    )


def give_aliases(registry: Registry, plan: Plan, decision: Decision, version: Version) -> Version:
    """Aliases that follow from the verdict. An older challenger does not take the alias from a newer one.

    Vertex AI gives `default` to the first version, whatever its verdict. While there is no champion, which has it
    from then on, a challenger takes it over.
    """
    if decision.verdict == "record":
        return registry.merge_aliases(version, [vertex.alias_as_of(plan.as_of)])
    if decision.verdict == "reject":
        return version
    holder = registry.find_by_alias(plan.model, vertex.CHALLENGER)
    if holder and holder.run_key and RunKey.parse(holder.run_key).as_of > plan.as_of:
        return version
    version = registry.move_alias(plan.model, vertex.CHALLENGER, version, holder.version_id if holder else None)
    if vertex.DEFAULT not in version.aliases and registry.find_by_alias(plan.model, vertex.CHAMPION) is None:
        version = registry.merge_aliases(version, [vertex.DEFAULT])
    return version

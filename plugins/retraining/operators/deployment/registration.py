"""Registering what was trained: a version per run, found again by its label."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import (
    Checks,
    Decision,
    Deployment,
    Evaluation,
    Manifest,
    ModelCard,
    Plan,
    Registration,
    Report,
    Statistics,
)
from retraining.core.naming import pages, serving, storage, vertex
from retraining.core.naming.trust import require_serving_image
from retraining.core.promotion.aliases import aliases_of_verdict
from retraining.core.promotion.deployments import require_reported_model
from retraining.core.promotion.explanations import explanation_spec
from retraining.core.promotion.model_cards import model_card
from retraining.core.promotion.model_evaluations import model_evaluation, slice_batches
from retraining.core.promotion.schemata import schema_files
from retraining.core.promotion.versions import Version
from retraining.core.untyped import ProtoJson
from retraining.hooks.ports import CloudPort, RegistryPort
from retraining.hooks.registry import Upload
from retraining.hooks.session import is_outage
from retraining.operators.airflow.boundary import sleep_over
from retraining.operators.airflow.cloud_task import CloudSensor, RunTask
from retraining.operators.airflow.links import ModelVersionLink, push_link
from retraining.operators.deployment.version_upload import upload_once
from retraining.operators.record.ownership import require_own_model
from retraining.operators.record.readiness import score_of_run
from retraining.operators.record.run_record import Record


class RegisterModelOperator(RunTask, CloudSensor):
    """Register the run's model as a version; a promoted one becomes `challenger`, a backfilled one `as-of-YYYYMMDD`.

    Ours instead of the provider's `UploadModelOperator`: a retry of that one makes another version. It sleeps over an
    outage as `deploy` does, and finds its upload again.

    Returns:
        `{version_name, aliases}`.
    """

    operator_extra_links = (ModelVersionLink(),)

    @sleep_over(is_outage)
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue:
        """Upload the model once, give it its aliases, write it down."""
        record = self.record(cloud, context)
        registration = self._find_registration(cloud, record)
        if registration is None:
            plan, decision = record.read_document(Plan), record.read_document(Decision)
            # It may have come since the plan.
            require_own_model(cloud, plan.model, staging=plan.spec.deployment.staging)
            report = record.read_document(Report)
            require_reported_model(report, cloud.model_files.digest(report.model_uri))
            plan = plan.model_copy(update={"serving_image": require_serving_image(plan, cloud.settings)})
            schema_uris = write_schemata(cloud, plan, report)
            upload = upload_of(plan, decision, report, schema_uris, explanation_of(record, plan, report))
            version = upload_once(cloud, plan.model, upload, storage.upload_claim_uri(plan.run_uri))
            evaluation = record.read_document(Evaluation)
            import_evaluation(cloud.registry, version, evaluation, record.uri(Evaluation))
            version = give_aliases(cloud.registry, plan, decision, version)
            registration = record.write_once(
                Registration(
                    model=plan.model,
                    run_key=plan.run_key,
                    model_name=version.model_name,
                    version_id=version.version_id,
                    version_name=version.version_name,
                    aliases=tuple(sorted(version.aliases)),
                )
            )
        write_card(cloud, record, registration)
        push_link(self, context, ModelVersionLink, pages.version_address(registration.version_name))
        self.log.info("%s with aliases %s", registration.version_name, ", ".join(registration.aliases) or "none")
        named = {"version_name": registration.version_name, "aliases": list(registration.aliases)}
        return PokeReturnValue(True, named)

    def _find_registration(self, cloud: CloudPort, record: Record) -> Registration | None:
        """Find what an earlier try registered; nothing of a version that is gone, so that it is registered again."""
        registration = record.find_document(Registration)
        if registration is None or cloud.registry.find_by_run(registration.model, registration.run_key) is not None:
            return registration
        self.log.warning("%s is gone from the registry: the model is registered again", registration.version_name)
        if stored := cloud.objects.find_object(record.uri(Registration)):
            list(cloud.objects.delete([stored]))
        return None


def write_schemata(cloud: CloudPort, plan: Plan, report: Report) -> dict[str, str]:
    """Write what instances and predictions look like beside the run's documents; return the addresses."""
    files = schema_files(plan, report.signature)
    uris: dict[str, str] = {what: storage.schema_uri(plan.run_uri, what) for what in files}
    for what, data in files.items():
        cloud.artifacts.overwrite(uris[what], data, "application/yaml")
    return uris


def explanation_of(record: Record, plan: Plan, report: Report) -> ProtoJson | None:
    """Return how the version's answers are explained; None: they are not, and no statistics are read."""
    if plan.spec.deployment.explanations is None:
        return None
    return explanation_spec(plan, record.read_document(Statistics), report.signature)


def upload_of(
    plan: Plan,
    decision: Decision,
    report: Report,
    schema_uris: Mapping[str, str],
    explanation: ProtoJson | None = None,
) -> Upload:
    """Return what the registry is given; its labels are the way back to the run."""
    return Upload(
        display_name=plan.model,
        description=decision.message,
        artifact_uri=serving.registered_uri(plan, report.model_uri),
        container_spec=serving.container_spec(serving.container_of(plan), report.model_digest),
        labels=vertex.version_labels(plan),
        schema_uris=schema_uris,
        explanation_spec=explanation,
    )


def import_evaluation(registry: RegistryPort, version: Version, evaluation: Evaluation, evaluation_uri: str) -> None:
    """Import a run's evaluation and its slices to the registry; those that an earlier try imported are there."""
    name = registry.find_evaluation(version, evaluation.run_key)
    if name is None:
        name = registry.import_evaluation(version, model_evaluation(evaluation, evaluation_uri))
    for batch in slice_batches(evaluation, registry.imported_slices(name)):
        registry.import_slices(name, batch)


def give_aliases(registry: RegistryPort, plan: Plan, decision: Decision, version: Version) -> Version:
    """Return a new version the aliases that follow from the verdict; `challenger` moves by compare-and-set."""
    challenger = registry.find_by_alias(plan.model, vertex.CHALLENGER)
    champion = registry.find_by_alias(plan.model, vertex.CHAMPION)
    for alias in aliases_of_verdict(plan, decision, version, challenger, champion):
        if alias == vertex.CHALLENGER:
            version = registry.move_alias(plan.model, alias, version, challenger.version_id if challenger else None)
        else:
            version = registry.merge_aliases(version, [alias])
    return version


def write_card(cloud: CloudPort, record: Record, registration: Registration) -> None:
    """Write the card of a run's version; again when a task is tried again, with the score of that day."""
    plan = record.read_document(Plan)
    card = model_card(
        plan,
        record.read_document(Checks),
        record.read_document(Manifest),
        record.read_document(Report),
        record.read_document(Evaluation),
        record.read_document(Decision),
        registration,
        record.find_document(Deployment),
    ).model_copy(update={"readiness": score_of_run(cloud, plan)})
    cloud.artifacts.overwrite(record.uri(ModelCard), card.to_bytes(), "application/json")

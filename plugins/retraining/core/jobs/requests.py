"""What a run's jobs are asked: the request document, where it and its result are, and the Vertex AI job."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import cast

from retraining.core.catalog.machines import planned_machines
from retraining.core.data.leakage import PROVEN, Proof
from retraining.core.data.shard_format import format_of, images_of, layout_of
from retraining.core.documents.answers import ThresholdRule
from retraining.core.documents.checks import Statistics
from retraining.core.documents.document import RequestDocument
from retraining.core.documents.evaluation import (
    Bootstrap,
    Challenger,
    Champion,
    EvaluateRequest,
    ImportanceRequest,
    Initial,
    LiteRequest,
    ReferenceRequest,
)
from retraining.core.documents.export import ExportRequest
from retraining.core.documents.plan import JobTask, Machines, Plan, Pool
from retraining.core.documents.snapshot import Snapshot
from retraining.core.documents.training import Report, TrainRequest, WeightedLabel
from retraining.core.documents.tuning import Tuning
from retraining.core.errors import PlanError
from retraining.core.jobs.champions import RANDOM, Beginning, reason_to_skip
from retraining.core.jobs.planned_training import planned_training
from retraining.core.naming import serving, storage, vertex
from retraining.core.settings import Settings
from retraining.core.spec.costs import ErrorCosts
from retraining.core.spec.data import Data
from retraining.core.spec.evaluation import Threshold, read_rule
from retraining.core.spec.features import plain_label
from retraining.core.spec.training import HyperparameterValue
from retraining.core.untyped import ProtoJson

BOOTSTRAP_SAMPLES = 500
REFERENCE_ROWS = 50_000
REFERENCE_SECONDS = 60
IMPORTANCE_SHARE = 0.75
"""Of a job's time limit, after which it measures no feature's importance."""
RESERVATION_KEY = "compute.googleapis.com/reservation-name"
COMMAND = ("python", "-m", "trainer.task")


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A task's place among those whose jobs are one job; see `core.jobs.chains`.

    Attributes:
        task: The task.
        tasks: Itself and those that follow: what a job of its own does one after the other.
        folder_uri: The run's record.
        before_uri: Where the job leaves the result of the task before it; empty: there is none.
    """

    task: str
    tasks: tuple[str, ...]
    folder_uri: str
    before_uri: str = ""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What a task wants done: a job, the document it reads, the document it leaves. The last two may be missing.

    Attributes:
        custom_job: `aiplatform_v1.CustomJob`, `HyperparameterTuningJob` or `BatchPredictionJob` in proto-JSON with
            snake_case names, without the labels that identify it.
        request: The document the job reads.
        request_uri: Where it is written before the job starts.
        result_uri: Where the job leaves its result.
        adopted_uri: Where the task takes the result over to, once the job has ended and what it left is this request's:
            nobody reads it elsewhere. When it is there, the job need not run.
        result_kind: Kind of the result.
        artifact_uri: An object without which a stored result does not count: then the job runs again.
        submission_uri: Where the job lies as people submit it, without the ending; empty: nowhere.
        machine_pool: On whose machines it may run; None: on its own alone.
        retries: How many jobs may follow those that failed by themselves; None: as many as the task has retries.
        way_out: What a person does when no job may follow.
        chain: Where the job of an earlier task may go on with this one; None: it has a job of its own.
        plan: Of the run, whose images the job names; None: of none.
    """

    custom_job: ProtoJson  # Google's proto-JSON
    request: RequestDocument | None = None
    request_uri: str = ""
    result_uri: str = ""
    adopted_uri: str = ""
    result_kind: str = ""
    artifact_uri: str = ""
    submission_uri: str = ""
    machine_pool: str | None = None
    retries: int | None = None
    way_out: str = "Mend what they name and clear the task"
    chain: Chain | None = None
    plan: Plan | None = None

    @property
    def stored_uri(self) -> str:
        """Where everybody reads the result: in the record, or where the job left it."""
        return self.adopted_uri or self.result_uri


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best champion of late, where the champion is not it.

    Attributes:
        model: Which; None: the champion is it.
        plan: Of the run that made it; None: it is gone.
        image: That scores it, of a model of another framework; None: the judge does.
        skipped: Why it cannot be asked; None: it can.
    """

    model: Champion | None = None
    plan: Plan | None = None
    image: str | None = None
    skipped: str | None = None


NO_OTHER = Best()
"""The champion is the best of late."""


def export_job(
    plan: Plan, snapshot: Snapshot, service_account: str | None = None, *, quarantined: Sequence[date] = ()
) -> JobRequest:
    """Return the job that writes the missing spans as TFRecords, and the manifest.

    Both without the quarantined days.
    """
    manifest_uri = storage.document_uri(storage.results_uri(plan), "manifest")
    request = ExportRequest(
        digest_required=True,
        model=plan.model,
        run_key=plan.run_key,
        table=snapshot.table,
        schema=snapshot.columns,
        schema_hash=snapshot.schema_hash,
        compression=plan.spec.data.compression,
        spans_uri=snapshot.spans_uri,
        spans=snapshot.spans,
        quarantined=tuple(quarantined),
        golden=snapshot.golden,
        test_start=plan.window.test_start,
        manifest_uri=manifest_uri,
        images=images_of(plan.spec),
        format=format_of(plan.spec),
        layout=layout_of(plan.spec),
        only="test" if plan.spec.training.input == "bigquery" else "all",
    )
    return _job_request(plan, "export", request, manifest_uri, "manifest", service_account)


def training_job(
    plan: Plan,
    tuning: Tuning | None = None,
    service_account: str | None = None,
    *,
    statistics: Statistics | None = None,
    beginning: Beginning = RANDOM,
) -> JobRequest:
    """Return the job that trains the challenger with the run's hyperparameters; without `tuning` the spec's own.

    Args:
        plan: The run.
        tuning: What a search settled on.
        service_account: Whom the job runs as.
        statistics: Of the run's examples: the recipe goes by them.
        beginning: What its weights begin as.
    """
    hyperparameters = tuning.hyperparameters if tuning else None
    base_uri = storage.training_uri(storage.results_uri(plan))
    request = train_request(plan, base_uri, hyperparameters=hyperparameters, statistics=statistics)
    request = request.model_copy(update={"initial": beginning.initial, "initial_skipped": beginning.skipped})
    job_request = _job_request(plan, "train", request, request.report_uri, "report", service_account)
    own = plan.spec.training.runtime.scoring_image is not None
    return replace(job_request, artifact_uri=storage.model_file_uri(request.model_uri, own=own))


def train_request(
    plan: Plan,
    base_uri: str,
    *,
    hyperparameters: Mapping[str, HyperparameterValue] | None = None,
    trial_metric: str | None = None,
    priors: Sequence[Mapping[str, HyperparameterValue]] = (),
    statistics: Statistics | None = None,
) -> TrainRequest:
    """Return what the trainer is asked.

    Args:
        plan: The run.
        base_uri: Where model, checkpoints and logs go.
        hyperparameters: Instead of the spec's.
        trial_metric: What a trial of a study reports: it is scored, not stored; flags of the command line go over the
            hyperparameters. None: it is no trial.
        priors: Sets of hyperparameters of which the flag `--prior` chooses one.
        statistics: Of the run's examples, for the recipe; None: of as few rows as the checks let pass.
    """
    training = plan.spec.training
    report_folder = base_uri if trial_metric else storage.results_uri(plan)
    return TrainRequest(
        digest_required=trial_metric is None,
        model=plan.model,
        run_key=plan.run_key,
        manifest_uri=storage.document_uri(plan.run_uri, "manifest"),
        statistics_uri=storage.document_uri(plan.run_uri, "statistics"),
        features=plan.spec.features,
        crosses=plan.spec.crosses,
        label=plan.spec.label,
        auxiliary_labels=tuple(
            WeightedLabel(label=plain_label(label), weight=label.weight) for label in plan.spec.auxiliary_labels
        ),
        key=plan.spec.data.key,
        key_input=plan.spec.deployment.key_input,
        weight=plan.spec.data.weight,
        training=planned_training(plan.spec, hyperparameters, statistics),
        seed=training.seed,
        trial_metric=trial_metric,
        priors=tuple(dict(prior) for prior in priors),
        model_uri=serving.model_uri(plan, base_uri),
        report_uri=storage.document_uri(report_folder, "report"),
        checkpoint_uri=storage.checkpoints_uri(base_uri),
        tensorboard_uri=storage.tensorboard_uri(base_uri),
    )


def evaluation_job(
    plan: Plan,
    champion: Champion | None,
    service_account: str | None = None,
    *,
    champion_trained_before: date | None = None,
    champion_data: Data | None = None,
    champion_is_own: bool = False,
    proof: Proof = PROVEN,
    report: Report | None = None,
) -> JobRequest:
    """Return the job that scores challenger and champion on the same shards.

    Args:
        plan: The run.
        champion: The version that serves now; None when there is none. One whose data is as new as this run's is not
            scored: it may have been trained on this run's test days.
        service_account: Whom the job runs as; None: Vertex AI's own account.
        champion_trained_before: First test day of the champion's own run: it may have been trained on any day before.
            None: not known.
        champion_data: Section `data` of that run's spec, which says what it tested on. None: not known.
        champion_is_own: Whether it is of another framework, so that its own trainer scores it.
        proof: What is known of the champion's training examples: the judge looks into its files, and the decision
            goes by what they do not prove.
        report: Of the challenger's training; None: it is gone.
    """
    skipped = reason_to_skip(plan, champion, champion_trained_before, champion_data)
    if champion is not None and champion_is_own:
        champion = champion.model_copy(
            update={"scores_uri": storage.scores_document_uri(storage.results_uri(plan), vertex.CHAMPION)}
        )
    request = _evaluate_request(plan, champion, skipped, proof, report)
    job_request = _job_request(plan, "evaluate", request, request.evaluation_uri, "evaluation", service_account)
    return replace(job_request, artifact_uri=job_request.request_uri)  # who met whom stands there alone


def beside_best(plan: Plan, job_request: JobRequest, best: Best) -> JobRequest:
    """Return a comparison that scores the best champion of late, too, or says why not; without a champion neither.

    Args:
        plan: The run.
        job_request: By `evaluation_job`.
        best: Whom to score.
    """
    request = cast("EvaluateRequest", job_request.request)
    update: dict[str, object] = {"judge_best": True}
    if request.champion is not None and best.model is not None:
        model, its_plan = best.model, best.plan
        seen = (its_plan.window.test_start, its_plan.spec.data) if its_plan else (None, None)
        skipped = best.skipped or reason_to_skip(plan, model, *seen, called="the best champion of late,")
        if best.image is not None:
            scores_uri = storage.scores_document_uri(storage.results_uri(plan), vertex.BEST)
            model = model.model_copy(update={"scores_uri": scores_uri})
        update |= {"best_skipped": skipped} if skipped else {"best": model}
    return replace(job_request, request=request.model_copy(update=update))


def proven_beside(job_request: JobRequest, initial: Initial | None) -> JobRequest:
    """Let the judge also prove whose weights the challenger began with, where that is not the champion it meets."""
    request = job_request.request
    if initial is None or not isinstance(request, EvaluateRequest):
        return job_request
    if request.champion is not None and request.champion.run_key == initial.run_key:
        return job_request
    return replace(job_request, request=request.model_copy(update={"initial": initial}))


def _evaluate_request(
    plan: Plan, champion: Champion | None, skipped: str | None, proof: Proof, report: Report | None
) -> EvaluateRequest:
    """Return what the judge is asked; `skipped` says why the champion is not scored."""
    compared, results_uri = champion is not None and not skipped, storage.results_uri(plan)
    evaluation, forms, packages = plan.spec.evaluation, plan.spec.training.export_lite, plan.spec.training.packages
    return EvaluateRequest(
        digest_required=True,
        model=plan.model,
        run_key=plan.run_key,
        manifest_uri=storage.document_uri(plan.run_uri, "manifest"),
        split="test",
        features=plan.spec.features,
        label=plan.spec.label,
        auxiliary_labels=tuple(map(plain_label, plan.spec.auxiliary_labels)),
        key=plan.spec.data.key,
        key_input=plan.spec.deployment.key_input,
        weight=plan.spec.data.weight,
        challenger=_challenger(plan, report),
        champion=None if skipped else champion,
        champion_skipped=skipped,
        golden=plan.golden_query is not None,
        prove_unseen=proof.files if compared else (),
        unproven=proof.missing if compared else None,
        trained_on_known=proof.known or not compared,
        slices=evaluation.plain_slices,
        crossed_slices=evaluation.crossed_slices,
        group=evaluation.group,
        by_day=evaluation.by_day and evaluation.group is None and plan.spec.data.split == "time",
        min_slice_examples=evaluation.promote.min_slice_examples,
        metric=evaluation.metric,
        threshold=_threshold_rule(evaluation.threshold),
        baselines=dict(evaluation.baselines),
        bootstrap=_bootstrap(plan),
        scores_uri=storage.scores_uri(results_uri),
        evaluation_uri=storage.document_uri(results_uri, "evaluation"),
        lite=LiteRequest(forms=forms, folder_uri=storage.lite_uri(results_uri)) if forms else None,
        packages=packages if any(package.imports for package in packages) else (),
        show_rows=plan.spec.report.show_rows,
        reference=_reference(plan),
        importance=_importance(plan),
    )


def _reference(plan: Plan) -> ReferenceRequest | None:
    """Return within what reference lines are trained; None: the spec wants none."""
    if not plan.spec.evaluation.reference:
        return None
    return ReferenceRequest(rows=REFERENCE_ROWS, seconds=REFERENCE_SECONDS, seed=plan.spec.training.seed)


def _importance(plan: Plan) -> ImportanceRequest | None:
    """Return within what features' importance is measured; None: the spec does not want it."""
    rule = plan.spec.evaluation.importance
    if rule is None:
        return None
    return ImportanceRequest(
        rows=rule.rows,
        repeats=rule.repeats,
        seconds=rule.max_seconds,
        ends_after=max(1, int(IMPORTANCE_SHARE * planned_machines(plan, "evaluate").timeout_s)),
        seed=plan.spec.training.seed,
    )


def _challenger(plan: Plan, report: Report | None) -> Challenger:
    own = plan.spec.training.runtime.scoring_image is not None
    return Challenger(
        model_uri=serving.trained_model_uri(plan),
        report_uri=storage.document_uri(plan.run_uri, "report"),
        scores_uri=storage.scores_document_uri(storage.results_uri(plan), vertex.CHALLENGER) if own else None,
        signature=report.signature if report else None,
        model_digest=report.model_digest if report else None,
    )


def _bootstrap(plan: Plan) -> Bootstrap:
    """Return how intervals are drawn."""
    confidence = plan.spec.evaluation.promote.confidence
    return Bootstrap(samples=BOOTSTRAP_SAMPLES, seed=plan.spec.training.seed, confidence=confidence)


def _threshold_rule(threshold: Threshold | None) -> ThresholdRule | None:
    """Return the spec's threshold as the judge reads it."""
    match threshold:
        case None:
            return None
        case ErrorCosts(false_positive=false_positive, false_negative=false_negative):
            return ThresholdRule(rule="costs", false_positive=false_positive, false_negative=false_negative)
        case str():
            rule, least = read_rule(threshold)
            return ThresholdRule(rule=rule, at=least)
    return ThresholdRule(rule="number", at=threshold)


def custom_job(
    plan: Plan, task: JobTask, request_uri: str, base_uri: str, machines: Machines, service_account: str | None
) -> ProtoJson:
    """Return a job on Vertex AI that runs the trainer's image: one pool per role, the chief's first.

    Args:
        plan: The run.
        task: Sub-command of `python -m trainer.task`.
        request_uri: Its `--request`.
        base_uri: Base output directory: Vertex AI derives `AIP_MODEL_DIR` and its neighbours from it.
        machines: Machines, spot, timeout.
        service_account: Whom the job runs as where the spec names no account of the model's own.
    """
    program = _program(plan, task, [task, f"--request={request_uri}"], machines)
    pools = [_pool(pool, program, _reserved(pool, machines)) if pool.count else {} for pool in machines.pools]
    job_spec: ProtoJson = {
        "worker_pool_specs": pools,
        "scheduling": _scheduling(machines),
        "base_output_directory": {"output_uri_prefix": base_uri},
    }
    if account := plan.spec.service_account or service_account:
        job_spec["service_account"] = account
    return {
        "display_name": vertex.job_display_name(plan.model, task, plan.run_key),
        "job_spec": job_spec,
        "labels": vertex.job_labels(plan, task),
    }


def _program(plan: Plan, task: JobTask, args: list[str], machines: Machines) -> ProtoJson:
    """Return what a replica runs: a container, or the trainer's source distribution in a pre-built one."""
    runtime = plan.spec.training.runtime
    if task != "train" or runtime.framework is None:
        image = (runtime.image if task == "train" else None) or plan.trainer_image
        return {"container_spec": {"image_uri": image, "command": list(COMMAND), "args": args}}
    package_uri = trainer_package(plan, plan.trainer_package)
    accelerated = any(pool.accelerator for pool in machines.pools)
    image = vertex.prebuilt_image(plan.region, runtime.framework, accelerated=accelerated)
    package = {"executor_image_uri": image, "package_uris": [package_uri], "python_module": COMMAND[-1]}
    return {"python_package_spec": {**package, "args": args}}


def by_settings(job: ProtoJson, plan: Plan | None, settings: Settings) -> ProtoJson:
    """Return a job of the trainer that the settings name, where the plan names one of an earlier release.

    The software and its trainer belong together, and nobody who writes a plan chooses what runs. What the spec itself
    names stays.

    Args:
        job: In proto-JSON, of the plan's images.
        plan: Of its run; None: it has none.
        settings: Of this environment, now.

    Raises:
        PlanError: The job needs a source distribution of the trainer, and the settings name none.
    """
    if plan is None:
        return job
    job = copy.deepcopy(job)
    spec = job.get("job_spec") or job.get("trial_job_spec") or {}
    for pool in spec.get("worker_pool_specs", ()):
        container, package = pool.get("container_spec", {}), pool.get("python_package_spec", {})
        if container.get("image_uri") == plan.trainer_image:
            container["image_uri"] = settings.trainer_image
        if package:
            package["package_uris"] = [trainer_package(plan, settings.trainer_package)]
    return job


def trainer_package(plan: Plan, package: str | None) -> str:
    """Return the address of the trainer's source distribution for the framework that the spec names.

    Raises:
        PlanError: There is none.
    """
    if package is None:
        raise PlanError(
            f"{plan.model}, training.runtime.framework",
            "no address of the trainer's source distribution",
            "RETRAINING_TRAINER_PACKAGE=gs://…/trainer-…+tf{framework}.tar.gz",
            "Run make sdist, copy the file to the bucket and set it; or remove the key to use the image",
        )
    return package.replace("{framework}", plan.spec.training.runtime.framework or "")


def _scheduling(machines: Machines) -> ProtoJson:
    ends: ProtoJson = {"timeout": f"{machines.timeout_s}s"}
    if machines.flex_start_s is not None:
        return {**ends, "strategy": "FLEX_START", "max_wait_duration": f"{machines.flex_start_s}s"}
    return {**ends, "strategy": "SPOT"} if machines.spot else ends


def _reserved(pool: Pool, machines: Machines) -> ProtoJson:
    """Return where a pool's machines are taken from: only those like the first one are reserved."""
    first = machines.pools[0]
    if machines.reservation is None or (pool.machine, pool.accelerator) != (first.machine, first.accelerator):
        return {}
    affinity = {"reservation_affinity_type": "SPECIFIC_RESERVATION", "key": RESERVATION_KEY}
    return {"reservation_affinity": {**affinity, "values": [machines.reservation]}}


def _pool(pool: Pool, program: ProtoJson, reserved: ProtoJson) -> ProtoJson:
    machine: ProtoJson = {"machine_type": pool.machine, **reserved}
    if pool.accelerator:
        machine |= {"accelerator_type": pool.accelerator.type, "accelerator_count": pool.accelerator.count}
    if pool.tpu_topology:
        machine["tpu_topology"] = pool.tpu_topology
    return {
        "machine_spec": machine,
        "replica_count": pool.count,
        "disk_spec": {"boot_disk_type": pool.disk_type, "boot_disk_size_gb": pool.disk_gb},
        **program,
    }


def _job_request(
    plan: Plan, task: JobTask, request: RequestDocument, result_uri: str, result_kind: str, service_account: str | None
) -> JobRequest:
    request_uri = storage.document_uri(plan.run_uri, request.kind_name())
    results_uri = storage.results_uri(plan)
    base_uri = storage.training_uri(results_uri) if task == "train" else storage.job_uri(results_uri, task)
    return JobRequest(
        request=request,
        request_uri=request_uri,
        result_uri=result_uri,
        adopted_uri=storage.document_uri(plan.run_uri, result_kind),
        result_kind=result_kind,
        submission_uri=storage.submission_uri(plan.run_uri, task),
        machine_pool=plan.spec.machine_pool,
        plan=plan,
        custom_job=custom_job(plan, task, request_uri, base_uri, planned_machines(plan, task), service_account),
    )

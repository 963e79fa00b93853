"""Where a task may work: addresses that come from XCom, held to this environment and to the DAG's own model.

Whoever may write an XCom (a person in the UI, another DAG) could otherwise point a task at a folder of his own, whose
plan names his image, his project and his bucket.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime

from retraining.core.documents.plan import Plan
from retraining.core.documents.retention import MaintenancePlan
from retraining.core.documents.scoring import ScoringPlan
from retraining.core.errors import ContractError, SettingsError
from retraining.core.naming import dags, storage
from retraining.core.naming.run_keys import is_run_key
from retraining.core.naming.spans import place_of
from retraining.core.settings import SETTINGS, Settings
from retraining.core.spec.deployment import Container

PLACES = ("project", "region", "bucket", "dataset", "environment")
"""Settings that a plan keeps, and that each later task holds it to."""

IMAGES = ("trainer_image", "trainer_package", "serving_image")
"""Settings that the plan of a run keeps. A job or a version that is made later is made of the settings' own."""

_CLEAR = "Documents are where the first task wrote them: clear the run from its first task on"


def require_run_folder(uri: str, bucket: str, dag_id: str) -> None:
    """Refuse a run's folder that is not one of the DAG's own model in this environment's bucket.

    Raises:
        ContractError: It is another one.
    """
    root_of = storage.walk_forwards_uri if dags.is_walk_forward(dag_id) else storage.runs_uri
    _require_key_in(root_of(bucket, dags.model_of_dag(dag_id)), uri, dag_id)


def require_scoring_folder(uri: str, bucket: str, dag_id: str) -> None:
    """Refuse a scoring's folder that is not one of the DAG's own model in this environment's bucket.

    Raises:
        ContractError: It is another one.
    """
    _require_key_in(storage.scorings_uri(bucket, dags.model_of_dag(dag_id)), uri, dag_id)


def _require_key_in(root: str, uri: str, dag_id: str) -> None:
    folder, _, key = uri.rpartition("/")
    if folder != root or not is_run_key(key):
        raise ContractError(f"run_uri from XCom, for {dag_id}", repr(uri[:300]), f"a run's folder in {root}", _CLEAR)


def require_monitor_folder(uri: str, bucket: str, dag_id: str, dag_run_id: str) -> None:
    """Refuse a monitor's folder that is not this run's own.

    Raises:
        ContractError: It is another one.
    """
    root = storage.monitors_uri(bucket, dags.model_of_dag(dag_id))
    folder, _, name = uri.rpartition("/")
    stamp, _, run = name.partition("-")
    if folder != root or not re.fullmatch(r"\d{8}t\d{6}z", stamp) or run != dags.dag_run_hash(dag_run_id):
        expected = f"this run's folder in {root}"
        raise ContractError(f"monitor_uri from XCom, for {dag_id}", repr(uri[:300]), expected, _CLEAR)


def require_garbage_collection_folder(uri: str, bucket: str, as_of: datetime, dag_run_id: str) -> None:
    """Refuse a cleaning's folder that is not this run's own.

    Raises:
        ContractError: It is another one.
    """
    own = storage.garbage_collection_uri(bucket, as_of, dag_run_id)
    if uri != own:
        raise ContractError("cleaning_uri from XCom", repr(uri[:300]), own, _CLEAR)


def require_own_places(plan: MaintenancePlan, small_object_uris: Collection[str], settings: Settings) -> None:
    """Refuse a cleaning's plan that would touch anything but the span stores and the folders of small objects.

    Raises:
        ContractError: It names another place.
    """
    foreign = [item.uri for item in plan.litter if item.uri not in small_object_uris]
    for model in plan.models:
        roots = storage.spans_roots(settings.bucket, settings.results_bucket, model.model)
        uris = [*(span.uri for span in model.delete), *model.restore]
        foreign += [uri for uri in uris if place_of(uri, *roots) is None]
    if foreign:
        expected = " and ".join(
            f"gs://{bucket}" for bucket in dict.fromkeys((settings.bucket, settings.results_bucket))
        )
        raise ContractError(MaintenancePlan.kind_name(), repr(foreign[0][:300]), f"places of {expected}", _CLEAR)


def require_own_bucket(uri: str, owner: str, environment: str) -> None:
    """Refuse a bucket that is another environment's.

    Args:
        uri: Where the bucket says whose it is.
        owner: What it says.
        environment: This one.

    Raises:
        SettingsError: Another environment's documents are in it.
    """
    if owner != environment:
        raise SettingsError(
            uri,
            f"the bucket of environment {owner!r}",
            f"this one's, {environment!r}",
            f"Set RETRAINING_BUCKET to a bucket of its own, or RETRAINING_ENVIRONMENT={owner} if it is that one",
        )


def require_own_endpoint(where: str, owner: str, model: str) -> None:
    """Refuse an endpoint that another model has: as its own, or to try its versions on.

    Args:
        where: Which.
        owner: The model that it is for.
        model: The one that wants it.

    Raises:
        SettingsError: It is for another.
    """
    if owner != model:
        raise SettingsError(
            where,
            f"the endpoint is for model {owner}, as its own or for deployment.staging",
            f"one for {model}",
            "Give one of the two models another name, or take deployment.staging off",
        )


def require_own_resource(where: str, owner: str | None, ours: str, region: str) -> None:
    """Refuse a model or an endpoint that is another environment's.

    Args:
        where: Which resource.
        owner: Label of the environment that made it; None: no run made it, so it is nobody's.
        ours: This environment's label.
        region: For the message.

    Raises:
        SettingsError: It is another's.
    """
    if owner not in (None, ours):
        raise SettingsError(
            where,
            f"environment {owner!r} made it",
            f"this one, {ours!r}, to be the only one that has a model of this name in {region}",
            f"Give the model another name, or use another region or project; "
            f"set RETRAINING_ENVIRONMENT={owner} if this is that environment, in another bucket",
        )


def _require_results(plan: Plan | ScoringPlan, where: str, settings: Settings) -> None:
    """Refuse a plan whose jobs would write in another place than this run's."""
    if isinstance(plan, ScoringPlan) or plan.results_uri is None:  # a scoring has no job of its own
        return
    walks = plan.run_uri == storage.walk_forward_uri(settings.bucket, plan.model, plan.run_key)
    results_uri = storage.walk_forward_results_uri if walks else storage.run_results_uri
    own = results_uri(settings.results_bucket, plan.model, plan.run_key)
    if plan.results_uri != own:
        raise ContractError(
            where, f"results_uri {plan.results_uri!r}", f"{SETTINGS['results_bucket'].variable}: {own!r}", _CLEAR
        )


def require_agreement(plan: Plan | ScoringPlan, folder_uri: str, settings: Settings) -> None:
    """Refuse a plan that is not of its folder, or names other places than the settings.

    Raises:
        ContractError: They differ; names each.
    """
    scoring = isinstance(plan, ScoringPlan)
    where = storage.document_uri(folder_uri, plan.kind_name())
    kinds = (storage.scoring_uri,) if scoring else (storage.run_uri, storage.walk_forward_uri)
    own = [folder_of(settings.bucket, plan.model, plan.run_key) for folder_of in kinds]
    if plan.run_uri != folder_uri or folder_uri not in own:
        raise ContractError(where, f"the plan of run {plan.run_uri}", f"that of {folder_uri}", _CLEAR)
    _require_results(plan, where, settings)
    differ = [name for name in PLACES if getattr(plan, name) != getattr(settings, name)]
    if plan.environment is None and "environment" in differ:  # of a release that had none: its bucket says whose it is
        differ.remove("environment")
    way_out = "Clear the run from plan on, so that it goes by the settings as they are now; or set them back"
    _require_same(plan, where, settings, differ, way_out)


def require_serving_image(plan: Plan, settings: Settings) -> str:
    """Return the image that is to serve a run's model: the settings' one, whatever it was when the run was planned.

    Raises:
        ContractError: The two load a model from different folders, and the run's lies in the one of its plan.
    """
    if plan.spec.deployment.container is not None:  # which serves in its place
        return plan.serving_image
    if Container.is_prebuilt(plan.serving_image) != Container.is_prebuilt(settings.serving_image):
        where = storage.document_uri(plan.run_uri, plan.kind_name())
        way_out = "Clear the run from plan on, so that it goes by the settings as they are now; or set them back"
        _require_same(plan, where, settings, ["serving_image"], way_out)
    return settings.serving_image


def _require_same(
    plan: Plan | ScoringPlan, where: str, settings: Settings, differ: Collection[str], way_out: str
) -> None:
    if differ:
        raise ContractError(
            where,
            "; ".join(f"{name} {getattr(plan, name)!r}" for name in differ),
            "; ".join(f"{SETTINGS[name].variable} {getattr(settings, name)!r}" for name in differ),
            way_out,
        )

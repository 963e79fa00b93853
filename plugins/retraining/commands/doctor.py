"""The command `doctor`: what is missing before the first run, found before anything is paid.

`CHECKS` is the table of what is looked at, in its order; what accounts may is in `doctor_access`, Airflow in
`doctor_airflow`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from retraining.commands.check import known_quotas, teams_named
from retraining.commands.diagnosis import PASSING, Check, Finding, NotKnownError, Project, State, examine
from retraining.commands.doctor_access import (
    OTHER_ROLE_CHECKS,
    PROJECT_ROLE_CHECKS,
    STATEMENTS,
    look_at_apis,
    look_at_clock,
    look_at_google_quotas,
    look_at_images,
)
from retraining.commands.doctor_airflow import AIRFLOW_CHECKS
from retraining.commands.shell import INCLUDE, Shell, attempt, print_answer
from retraining.core.catalog.amounts import require_quota
from retraining.core.catalog.hardware import load_hardware, require_machines
from retraining.core.catalog.model_check import all_jobs, check_model
from retraining.core.data.sql import Query
from retraining.core.errors import RetrainingError, SettingsError, SpecError
from retraining.core.naming import vertex
from retraining.core.planning import locations
from retraining.core.program import command_line
from retraining.core.report.rendering import render_template
from retraining.core.settings import SETTINGS
from retraining.core.spec.quotas import FILE as QUOTAS
from retraining.core.spec.stages import FILE as STAGES
from retraining.core.spec.stages import find_stages
from retraining.core.spec.teams import explain_teams, find_specs
from retraining.hooks.check_queries import check
from retraining.operators.record.ownership import require_nobodys_bucket

ANY_MODEL = "retraining-doctor"
"""A model's name that nothing has: asking for it tells whether the service answers this account."""


def look_at_settings(project: Project) -> str:
    """Read the environment's variables."""
    settings = project.settings
    return f"project {settings.project}, region {settings.region}, environment {settings.environment}"


def look_at_stage(project: Project) -> str:
    """Find the stage that this environment is, also where no variable says it."""
    settings, found = project.settings, find_stages(project.include)
    if found is None:
        return f"no {STAGES}: the models are as they are written"
    if settings.stage:
        return f"{settings.stage}, of {', '.join(found.names)}"
    buckets = {settings.bucket, settings.results_bucket}
    named = next((name for name, stage in found.said.stages.items() if buckets & set(stage.buckets)), None)
    if named is None:
        return f"none of {', '.join(found.names)}: the models are as they are written"
    raise SettingsError(
        SETTINGS["stage"].variable,
        f"not set, and {STAGES} has this environment's bucket in stage {named!r}",
        "the stage that this environment is: without it the models are as they are written",
        f"Set {SETTINGS['stage'].variable}={named}",
    )


def look_at_credentials(project: Project) -> str:
    """Find the credentials, and whose they are."""
    credentials = project.session.credentials
    account = getattr(credentials, "service_account_email", None)
    if not account or account == "default":  # of a person, or of a machine
        asked = attempt(project.access.own_email)
        account = asked if isinstance(asked, str) and asked else "an account that its token does not name"
    return f"{account}, by {project.caller} ({type(credentials).__name__})"


def look_at_bucket(project: Project) -> str:
    """Look for the bucket of documents."""
    return _find_bucket(project, project.settings.bucket)


def look_at_results_bucket(project: Project) -> str:
    """Look for the bucket of what jobs write."""
    return _find_bucket(project, project.settings.results_bucket)


def _find_bucket(project: Project, bucket: str) -> str:
    """Ask what the account may there, which anybody may ask; what it answers is another check's."""
    project.access.missing_on_bucket(bucket, ("storage.objects.get",))
    return f"gs://{bucket} is there"


def look_at_objects(project: Project) -> str:
    """List in both buckets."""
    settings = project.settings
    buckets = list(dict.fromkeys((settings.bucket, settings.results_bucket)))
    for bucket in buckets:
        project.cloud.artifacts.list_folders(f"gs://{bucket}/{ANY_MODEL}")
    return f"{', '.join(buckets)} can be listed"


def look_at_bucket_location(project: Project) -> str | None:
    """Hold where the buckets are against the region."""
    settings, told = project.settings, []
    for bucket in dict.fromkeys((settings.bucket, settings.results_bucket)):
        found = project.cloud.artifacts.bucket_locations(bucket)
        if not found:
            return None
        if warning := locations.bucket_warning(bucket, found, settings.region):
            raise SettingsError("RETRAINING_BUCKET", warning, f"a bucket in {settings.region}")
        told.append(f"gs://{bucket} is in {found[0]}")
    return ", ".join(told)


def look_at_owner(project: Project) -> str:
    """Ask whether the bucket is another environment's."""
    require_nobodys_bucket(project.cloud)
    return f"the bucket is no other environment's than {project.settings.environment}"


def look_at_dataset(project: Project) -> str:
    """Find the dataset of run tables, where statements and jobs run."""
    settings = project.settings
    found = project.cloud.warehouse.dataset_location(settings.dataset)
    if found is None:
        _require_hidden(project, settings.dataset)
    return f"{settings.dataset} is there, in {found}"


def _require_hidden(project: Project, dataset: str) -> NoReturn:
    """Tell a dataset that is not there from one that the account may not look at.

    Raises:
        SettingsError: It is not there.
        NotKnownError: The account may not look.
    """
    from google.api_core.exceptions import Forbidden, NotFound

    try:
        project.access.dataset_access(dataset)
    except Forbidden as error:
        raise NotKnownError(f"the account may not look at {dataset}: see its role there") from error
    except NotFound:
        pass
    raise SettingsError(f"dataset {project.settings.project}.{dataset}", "none is there", "one in the jobs' region")


def look_at_dataset_location(project: Project) -> str | None:
    """Hold where the dataset is against the region."""
    settings = project.settings
    found = project.cloud.warehouse.dataset_location(settings.dataset)
    if found is None:
        return None
    if warning := locations.dataset_warning(settings.dataset, found, settings.region):
        raise SettingsError("RETRAINING_DATASET", warning, f"a dataset in {settings.region}")
    return f"{settings.dataset} is in {found}, as the jobs are"


def look_at_encryption(project: Project) -> str | None:
    """Hold what buckets and dataset encrypt with against the key of everything else."""
    settings, cloud = project.settings, project.cloud
    wanted = settings.encryption_key
    if wanted is None:
        return "by Google's keys: RETRAINING_ENCRYPTION_KEY is not set"
    dataset = f"{settings.project}:{settings.dataset}"
    found = {
        f"gcloud storage buckets update gs://{bucket} --default-encryption-key={wanted}": cloud.artifacts.bucket_key(
            bucket
        )
        for bucket in dict.fromkeys((settings.bucket, settings.results_bucket))
    }
    found[f"bq update --default_kms_key={wanted} {dataset}"] = cloud.warehouse.dataset_key(settings.dataset)
    if None in found.values():
        return None
    if mend := " && ".join(command for command, key in found.items() if key != wanted):
        raise SettingsError("RETRAINING_ENCRYPTION_KEY", "buckets or a dataset that do not have it", wanted, mend)
    return "buckets and dataset have the key"


def look_at_statements(project: Project) -> str:
    """Ask BigQuery for a dry run, which is a job."""
    project.cloud.warehouse.dry_run(Query(sql="SELECT 1 AS one"), "a dry run")
    return "BigQuery takes statements"


def look_at_jobs(project: Project) -> str:
    """List the jobs under way."""
    found = project.cloud.jobs.find_active(vertex.OWNER_LABEL)
    return f"Vertex AI lists jobs; under way: {len(found)}"


def look_at_registry(project: Project) -> str:
    """List the versions of a model."""
    project.cloud.registry.list_versions(ANY_MODEL)
    return "Vertex AI tells of models"


def look_at_endpoints(project: Project) -> str:
    """Look for an endpoint."""
    project.cloud.endpoints.get(ANY_MODEL)
    return "Vertex AI tells of endpoints"


def look_at_models(project: Project) -> str:
    """Check each model's files, as `check-models` does."""
    paths = find_specs(project.include)
    if not paths:
        raise SpecError(
            str(project.include / "models"),
            "no model",
            "one YAML file for each",
            f"Write one: {command_line('new-model')}",
        )
    teams = {path.name: partial(explain_teams, project.include) for path in teams_named(project.include)}
    return _of_each({**{path.stem: partial(check_model, path, project.include) for path in paths}, **teams})


def look_at_machines(project: Project) -> str:
    """Hold the models' machines against those that the region has."""
    hardware, region = load_hardware(project.include), project.settings.region
    return _of_each({spec.name: partial(require_machines, spec, hardware, region) for spec in project.specs()})


def look_at_quotas(project: Project) -> str:
    """Hold the models' jobs against the region's quotas."""
    quotas, hardware, region = known_quotas(project.include), load_hardware(project.include), project.settings.region
    if quotas is None:
        return f"no {QUOTAS}: jobs wait for no room"
    limits = partial(require_quota, quotas, hardware, region)
    return _of_each({spec.name: partial(limits, spec.name, all_jobs(spec)) for spec in project.specs()})


def look_at_queries(project: Project) -> str:
    """Ask BigQuery for a dry run of each model's queries, as `check-queries` does."""
    session = project.session
    return _of_each({spec.name: partial(check, spec, project.include, session) for spec in project.specs()})


def _of_each(questions: Mapping[str, Callable[[], object]]) -> str:
    """Return the names of the models that are well.

    Raises:
        SpecError: Some are not; the message has what is wrong with each.
    """
    errors = []
    for ask in questions.values():
        try:
            ask()
        except RetrainingError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else SpecError("models", "; ".join(map(str, errors)), "none of these")
    return f"of {', '.join(questions)}"


_TO = "--member=MEMBER --role=roles/"
_PROJECT = "gcloud projects add-iam-policy-binding {project} " + _TO
_QUERIES = _PROJECT.replace("{project}", "{query_project}")
_BUCKET = "gcloud storage buckets add-iam-policy-binding gs://{bucket} " + _TO + "storage.objectUser"
_MAKE_BUCKET = "gcloud storage buckets create gs://{bucket} --project={project} --location={region}"


USES_VERTEX = "connection/aiplatform.user@project"
STARTS_QUERIES = "connection/bigquery.jobUser@project"
READS_SOURCES = "connection/bigquery.dataViewer@sources"
USES_BUCKET, USES_RESULTS = "connection/storage.objectUser@bucket", "connection/storage.objectUser@results"


def _of_vertex(name: str, look: Callable[[Project], str]) -> Check:
    enable = "gcloud services enable aiplatform.googleapis.com --project={project}"
    return Check(name=name, look=look, needs=(USES_VERTEX,), create=enable, grant=_PROJECT + "aiplatform.user")


CHECKS = (
    Check(name="settings", look=look_at_settings),
    Check(name="stage", look=look_at_stage, needs=("settings",)),
    Check(name="models", look=look_at_models),
    Check(
        name="credentials",
        look=look_at_credentials,
        needs=("settings",),
        create="gcloud auth application-default login",
        grant="gcloud auth application-default login",
    ),
    Check(name="clock", look=look_at_clock, needs=("credentials",)),
    Check(name="apis", look=look_at_apis, needs=("credentials",)),
    Check(name="bucket", look=look_at_bucket, needs=("credentials",), create=_MAKE_BUCKET, grant=_BUCKET),
    Check(
        name="results-bucket",
        look=look_at_results_bucket,
        needs=("credentials",),
        create=_MAKE_BUCKET.replace("{bucket}", "{results_bucket}"),
        grant=_BUCKET.replace("{bucket}", "{results_bucket}"),
    ),
    Check(name="bucket-location", look=look_at_bucket_location, needs=("bucket", "results-bucket")),
    Check(
        name="dataset",
        look=look_at_dataset,
        needs=("credentials",),
        create="bq --location={region} mk --dataset {project}:{dataset}",
        grant="bq --location={region} mk --dataset {project}:{dataset}",
    ),
    Check(name="dataset-location", look=look_at_dataset_location, needs=("dataset",)),
    *PROJECT_ROLE_CHECKS,
    Check(name=STATEMENTS, look=look_at_statements, needs=(STARTS_QUERIES,), create=_QUERIES + "bigquery.jobUser"),
    *OTHER_ROLE_CHECKS,
    Check(name="objects", look=look_at_objects, needs=(USES_BUCKET, USES_RESULTS), grant=_BUCKET),
    Check(name="owner", look=look_at_owner, needs=(USES_BUCKET,), grant=_BUCKET),
    Check(name="encryption", look=look_at_encryption, needs=("credentials",)),
    _of_vertex("jobs", look_at_jobs),
    _of_vertex("registry", look_at_registry),
    _of_vertex("endpoints", look_at_endpoints),
    Check(name="images", look=look_at_images, needs=("credentials", "models")),
    Check(name="machines", look=look_at_machines, needs=("settings", "models")),
    Check(name="quotas", look=look_at_quotas, needs=("settings", "models")),
    Check(name="google-quotas", look=look_at_google_quotas, needs=("credentials", "machines")),
    Check(name="queries", look=look_at_queries, needs=(STATEMENTS, READS_SOURCES)),
    *AIRFLOW_CHECKS,
)


def render_page(findings: Sequence[Finding], asked_at: datetime) -> str:
    """Return a page of HTML with a row for each check."""
    counts = Counter(str(each.state) for each in sorted(findings, key=lambda each: list(State).index(each.state)))
    project = os.environ.get("RETRAINING_PROJECT") or "no project"
    values = {"findings": findings, "counts": counts, "project": project, "asked_at": asked_at}
    return render_template("report/doctor.html.j2", **values)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--as-connection", is_flag=True, help="Ask as Airflow's connection, not with this machine's credentials.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), help="Write a page of it here too.")
@INCLUDE
@click.pass_obj
def diagnose(shell: Shell, include: Path | None, page: Path | None, *, as_connection: bool, as_json: bool) -> None:
    """Look for what is missing before the first run.

    Prints a line for each check: ok, wrong with what mends it, unknown with why, or hidden with why. It writes nothing
    and starts no job. The status is 1 where anything is wrong or unknown. MEMBER in a command is the account,
    `serviceAccount:…` or `user:…`.
    """
    with contextlib.redirect_stdout(sys.stderr):  # Airflow's warnings are no part of the answer
        findings = examine(Project(shell, include or shell.find_include(), as_connection=as_connection), CHECKS)
    if page is not None:
        page.write_text(render_page(findings, datetime.now(UTC)), encoding="utf-8")
    is_good = all(finding.state in PASSING for finding in findings)
    lines = [json.dumps([asdict(each) for each in findings])] if as_json else [each.line() for each in findings]
    print_answer(lines, is_good=is_good)

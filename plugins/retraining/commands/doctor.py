"""The command `doctor`: what is missing before the first run, found before anything is paid.

`CHECKS` is the table of what is looked at. No check writes anything; one that fails stops none of the others, and one
that depends on it says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

import click

from retraining.commands.check import known_quotas
from retraining.commands.shell import INCLUDE, Shell, attempt, known_error, print_answer
from retraining.core.catalog.amounts import require_quota
from retraining.core.catalog.hardware import load_hardware, require_machines
from retraining.core.catalog.model_check import all_jobs, check_model
from retraining.core.data.sql import Query
from retraining.core.errors import RetrainingError, SettingsError, SpecError
from retraining.core.naming import vertex
from retraining.core.planning import locations
from retraining.core.program import command_line
from retraining.core.settings import Settings
from retraining.core.spec.files import find_specs, load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.quotas import FILE as QUOTAS
from retraining.hooks.check_queries import check
from retraining.hooks.ports import CloudPort
from retraining.hooks.session import Session, is_refused, own_session
from retraining.operators.record.ownership import require_nobodys_bucket

ANY_MODEL = "retraining-doctor"
"""A model's name that nothing has: asking for it tells whether the service answers this account."""


class State(StrEnum):
    """What a check came to."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    """No answer that tells, or not asked because of an earlier one."""
    HIDDEN = "hidden"
    """The account may not look, and need not for a run."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check came to, and the command that mends it; empty: there is none, or nothing to mend."""

    check: str
    state: State
    text: str
    command: str = ""

    def line(self) -> str:
        """Return it as one line."""
        command = f" Mend it with: {self.command}" if self.command else ""
        return f"{self.state:<8} {self.check:<17} {self.text}{command}"


class Project:
    """What the checks look at: the cloud, and the models' files.

    Args:
        shell: Connects to the cloud when the first check asks.
        include: Folder with models and sql.
    """

    def __init__(self, shell: Shell, include: Path) -> None:
        self._shell = shell
        self.include = include
        self._cloud: CloudPort | None = None

    @property
    def cloud(self) -> CloudPort:
        """All services.

        Raises:
            SettingsError: The environment does not say where things are.
        """
        if self._cloud is None:
            self._cloud = self._shell.connect()
        return self._cloud

    @property
    def settings(self) -> Settings:
        """Where things are."""
        return self.cloud.settings

    @property
    def session(self) -> Session:
        """This machine's own credentials."""
        return own_session(self.settings.project, self.settings.region, self.settings.max_bytes_billed)

    def specs(self) -> list[ModelSpec]:
        """Return what each model's file says."""
        return [load_spec(path) for path in find_specs(self.include)]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing to look at.

    Args:
        name: First word of its line.
        look: Return what is well, or None where nobody tells; raise what is wrong.
        needs: Checks without whose `ok` this one cannot be made.
        create: Command where the hook or the check itself names what is wrong, or there is no such thing.
        grant: Command where the account may not look. In both stand settings in braces.
    """

    name: str
    look: Callable[[Project], str | None]
    needs: tuple[str, ...] = ()
    create: str = ""
    grant: str = ""


def look_at_settings(project: Project) -> str:
    """Read the environment's variables."""
    settings = project.settings
    return f"project {settings.project}, region {settings.region}, environment {settings.environment}"


def look_at_credentials(project: Project) -> str:
    """Find this machine's own credentials."""
    credentials = project.session.credentials
    account = getattr(credentials, "service_account_email", None) or "of this machine"
    return f"{account} ({type(credentials).__name__})"


def look_at_bucket(project: Project) -> str:
    """List in the bucket of documents."""
    return _list_in(project, project.settings.bucket)


def look_at_results_bucket(project: Project) -> str:
    """List in the bucket of what jobs write."""
    return _list_in(project, project.settings.results_bucket)


def _list_in(project: Project, bucket: str) -> str:
    project.cloud.artifacts.list_folders(f"gs://{bucket}/{ANY_MODEL}")
    return f"gs://{bucket} can be listed"


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
        where = f"dataset {settings.project}.{settings.dataset}"
        raise SettingsError(
            where, "none is there, or the account may not look at it", "one with roles/bigquery.dataEditor"
        )
    return f"{settings.dataset} is there, in {found}"


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
    return _of_each({path.stem: partial(check_model, path, project.include) for path in paths})


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


def _of_vertex(name: str, look: Callable[[Project], str]) -> Check:
    enable = "gcloud services enable aiplatform.googleapis.com --project={project}"
    return Check(name=name, look=look, needs=("credentials",), create=enable, grant=_PROJECT + "aiplatform.user")


CHECKS = (
    Check(name="settings", look=look_at_settings),
    Check(
        name="credentials",
        look=look_at_credentials,
        needs=("settings",),
        create="gcloud auth application-default login",
        grant="gcloud auth application-default login",
    ),
    Check(name="bucket", look=look_at_bucket, needs=("credentials",), create=_MAKE_BUCKET, grant=_BUCKET),
    Check(
        name="results-bucket",
        look=look_at_results_bucket,
        needs=("credentials",),
        create=_MAKE_BUCKET.replace("{bucket}", "{results_bucket}"),
        grant=_BUCKET.replace("{bucket}", "{results_bucket}"),
    ),
    Check(name="bucket-location", look=look_at_bucket_location, needs=("bucket", "results-bucket")),
    Check(name="owner", look=look_at_owner, needs=("bucket",), grant=_BUCKET),
    Check(
        name="dataset",
        look=look_at_dataset,
        needs=("credentials",),
        create="bq --location={region} mk --dataset {project}:{dataset}",
        grant="bq --location={region} mk --dataset {project}:{dataset}",
    ),
    Check(name="dataset-location", look=look_at_dataset_location, needs=("dataset",)),
    Check(name="encryption", look=look_at_encryption, needs=("credentials",)),
    Check(name="statements", look=look_at_statements, needs=("credentials",), create=_QUERIES + "bigquery.jobUser"),
    _of_vertex("jobs", look_at_jobs),
    _of_vertex("registry", look_at_registry),
    _of_vertex("endpoints", look_at_endpoints),
    Check(name="models", look=look_at_models),
    Check(name="machines", look=look_at_machines, needs=("settings", "models")),
    Check(name="quotas", look=look_at_quotas, needs=("settings", "models")),
    Check(name="queries", look=look_at_queries, needs=("statements", "models")),
)


def examine(project: Project, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """Return what each check came to, in their order."""
    found: dict[str, Finding] = {}
    for each in checks:
        found[each.name] = _make(each, project, found)
    return list(found.values())


def _make(each: Check, project: Project, earlier: Mapping[str, Finding]) -> Finding:
    blocked = [name for name in each.needs if earlier[name].state is not State.OK]
    if blocked:
        return Finding(check=each.name, state=State.UNKNOWN, text=f"not asked: needs {', '.join(blocked)}")
    text = attempt(partial(each.look, project))
    if isinstance(text, Exception):
        return _failed(each, project, text)
    if text is None:
        return Finding(check=each.name, state=State.HIDDEN, text="the account may not look, which no run needs")
    return Finding(check=each.name, state=State.OK, text=text)


def _failed(each: Check, project: Project, error: Exception) -> Finding:
    """Return what an error means: wrong where there is a way out, unknown where the service only gave no answer."""
    known = known_error(error)
    if known is None:
        text = f"no answer that tells: {type(error).__name__}: {error}"
        return Finding(check=each.name, state=State.UNKNOWN, text=text)
    is_own = isinstance(error, RetrainingError)  # of a check itself, which no role mends
    command = each.create if is_own or is_refused(error) else each.grant
    if command:
        settings = project.settings
        command = command.format_map({**asdict(settings), "query_project": settings.query_project or settings.project})
    return Finding(check=each.name, state=State.WRONG, text=str(known), command=command)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@INCLUDE
@click.pass_obj
def diagnose(shell: Shell, include: Path | None, *, as_json: bool) -> None:
    """Look for what is missing before the first run.

    Prints a line for each check: ok, wrong with what mends it, unknown with why, or hidden from this account. It writes
    nothing and starts no job. The status is 1 where anything is wrong or unknown. MEMBER in a command is the account,
    `serviceAccount:…` or `user:…`.
    """
    findings = examine(Project(shell, include or shell.find_include()))
    is_good = all(finding.state in (State.OK, State.HIDDEN) for finding in findings)
    lines = [json.dumps([asdict(each) for each in findings])] if as_json else [each.line() for each in findings]
    print_answer(lines, is_good=is_good)

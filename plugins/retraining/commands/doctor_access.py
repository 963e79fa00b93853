"""What `doctor` asks about accounts: APIs, a line for each documented role, images, and the clock.

The account that asks tells its own permissions by `testIamPermissions`, where the service has it. Of the jobs' account
and of Vertex AI's service agent policies tell, to who may read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from retraining.commands.diagnosis import (
    Check,
    MendableError,
    NotKnownError,
    Project,
    UnansweredError,
    disabled_api,
)
from retraining.commands.shell import attempt
from retraining.core.catalog.google_quotas import SERVICE, needs_of, shortage
from retraining.core.catalog.hardware import load_hardware
from retraining.core.catalog.model_check import all_jobs
from retraining.core.data.sql import Query
from retraining.core.errors import RetrainingError, SettingsError
from retraining.core.permissions import APIS, ROLES, Binding, NeededRole, is_bound
from retraining.core.spec.deployment import Container
from retraining.hooks.check_queries import check

_T = TypeVar("_T")

MOST_SKEW_S = 30
"""Seconds by which clocks may differ: leases and claims are dated by this machine's, tokens by Google's."""
_SHOWN = 3
_ON_SPOT = ("train", "tune")
_IMAGE = re.compile(
    r"(?P<location>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+\.[^/]+/[^/]+|[^/]+)/(?P<repository>[^/]+)"
    r"/(?P<package>[^:@]+)[:@](?P<version>.+)"
)
_MEMBER = "MEMBER"


def look_at_apis(project: Project) -> str:
    """Ask Service Usage which APIs are enabled."""
    missing = _allowed(
        lambda: project.access.disabled_apis(APIS), "which APIs are enabled", "serviceusage.serviceUsageViewer"
    )
    if missing:
        command = f"gcloud services enable {' '.join(missing)} --project={project.settings.project}"
        raise MendableError("APIs", f"not enabled: {', '.join(missing)}", "all of docs/composer.md", command)
    return f"{len(APIS)} are enabled"


def look_at_clock(project: Project) -> str:
    """Hold this machine's clock against that of Google's servers."""
    clock = project.cloud.clock
    before = clock.now()
    there = project.access.service_time()
    after = clock.now()
    skew = max((before - there).total_seconds() - 1, (there - after).total_seconds(), 0)
    if skew > MOST_SKEW_S:
        found = f"{skew:.0f} s away from Google's"
        raise MendableError("this machine's clock", found, f"{MOST_SKEW_S} s at most", "timedatectl set-ntp true")
    return f"this machine's is within {MOST_SKEW_S} s of Google's"


def look_at_images(project: Project) -> str:
    """Ask Artifact Registry for each image that is named."""
    from google.api_core import exceptions

    looked, hidden = [], []
    for image in _images(project):
        found = _IMAGE.fullmatch(image)
        if found is None:
            hidden.append(f"{image} is in no Artifact Registry")
            continue
        answer = attempt(partial(project.access.require_image, _repository(found), found["package"], found["version"]))
        if isinstance(answer, exceptions.NotFound):
            raise MendableError("Artifact Registry", f"no image {image}", "it to be there", f"docker push {image}")
        if isinstance(answer, exceptions.Forbidden) and disabled_api(answer) is None:
            hidden.append(f"{image}: the account may not look, which roles/artifactregistry.reader would let it")
        elif isinstance(answer, Exception):
            raise answer
        looked.append(image)
    if hidden:
        raise NotKnownError("; ".join(hidden))
    return f"{', '.join(looked)}: there" if looked else "no image of one's own is named"


def look_at_google_quotas(project: Project) -> str:
    """Hold each model's jobs against the quotas that Google gives the project in the region."""
    needed = dict(_needs(project))
    limits = {
        metric: _allowed(
            partial(project.access.quota_limit, SERVICE, metric),
            "the project's quotas",
            "serviceusage.serviceUsageViewer",
        )
        for metric in sorted({metric for needs in needed.values() for metric in needs})
    }
    if short := [f"{job} needs {found}" for job, needs in needed.items() if (found := shortage(needs, limits))]:
        command = f"open 'https://console.cloud.google.com/iam-admin/quotas?project={project.settings.project}'"
        raise MendableError(f"quotas of {project.settings.region}", "; ".join(short), "as much as a job needs", command)
    unknown = [metric.rpartition("_training_")[2] for metric, limit in limits.items() if limit is None]
    told = f"; not limited or known: {', '.join(unknown)}" if unknown else ""
    return f"{len(limits) - len(unknown)} suffice for {len(needed)} jobs{told}"


def _needs(project: Project) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each job of each model, and what it takes of Google's quotas; on spot machines it is another one."""
    hardware = load_hardware(project.include)
    for spec in project.specs():
        for task, groups in all_jobs(spec).items():
            yield f"the job {task} of {spec.name}", needs_of(groups, hardware)
            if spec.training.cluster.spot and task in _ON_SPOT:
                yield f"the job {task} of {spec.name} on spot machines", needs_of(groups, hardware, is_spot=True)


def _images(project: Project) -> list[str]:
    """Return every image that is named and not Google's own, each once."""
    settings, specs = project.settings, project.specs()
    containers = [spec.deployment.container for spec in specs if spec.deployment is not None]
    named = [
        settings.trainer_image,
        settings.serving_image,
        *(spec.training.runtime.image for spec in specs),
        *(container.image for container in containers if container is not None),
    ]
    return [image for image in dict.fromkeys(named) if image and not Container.is_prebuilt(image)]


def _repository(image: re.Match[str]) -> str:
    project = image["project"].replace("/", ":")
    return f"projects/{project}/locations/{image['location']}/repositories/{image['repository']}"


def look_at_role(role: NeededRole, project: Project) -> str:
    """Ask whether somebody has a role.

    Raises:
        MendableError: They have not.
        NotKnownError: Nobody tells this account.
    """
    if role.who == "connection":
        return _look_at_own(role, project)
    accounts = _accounts(role, project)
    for account, folder in accounts.items():
        _require_bound(role, account, folder, project)
    return f"{', '.join(accounts)}" if accounts else "no account of their own: jobs run as Vertex AI's"


def _look_at_own(role: NeededRole, project: Project) -> str:
    settings, access, permissions = project.settings, project.access, role.permissions
    if role.on == "sources":
        return _look_at_sources(role, project)
    if role.on == "dataset":
        return _look_at_tables(role, project)
    if role.on == "account":
        accounts = list(project.job_accounts())
        for account in accounts:
            _require(role, account, partial(access.missing_on_account, account, permissions), project)
        return f"on {', '.join(accounts)}" if accounts else "not needed: jobs run as Vertex AI's own account"
    if role.on == "project":
        payer = settings.query_project if role.role == "bigquery.jobUser" else None
        where = payer or settings.project
        _require(role, where, partial(access.missing_on_project, where, permissions), project)
        return f"on {where}"
    bucket = settings.bucket if role.on == "bucket" else settings.results_bucket
    _require(role, bucket, partial(access.missing_on_bucket, bucket, permissions), project)
    return f"on gs://{bucket}"


def _require(role: NeededRole, where: str, ask: Callable[[], Sequence[str]], project: Project) -> None:
    """Ask for what is missing, and say it with the command.

    Raises:
        MendableError: Something is.
        UnansweredError: The service does not know one of the permissions.
    """
    from google.api_core.exceptions import BadRequest

    try:
        missing = ask()
    except BadRequest as error:
        raise UnansweredError(f"{where} does not say who has roles/{role.role}: {error.message}") from error
    if not missing:
        return
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    found = f"the account has not {', '.join(missing[:_SHOWN])}{more}"
    raise MendableError(where, found, f"roles/{role.role}", grant(role, where, _MEMBER, project))


def _look_at_tables(role: NeededRole, project: Project) -> str:
    """Ask of a table that is there; of an empty dataset by the dry run of a statement that makes one."""
    from google.api_core.exceptions import Forbidden

    settings, access = project.settings, project.access
    command = grant(role, settings.dataset, _MEMBER, project)
    try:
        table = access.first_table(settings.dataset)
    except Forbidden as error:
        if disabled_api(error) is not None:
            raise
        found = "the account may not list its tables"
        raise MendableError(settings.dataset, found, f"roles/{role.role}", command) from error
    if table:
        ask = partial(access.missing_on_table, settings.dataset, table, role.permissions)
        _require(role, f"{settings.dataset}.{table}", ask, project)
        return f"on {settings.dataset}, asked of its table {table}"
    sql = f"CREATE TABLE `{settings.project}.{settings.dataset}.retraining_doctor` AS SELECT 1 AS one"
    try:
        project.cloud.warehouse.dry_run(Query(sql=sql), "a dry run that makes a table")
    except SettingsError as error:
        raise MendableError(settings.dataset, error.found, f"roles/{role.role}", command) from error
    return f"on {settings.dataset}, which has no table yet: it takes the dry run of a statement that makes one"


def _look_at_sources(role: NeededRole, project: Project) -> str:
    """Ask for a dry run of each model's queries; what else is wrong with one is another check's."""
    for spec in project.specs():
        answer = attempt(partial(check, spec, project.include, project.session))
        if isinstance(answer, SettingsError):
            command = grant(role, "DATASET", _MEMBER, project)
            raise MendableError(f"sources of {spec.name}", answer.found, f"roles/{role.role}", command) from answer
        if isinstance(answer, Exception) and not isinstance(answer, RetrainingError):
            raise answer
    return "on what the models' queries read"


def _accounts(role: NeededRole, project: Project) -> dict[str, str]:
    if role.who == "jobs":
        return project.job_accounts()
    number = _allowed(lambda: project.number, "the project's number", "browser")
    return {f"service-{number}@gcp-sa-aiplatform.iam.gserviceaccount.com": ""}


def _require_bound(role: NeededRole, account: str, folder: str, project: Project) -> None:
    bucket = project.settings.results_bucket
    beginning = f"projects/_/buckets/{bucket}/objects/{folder}" if role.on == "results-jobs" else ""
    name = f"roles/{role.role}"
    if any(is_bound(bindings(), name, account, beginning) for bindings in _policies(role, project)):
        return
    where = _place(role, project)
    found = f"no policy gives it to {account}"
    command = grant(role, where, f"serviceAccount:{account}", project)
    if beginning:
        command += f" '--condition=title=jobs,expression=resource.name.startsWith(\"{beginning}\")'"
    raise MendableError(where, found, name, command)


def _place(role: NeededRole, project: Project) -> str:
    settings = project.settings
    if role.on == "repository":
        found = _IMAGE.fullmatch(settings.trainer_image)
        if found is None:
            raise NotKnownError(f"{settings.trainer_image} is in no Artifact Registry")
        return _repository(found)
    places = {"project": settings.project, "dataset": settings.dataset, "bucket": settings.bucket}
    return places.get(role.on, settings.results_bucket)


def _policies(role: NeededRole, project: Project) -> list[Callable[[], list[Binding]]]:
    """Return what reads the policy of the place, and that of the project around it; each is read once."""
    place, access = _place(role, project), project.access
    asked: dict[str, Callable[[], list[Binding] | None]] = {
        "dataset": lambda: access.dataset_access(place),
        "repository": lambda: access.repository_policy(place),
        "bucket": lambda: access.bucket_policy(place),
        "results": lambda: access.bucket_policy(place),
        "results-jobs": lambda: access.bucket_policy(place),
    }
    readers = {place: asked[role.on]} if role.on in asked else {}
    readers[f"project {project.settings.project}"] = access.project_policy
    return [partial(_read_policy, reader, name, project) for name, reader in readers.items()]


def _read_policy(read: Callable[[], list[Binding] | None], name: str, project: Project) -> list[Binding]:
    if name not in project.policies:
        project.policies[name] = _allowed(read, f"the policy of {name}", "iam.securityReviewer")
    found = project.policies[name]
    if found is None:
        raise NotKnownError(f"the answer of {name} does not say who may what")
    return found


def grant(role: NeededRole, where: str, member: str, project: Project) -> str:
    """Return the command that gives a role to a member."""
    to, settings = f"--member={member} --role=roles/{role.role}", project.settings
    if role.on in ("dataset", "sources"):
        on = f"{settings.project}.{where.partition('.')[0]}"
        return f"bq query --nouse_legacy_sql 'GRANT `roles/{role.role}` ON SCHEMA `{on}` TO \"{member}\"'"
    if role.on == "account":
        return f"gcloud iam service-accounts add-iam-policy-binding {where} {to}"
    if role.on == "repository":
        _, _, _, location, _, name = where.split("/")
        return f"gcloud artifacts repositories add-iam-policy-binding {name} --location={location} {to}"
    if role.on == "project":
        return f"gcloud projects add-iam-policy-binding {where} {to}"
    return f"gcloud storage buckets add-iam-policy-binding gs://{where} {to}"


def _allowed(ask: Callable[[], _T], what: str, role: str) -> _T:
    """Return an answer that no run needs.

    Raises:
        NotKnownError: The account may not look.
    """
    from google.api_core.exceptions import Forbidden

    try:
        return ask()
    except Forbidden as error:
        if disabled_api(error) is not None:
            raise
        raise NotKnownError(f"the account may not see {what}; roles/{role} would let it") from error


_OWN_PLACES = {
    "dataset": ("dataset",),
    "bucket": ("bucket",),
    "results": ("results-bucket",),
    "results-jobs": ("results-bucket",),
}
STATEMENTS = "statements"
"""The check that BigQuery takes any."""


def role_check(role: NeededRole) -> Check:
    """Return the check of a role."""
    needs: tuple[str, ...] = ("credentials", *_OWN_PLACES.get(role.on, ()))
    if role.who == "jobs" or role.on in ("account", "sources"):
        needs += ("models",)
    if role.who == "connection" and role.on in ("dataset", "sources"):
        needs += (STATEMENTS,)
    if role.who == "connection" and role.on == "dataset":
        needs += ("dataset-location",)
    create = "gcloud iam service-accounts create NAME --project={project}" if role.on == "account" else ""
    return Check(name=role.name, look=partial(look_at_role, role), needs=needs, create=create)


PROJECT_ROLE_CHECKS = tuple(role_check(role) for role in ROLES if role.on == "project")
OTHER_ROLE_CHECKS = tuple(role_check(role) for role in ROLES if role.on != "project")
"""They come after `statements`, by which some of them ask."""

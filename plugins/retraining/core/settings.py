"""Where things are: the environment, read once into a frozen value. Nothing else reads `RETRAINING_*`.

Two folders hold files that are read: the package's own (`data_path`), and a team's models (`include_path`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path

from retraining.core.errors import SettingsError, suggest
from retraining.core.placement import LABEL_KEY, LABEL_VALUE, Placement, placement_problems, read_labels
from retraining.core.untyped import Foreign

PREFIX = "RETRAINING_"
IMAGE_PATTERN = r"[^\s/@]+/[^\s@]+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})"
"""An image by its tag, which may be moved to another one, or by its digest, which is that image for ever."""

EMAIL_PATTERN = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+"
CONNECTION_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}"
"""Id of an Airflow connection."""
STAGE_PATTERN = r"[a-z][a-z0-9_-]{0,39}"
"""Name of a stage: development, staging, production."""

PACKAGE_DATA = Path(__file__).resolve().parents[1] / "package_data"
"""What comes with the software: templates, contracts, prices, machines, containers."""

_DAYS_OF_MODEL = r"\s*([a-z][a-z0-9_]*=)?\d{4}-\d{2}-\d{2}/\d{4}-\d{2}-\d{2}\s*"
_ENDPOINT_OF_MODEL = r"[a-z][a-z0-9_]*=[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
SERVING_VERSION = "2.19.1"
"""Of TensorFlow Serving, the version that serves where no image is named."""


def _listed(value: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in value.split(",") if each.strip())


def _or_none(value: str) -> str | None:
    return value or None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One environment variable: its name, what it is, what it must look like, its default (None: required)."""

    variable: str
    description: str
    pattern: str
    example: str
    default: str | None
    read: Callable[[str], Foreign]


def _setting(
    description: str, pattern: str, example: str, default: str | None = None, read: Callable[[str], Foreign] = str
) -> Foreign:
    """Return a field of `Settings`, which has any type, read from the environment variable of its name."""
    about = {"description": description, "pattern": pattern, "example": example, "default": default, "read": read}
    return field(metadata=about) if default is None else field(default=read(default), metadata=about)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where things are; times in seconds. `service_account` None: the job runs as Vertex AI's own account.

    Where nothing names them, the environment is called as the bucket, results go there too, and the mirror serves.
    """

    project: str = _setting(
        "Google Cloud project that everything lives in", r"[a-z][a-z0-9.:-]{4,62}[a-z0-9]", "my-project"
    )
    region: str = _setting("Region of Vertex AI, the bucket and the dataset", r"[a-z]+-[a-z]+\d+", "us-central1")
    bucket: str = _setting(
        "Bucket for the runs' documents, shards and models, without gs://",
        r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]",
        "my-retraining",
    )
    results_bucket: str = _setting(
        "Bucket below whose folder jobs/ the jobs write, without gs://; empty: RETRAINING_BUCKET",
        r"([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])?",
        "my-retraining-results",
        default="",
    )
    dataset: str = _setting("BigQuery dataset for run tables and request logs", r"[A-Za-z0-9_]{1,1024}", "retraining")
    trainer_image: str = _setting(
        "Container image of the trainer, by digest or tag",
        IMAGE_PATTERN,
        "us-central1-docker.pkg.dev/my-project/retraining/trainer:0.2.0",
    )
    trainer_package: str | None = _setting(
        "Source distribution of the trainer (make sdist) for pre-built containers; empty: none",
        r"(gs://[a-z0-9][a-z0-9._-]*/\S+\.tar\.gz)?",
        "gs://my-retraining/packages/trainer-0.2.0.tar.gz",
        default="",
        read=_or_none,
    )
    serving_image: str = _setting(
        "TensorFlow Serving's image or a pre-built container; empty: the mirror in the project's registry",
        f"({IMAGE_PATTERN})?",
        "us-central1-docker.pkg.dev/my-project/retraining/tensorflow-serving:2.19.1",
        default="",
    )
    environment: str = _setting(
        "Name of this Airflow environment among those that share the project; empty: the bucket's name",
        r"([a-z0-9][a-z0-9._-]{0,221})?",
        "production",
        default="",
    )
    stage: str | None = _setting(
        "Stage of include/environments.yaml that this Airflow environment is; empty: none, the models are as written",
        rf"({STAGE_PATTERN})?",
        "production",
        default="",
        read=_or_none,
    )
    gcp_conn_id: str = _setting(
        "Airflow connection that says who calls Google Cloud",
        r"\S+",
        "google_cloud_default",
        default="google_cloud_default",
    )
    service_account: str | None = _setting(
        "Service account the jobs run as; empty: Vertex AI's own",
        r"([^@\s]+@[^@\s]+)?",
        "trainer@my-project.iam.gserviceaccount.com",
        default="",
        read=_or_none,
    )
    max_bytes_billed: int = _setting(
        "Bytes that one statement on BigQuery may read; a larger one is refused before it costs anything",
        r"[1-9]\d{6,17}",
        "1000000000000",
        default="10000000000000",
        read=int,
    )
    wake_interval_s: int = _setting(
        "Seconds a waiting task sleeps, without a worker slot, between two looks at its job",
        r"[1-9]\d{0,4}",
        "60",
        default="60",
        read=int,
    )
    watch_s: int = _setting(
        "Seconds a task watches its job in one wake before it gives its slot back",
        r"\d{1,5}",
        "10",
        default="10",
        read=int,
    )
    notify_owners: tuple[str, ...] = _setting(
        "E-mail addresses, with commas, of who is told of models that name no owners; empty: nobody",
        f"({EMAIL_PATTERN}(\\s*,\\s*{EMAIL_PATTERN})*)?",
        "ml-team@example.com",
        default="",
        read=_listed,
    )
    notify_channels: tuple[str, ...] = _setting(
        "Airflow connections, with commas, of the webhooks that are told of models that name none",
        f"({CONNECTION_PATTERN}(\\s*,\\s*{CONNECTION_PATTERN})*)?",
        "slack_retraining",
        default="",
        read=_listed,
    )
    notify_smtp_conn_id: str = _setting(
        "Airflow connection of the mail server", CONNECTION_PATTERN, "smtp_default", default="smtp_default"
    )
    tracking: tuple[str, ...] = _setting(
        "Experiment trackers, with a comma, that every run is shown in, vertex and mlflow; empty: none",
        r"((vertex|mlflow)(\s*,\s*(vertex|mlflow))*)?",
        "vertex,mlflow",
        default="",
        read=_listed,
    )
    tensorboard: str | None = _setting(
        "Vertex AI TensorBoard in which the runs of the tracker vertex have their epochs; empty: they have none",
        r"(projects/[^/\s]+/locations/[a-z0-9-]+/tensorboards/\d+)?",
        "projects/my-project/locations/us-central1/tensorboards/1234567890123456789",
        default="",
        read=_or_none,
    )
    mlflow_connection: str = _setting(
        "Airflow connection of the MLflow tracking server",
        CONNECTION_PATTERN,
        "mlflow_default",
        default="mlflow_default",
    )
    runbook_url: str | None = _setting(
        "Address of docs/operations.md as people read it, for messages to link to; empty: they name it",
        r"(https?://\S+)?",
        "https://git.example.com/retraining/docs/operations.md",
        default="",
        read=_or_none,
    )
    data_days: str = _setting(
        "First and last day of a model's data that ended, for models without data.days; empty: none",
        rf"({_DAYS_OF_MODEL}(,{_DAYS_OF_MODEL})*)?",
        "flight_delays=2013-01-01/2013-12-31",
        default="",
    )
    encryption_key: str | None = _setting(
        "Cloud KMS key of the jobs, models, endpoints and pools of machines; empty: Google's keys",
        r"(projects/[^/\s]+/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63})?",
        "projects/my-keys/locations/us-central1/keyRings/retraining/cryptoKeys/retraining",
        default="",
        read=_or_none,
    )
    network: str | None = _setting(
        "VPC network that jobs and pools of machines are peered with, by its project's number; empty: none",
        r"(projects/\d+/global/networks/[a-z]([a-z0-9-]{0,61}[a-z0-9])?)?",
        "projects/123456789012/global/networks/my-network",
        default="",
        read=_or_none,
    )
    reserved_ranges: tuple[str, ...] = _setting(
        "Names, with commas, of that network's allocated ranges that machines take their addresses from; empty: any",
        r"([a-z][a-z0-9-]{0,62}(\s*,\s*[a-z][a-z0-9-]{0,62})*)?",
        "vertex-ai-range",
        default="",
        read=_listed,
    )
    network_attachment: str | None = _setting(
        "Network attachment of Private Service Connect, by which jobs and pools reach a network instead; empty: none",
        r"(projects/[^/\s]+/regions/[a-z0-9-]+/networkAttachments/[a-z]([a-z0-9-]{0,61}[a-z0-9])?)?",
        "projects/my-project/regions/us-central1/networkAttachments/retraining",
        default="",
        read=_or_none,
    )
    endpoint_network: str | None = _setting(
        "VPC network, by its project's id, in which endpoints answer, and nowhere else; empty: at public addresses",
        r"(projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/global/networks/[a-z]([a-z0-9-]{0,61}[a-z0-9])?)?",
        "projects/my-project/global/networks/my-network",
        default="",
        read=_or_none,
    )
    endpoint_ids: tuple[tuple[str, str], ...] = _setting(
        "Ids, with commas, of endpoints that somebody else makes, by model; others are made, of their model's name",
        rf"({_ENDPOINT_OF_MODEL}(\s*,\s*{_ENDPOINT_OF_MODEL})*)?",
        "flight_delays=flights-prod,late=1234567890123",
        default="",
        read=read_labels,
    )
    labels: tuple[tuple[str, str], ...] = _setting(
        "Labels, with commas, of everything that is made and of statements on BigQuery; empty: none",
        rf"({LABEL_KEY}={LABEL_VALUE}(\s*,\s*{LABEL_KEY}={LABEL_VALUE})*)?",
        "cost_center=4711,team=growth",
        default="",
        read=read_labels,
    )
    query_project: str | None = _setting(
        "Project that statements on BigQuery run in, and which pays for them; empty: RETRAINING_PROJECT",
        r"([a-z][a-z0-9.:-]{4,62}[a-z0-9])?",
        "my-queries",
        default="",
        read=_or_none,
    )
    reservation: str | None = _setting(
        "Reservation of BigQuery that statements take their slots from; empty: as the project has it",
        r"(projects/[^/\s]+/locations/[A-Za-z0-9-]+/reservations/[a-z][a-z0-9-]{0,63})?",
        "projects/my-slots/locations/us-central1/reservations/retraining",
        default="",
        read=_or_none,
    )
    include: str = _setting(
        "Folder with models and sql; empty: dags/include beside plugins, or include beside dags",
        r"\S(.*\S)?|",
        "/home/airflow/gcs/dags/include",
        default="",
    )

    def __post_init__(self) -> None:
        derived = {
            "results_bucket": self.bucket,
            "environment": self.bucket,
            "serving_image": mirrored_image(self.project, self.region),
        }
        for name, value in derived.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)

    @property
    def placement(self) -> Placement:
        """What everything that is made carries."""
        values = {each.name: getattr(self, each.name) for each in fields(Placement)}
        return Placement(**{**values, "labels": dict(self.labels)})


SETTINGS: dict[str, Setting] = {
    each.name: Setting(variable=PREFIX + each.name.upper(), **each.metadata) for each in fields(Settings)
}


def load(environ: Mapping[str, str]) -> Settings:
    """Read and check the settings.

    Args:
        environ: The process's environment.

    Raises:
        SettingsError: One is missing, malformed, or misspelt; the message has all findings.
    """
    values, findings = _read(environ)
    found = None if findings else Settings(**{name: SETTINGS[name].read(value) for name, value in values.items()})
    findings += [*placement_problems(found.placement, found.region), *_tracking_problems(found)] if found else []
    if found is None or findings:
        raise SettingsError(
            "environment",
            "; ".join(findings),
            "every variable with a fitting value",
            "Set them in Composer's environment variables, or locally with: python -m localcloud env",
        )
    return found


def _tracking_problems(found: Settings) -> list[str]:
    """Return what is wrong with settings of trackers that are well-formed each."""
    if found.tensorboard is None:
        return []
    variable, region = SETTINGS["tensorboard"].variable, found.tensorboard.split("/")[3]
    problems = []
    if "vertex" not in found.tracking:
        problems.append(f"{variable} is set, but {SETTINGS['tracking'].variable} does not name vertex")
    if region != found.region:
        problems.append(f"{variable} is in {region}; expected the region of the experiments, {found.region}")
    return problems


def mirrored_image(project: str, region: str) -> str:
    """Return TensorFlow Serving's image in the project's Artifact Registry."""
    return f"{region}-docker.pkg.dev/{project.replace(':', '/')}/retraining/tensorflow-serving:{SERVING_VERSION}"


def data_days(environ: Mapping[str, str], model: str) -> tuple[date, date] | None:
    """Return the first and the last day of a model's data that ended, for a model whose spec does not say it.

    None: data goes on, and schedules tick. `RETRAINING_DATA_DAYS` names models, `flight_delays=2013-01-01/2013-12-31`;
    days without a name are those of all others, which is deprecated: another one's own data may go on. What belongs to
    no model (`model` is empty) rests where anything ended.

    For DAG files, which must not fail for a malformed value: that is taken for none here and refused by `load`.
    """
    found: dict[str, tuple[date, date]] = {}
    for entry in environ.get(SETTINGS["data_days"].variable, "").split(","):
        name, _, days = entry.strip().rpartition("=")
        first, _, last = days.partition("/")
        try:
            found[name] = date.fromisoformat(first), date.fromisoformat(last)
        except ValueError:
            continue
    return found.get(model, found.get("")) if model else next(iter(found.values()), None)


def _read(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the well-formed values by name, and a finding for each variable that is not."""
    findings: list[str] = []
    values: dict[str, str] = {}
    for name, setting in SETTINGS.items():
        value = environ.get(setting.variable, "").strip() or setting.default
        if value is None:
            findings.append(f"{setting.variable} is not set ({setting.description}; for example {setting.example})")
        elif not re.fullmatch(setting.pattern, value):
            findings.append(f"{setting.variable} is {value!r}; expected something like {setting.example!r}")
        else:
            values[name] = value
    variables = [setting.variable for setting in SETTINGS.values()]
    for variable in sorted(set(environ) - set(variables)):
        if variable.startswith(PREFIX) and (hint := suggest(variable, variables)):
            findings.append(f"{variable} is not a setting. {hint}")
    return values, findings


def stage_name(environ: Mapping[str, str] = os.environ) -> str:
    """Return the stage that this Airflow environment is, as it is written; empty: none.

    Args:
        environ: The process's environment: models' files are read where nothing has read the settings.
    """
    return environ.get(SETTINGS["stage"].variable, "").strip()


def as_written(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of all settings that are set, unread.

    Args:
        environ: The process's environment: models' files are read where nothing has read the settings.
    """
    return {each.variable: environ[each.variable] for each in SETTINGS.values() if each.variable in environ}


def include_path(root: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder with models, sql, pools, quotas.yaml, budgets.yaml, environments.yaml, teams.yaml.

    `RETRAINING_INCLUDE` names it, from the working folder if it is relative. Without it: inside `dags` in Composer's
    bundle, beside it in the checkout.

    Args:
        root: Folder that holds `dags` and `plugins`; by default the one this file is installed in.
        environ: The process's environment: DAG files ask before anything has read the settings.

    Raises:
        SettingsError: It is at neither place, or has neither `models` nor `teams.yaml`.
    """
    variable = SETTINGS["include"].variable
    if named := environ.get(variable, "").strip():
        if _has_models(Path(named)):
            return Path(named).resolve()
        raise SettingsError(variable, f"no folder models in {named!r}", "a folder with models and sql", "Correct it")
    root = root or Path(__file__).resolve().parents[3]
    for path in (root / "dags" / "include", root / "include"):
        if _has_models(path):
            return path
    raise SettingsError(
        str(root),
        "no include/models",
        "it in dags/include (bundle) or beside dags (checkout)",
        f"Set {variable} to the folder that holds models and sql; `retraining init DIR` makes one",
    )


def _has_models(path: Path) -> bool:
    return (path / "models").is_dir() or (path / "teams.yaml").is_file()


def data_path(name: str, include: Path | None = None) -> Path:
    """Return a file or folder of the software's own, `templates`; a team's file of that name in `include` comes first.

    Args:
        name: Its path below `package_data`.
        include: Where a team may have put its own; None: nothing takes its place.
    """
    own = include / name if include else None
    return own if own is not None and own.exists() else PACKAGE_DATA / name

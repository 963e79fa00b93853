"""Where things are: the environment, read once into a frozen value. Nothing else reads `RETRAINING_*`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from retraining.core.errors import SettingsError
from retraining.core.suggestions import suggest

PREFIX = "RETRAINING_"
IMAGE_PATTERN = r"[^\s/@]+/[^\s@]+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})"
"""An image by its tag, which may be moved to another one, or by its digest, which is that image for ever."""

EMAIL_PATTERN = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+"
CONNECTION_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}"
"""Id of an Airflow connection."""

_DAYS_OF_MODEL = r"\s*([a-z][a-z0-9_]*=)?\d{4}-\d{2}-\d{2}/\d{4}-\d{2}-\d{2}\s*"

SERVING_VERSION = "2.19.1"
"""Of TensorFlow Serving, the version that serves where no image is named."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One environment variable: its name, what it is, what it must look like, its default (None: required)."""

    variable: str
    description: str
    pattern: str
    example: str
    default: str | None = None


SETTINGS: dict[str, Setting] = {
    "project": Setting(
        variable="RETRAINING_PROJECT",
        description="Google Cloud project that everything lives in",
        pattern=r"[a-z][a-z0-9.:-]{4,62}[a-z0-9]",
        example="my-project",
    ),
    "region": Setting(
        variable="RETRAINING_REGION",
        description="Region of Vertex AI, the bucket and the dataset",
        pattern=r"[a-z]+-[a-z]+\d+",
        example="us-central1",
    ),
    "bucket": Setting(
        variable="RETRAINING_BUCKET",
        description="Bucket for the runs' documents, shards and models, without gs://",
        pattern=r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]",
        example="my-retraining",
    ),
    "results_bucket": Setting(
        variable="RETRAINING_RESULTS_BUCKET",
        description="Bucket below whose folder jobs/ the jobs write, without gs://; empty: RETRAINING_BUCKET",
        pattern=r"([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])?",
        example="my-retraining-results",
        default="",
    ),
    "dataset": Setting(
        variable="RETRAINING_DATASET",
        description="BigQuery dataset for run tables and request logs",
        pattern=r"[A-Za-z0-9_]{1,1024}",
        example="retraining",
    ),
    "trainer_image": Setting(
        variable="RETRAINING_TRAINER_IMAGE",
        description="Container image of the trainer, by digest or tag",
        pattern=IMAGE_PATTERN,
        example="us-central1-docker.pkg.dev/my-project/retraining/trainer:0.2.0",
    ),
    "trainer_package": Setting(
        variable="RETRAINING_TRAINER_PACKAGE",
        description="Source distribution of the trainer (make sdist) for pre-built containers; empty: none",
        pattern=r"(gs://[a-z0-9][a-z0-9._-]*/\S+\.tar\.gz)?",
        example="gs://my-retraining/packages/trainer-0.2.0.tar.gz",
        default="",
    ),
    "serving_image": Setting(
        variable="RETRAINING_SERVING_IMAGE",
        description="TensorFlow Serving's image or a pre-built container; empty: the mirror in the project's registry",
        pattern=f"({IMAGE_PATTERN})?",
        example="us-central1-docker.pkg.dev/my-project/retraining/tensorflow-serving:2.19.1",
        default="",
    ),
    "environment": Setting(
        variable="RETRAINING_ENVIRONMENT",
        description="Name of this Airflow environment among those that share the project; empty: the bucket's name",
        pattern=r"([a-z0-9][a-z0-9._-]{0,221})?",
        example="production",
        default="",
    ),
    "gcp_conn_id": Setting(
        variable="RETRAINING_GCP_CONN_ID",
        description="Airflow connection that says who calls Google Cloud",
        pattern=r"\S+",
        example="google_cloud_default",
        default="google_cloud_default",
    ),
    "service_account": Setting(
        variable="RETRAINING_SERVICE_ACCOUNT",
        description="Service account the jobs run as; empty: Vertex AI's own",
        pattern=r"([^@\s]+@[^@\s]+)?",
        example="trainer@my-project.iam.gserviceaccount.com",
        default="",
    ),
    "max_bytes_billed": Setting(
        variable="RETRAINING_MAX_BYTES_BILLED",
        description="Bytes that one statement on BigQuery may read; a larger one is refused before it costs anything",
        pattern=r"[1-9]\d{6,17}",
        example="1000000000000",
        default="10000000000000",
    ),
    "wake_interval_s": Setting(
        variable="RETRAINING_WAKE_INTERVAL_S",
        description="Seconds a waiting task sleeps, without a worker slot, between two looks at its job",
        pattern=r"[1-9]\d{0,4}",
        example="60",
        default="60",
    ),
    "watch_s": Setting(
        variable="RETRAINING_WATCH_S",
        description="Seconds a task watches its job in one wake before it gives its slot back",
        pattern=r"\d{1,5}",
        example="10",
        default="10",
    ),
    "notify_owners": Setting(
        variable="RETRAINING_NOTIFY_OWNERS",
        description="E-mail addresses, with commas, of who is told of models that name no owners; empty: nobody",
        pattern=f"({EMAIL_PATTERN}(\\s*,\\s*{EMAIL_PATTERN})*)?",
        example="ml-team@example.com",
        default="",
    ),
    "notify_channels": Setting(
        variable="RETRAINING_NOTIFY_CHANNELS",
        description="Airflow connections, with commas, of the webhooks that are told of models that name none",
        pattern=f"({CONNECTION_PATTERN}(\\s*,\\s*{CONNECTION_PATTERN})*)?",
        example="slack_retraining",
        default="",
    ),
    "notify_smtp_conn_id": Setting(
        variable="RETRAINING_NOTIFY_SMTP_CONN_ID",
        description="Airflow connection of the mail server",
        pattern=CONNECTION_PATTERN,
        example="smtp_default",
        default="smtp_default",
    ),
    "runbook_url": Setting(
        variable="RETRAINING_RUNBOOK_URL",
        description="Address of docs/operations.md as people read it, for messages to link to; empty: they name it",
        pattern=r"(https?://\S+)?",
        example="https://git.example.com/retraining/docs/operations.md",
        default="",
    ),
    "data_days": Setting(
        variable="RETRAINING_DATA_DAYS",
        description="First and last day of a model's data that ended, for models without data.days; empty: none",
        pattern=rf"({_DAYS_OF_MODEL}(,{_DAYS_OF_MODEL})*)?",
        example="flight_delays=2013-01-01/2013-12-31",
        default="",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of `SETTINGS`; times in seconds. `service_account` None: the job runs as Vertex AI's own account.

    `results_bucket` is `bucket` where none is named.
    """

    project: str
    region: str
    bucket: str
    dataset: str
    trainer_image: str
    trainer_package: str | None
    serving_image: str
    environment: str
    gcp_conn_id: str
    service_account: str | None
    max_bytes_billed: int
    wake_interval_s: int
    watch_s: int
    results_bucket: str = ""
    notify_owners: tuple[str, ...] = ()
    notify_channels: tuple[str, ...] = ()
    notify_smtp_conn_id: str = "smtp_default"
    runbook_url: str | None = None

    def __post_init__(self) -> None:
        if not self.results_bucket:
            object.__setattr__(self, "results_bucket", self.bucket)


def load(environ: Mapping[str, str]) -> Settings:
    """Read and check the settings.

    Args:
        environ: The process's environment.

    Raises:
        SettingsError: One is missing, malformed, or misspelt; the message has all findings.
    """
    values, findings = _read(environ)
    if findings:
        raise SettingsError(
            "environment",
            "; ".join(findings),
            "every variable with a fitting value",
            "Set them in Composer's environment variables, or locally with: python -m localcloud env",
        )
    return Settings(
        project=values["project"],
        region=values["region"],
        bucket=values["bucket"],
        results_bucket=values["results_bucket"],
        dataset=values["dataset"],
        trainer_image=values["trainer_image"],
        trainer_package=values["trainer_package"] or None,
        serving_image=values["serving_image"] or mirrored_image(values["project"], values["region"]),
        environment=values["environment"] or values["bucket"],
        gcp_conn_id=values["gcp_conn_id"],
        service_account=values["service_account"] or None,
        max_bytes_billed=int(values["max_bytes_billed"]),
        wake_interval_s=int(values["wake_interval_s"]),
        watch_s=int(values["watch_s"]),
        notify_owners=_listed(values["notify_owners"]),
        notify_channels=_listed(values["notify_channels"]),
        notify_smtp_conn_id=values["notify_smtp_conn_id"],
        runbook_url=values["runbook_url"] or None,
    )


def _listed(value: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in value.split(",") if each.strip())


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


def include_path(root: Path | None = None) -> Path:
    """Return the folder `include`: inside `dags` in Composer's bundle, beside it in the checkout.

    Args:
        root: Folder that holds `dags` and `plugins`; by default the one this file is installed in.

    Raises:
        SettingsError: It is at neither place.
    """
    root = root or Path(__file__).resolve().parents[3]
    for path in (root / "dags" / "include", root / "include"):
        if (path / "models").is_dir():
            return path
    raise SettingsError(
        str(root), "no include/models", "it in dags/include (bundle) or beside dags (checkout)", "Run make bundle"
    )

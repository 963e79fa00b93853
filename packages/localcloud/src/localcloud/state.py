"""What a local cloud keeps on disk, and where: one directory holds everything, so that a restart loses nothing.

In: a state directory. Out: paths inside it, the remembered ports, and the lock that lets one `up` own it.

    state.json       project, further projects, region, bucket, ports
    config.json      what `up --config` was given
    lock             held (flock) by the running `up`; its pid is written inside
    authority.pem    certificate of the gateway's own authority (the same for life: clients cache it)
    credentials.json made-up service-account key; accounts/ has those of other accounts
    token.key        signs the access tokens that are given out
    sockets/         where the servers listen, for the gateway alone
    bucket-owners.json which buckets belong to further projects
    disabled-services.json the APIs that a project has not enabled; quota-overrides.json what lowers its quotas
    bigquery/ storage/ storage.sqlite vertex/ logs.sqlite faults.sqlite iam.json gcloud/ server-logs/

The directory is its owner's alone (mode 0700): who reads it may use this cloud.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from localcloud.errors import LocalCloudError

PROJECT = "local-project"
REGION = "us-central1"
BUCKET = "local-bucket"
DEFAULT_STATE_PATH = Path("build/localcloud")
OWNER_ONLY = 0o700
KEPT = frozenset(
    (
        "state.json",
        "config.json",
        "lock",
        "authority.pem",
        "authority.key",
        "credentials.json",
        "accounts",
        "token.key",
        "sockets",
        "gcloud",
        "server-logs",
    )
)
"""What `reset` leaves: how clients find and trust this cloud, and what its servers said."""
_SOCKET_PATH_BYTES = 100  # the kernel takes 107; leaves room for the longest name


def state_path_from(environ: dict[str, str] | os._Environ[str]) -> Path:
    """Return the state directory: LOCALCLOUD_STATE, else build/localcloud under the working directory."""
    return Path(environ.get("LOCALCLOUD_STATE") or DEFAULT_STATE_PATH).absolute()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What clients must know to reach this cloud; written to state.json by `up`."""

    project: str = PROJECT
    region: str = REGION
    bucket: str = BUCKET
    gateway_host: str = "127.0.0.1"
    other_projects: list[str] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """The layout of one state directory."""

    path: Path

    @property
    def settings_path(self) -> Path:
        """state.json: project, region, bucket, ports."""
        return self.path / "state.json"

    @property
    def config_path(self) -> Path:
        """config.json: what `up --config` was given; there is no such file where it was given none."""
        return self.path / "config.json"

    @property
    def lock_path(self) -> Path:
        """The file whose flock belongs to the running `up`."""
        return self.path / "lock"

    @property
    def ready_path(self) -> Path:
        """A file that exists while the running `up` is ready."""
        return self.path / "ready"

    @property
    def authority_path(self) -> Path:
        """Certificate (PEM) of the gateway's authority: the only root that clients must trust."""
        return self.path / "authority.pem"

    @property
    def authority_key_path(self) -> Path:
        """Private key (PEM) of the gateway's authority."""
        return self.path / "authority.key"

    @property
    def key_path(self) -> Path:
        """The made-up service-account key, for GOOGLE_APPLICATION_CREDENTIALS."""
        return self.path / "credentials.json"

    @property
    def logs_path(self) -> Path:
        """The SQLite file of Cloud Logging."""
        return self.path / "logs.sqlite"

    @property
    def measurements_path(self) -> Path:
        """The SQLite file of Cloud Monitoring."""
        return self.path / "measurements.sqlite"

    @property
    def faults_path(self) -> Path:
        """The SQLite file of the faults in force, which every server reads."""
        return self.path / "faults.sqlite"

    @property
    def iam_path(self) -> Path:
        """The IAM table in force, which every server reads; there is no such file while everybody may all."""
        return self.path / "iam.json"

    @property
    def storage_path(self) -> Path:
        """The SQLite file with the attributes of objects and buckets."""
        return self.path / "storage.sqlite"

    def directory(self, name: str) -> Path:
        """Return the directory of one service (bigquery, storage, vertex, gcloud, server-logs), made if missing."""
        path = self.path / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def socket_path(self, server: str) -> Path:
        """Return the unix socket that a server listens on: in this directory, or, where that is too long, beside it.

        Raises:
            LocalCloudError: the directory that stands in for it is not ours alone.
        """
        directory = self.path / "sockets"
        if len(os.fsencode(directory / "longest_server_name")) > _SOCKET_PATH_BYTES:
            name = hashlib.sha256(os.fsencode(self.path.absolute())).hexdigest()[:16]
            directory = Path(tempfile.gettempdir()) / f"localcloud-{os.getuid()}-{name}"
        if not directory.exists():
            directory.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        return _owned(directory) / server

    def clear(self) -> None:
        """Remove all that clients made: tables, objects, models, jobs, logs, faults, roles; its servers are ended."""
        for path in self.path.iterdir():
            if path.name not in KEPT:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def token_key(self) -> bytes:
        """Return the key that signs access tokens, made on first use (file mode 0600)."""
        path = self.path / "token.key"
        if not path.exists():
            temporary = path.with_name(f"token.{os.getpid()}.new")
            temporary.touch(mode=0o600)
            temporary.write_text(secrets.token_hex(32))
            with suppress(FileExistsError):
                os.link(temporary, path)  # of two at once the first one's key stays
            temporary.unlink()
        return bytes.fromhex(path.read_text())

    def server_log_path(self, server: str) -> Path:
        """Return the file that takes a server's standard output and error."""
        return self.directory("server-logs") / f"{server}.log"

    def read_settings(self) -> Settings:
        """Read state.json.

        Raises:
            LocalCloudError: no local cloud was ever started in this directory.
        """
        try:
            document = json.loads(self.settings_path.read_bytes())
        except FileNotFoundError:
            raise LocalCloudError(
                str(self.path),
                found="no local cloud has been started here (state.json is missing)",
                expected="a state directory of `localcloud up`",
                way_out="Start it first, or name its directory with --state or LOCALCLOUD_STATE",
            ) from None
        known = {each.name for each in fields(Settings)}  # an older local cloud may have written more
        return Settings(**{name: value for name, value in document.items() if name in known})

    def write_settings(self, settings: Settings) -> None:
        """Write state.json in one step (a reader never sees half of it)."""
        temporary = self.settings_path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(settings), indent=2, sort_keys=True) + "\n")
        temporary.replace(self.settings_path)

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Own this directory until the block ends; the kernel frees the lock even after SIGKILL.

        Raises:
            LocalCloudError: another `up` owns it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(OWNER_ONLY)
        with self.lock_path.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LocalCloudError(
                    str(self.path),
                    found=f"a local cloud is already running on this directory (pid {self._written_pid()})",
                    expected="one local cloud per state directory",
                    way_out="Use the running one (`localcloud env`), end it with `localcloud down`,"
                    " or give this one another --state",
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield

    def running_pid(self) -> int | None:
        """Return the pid of the `up` that owns this directory, or None when nobody does."""
        try:
            with self.lock_path.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._written_pid()
        except FileNotFoundError:
            return None
        return None

    def require_running(self) -> None:
        """Refuse where no local cloud is running.

        Raises:
            LocalCloudError: nobody owns this directory.
        """
        if self.running_pid() is None:
            raise LocalCloudError(
                str(self.path),
                found="the local cloud is not running",
                expected="a running one",
                way_out="Start it with `localcloud up` (in another terminal)",
            )

    def _written_pid(self) -> int | None:
        text = self.lock_path.read_text().strip()
        return int(text) if text.isdigit() else None


def _owned(directory: Path) -> Path:
    """Return a directory that nobody else can reach into."""
    status = directory.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o777 != OWNER_ONLY:
        raise LocalCloudError(
            str(directory),
            found=f"owned by user {status.st_uid}, mode {status.st_mode & 0o7777:o}",
            expected=f"a directory of user {os.getuid()} with mode 700",
            way_out="Remove it, or give the local cloud a shorter --state, whose own folder then holds its sockets",
        )
    return directory

"""What `doctor` is made of: a project, checks of it, and what each comes to.

No check writes anything; one that fails stops none of the others, and one that depends on it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path

from retraining.commands.shell import Shell, attempt, known_error
from retraining.core.errors import RetrainingError, SettingsError
from retraining.core.permissions import ROLES, Binding
from retraining.core.settings import Settings
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import find_specs
from retraining.hooks.access import Access
from retraining.hooks.cloud import Cloud
from retraining.hooks.ports import CloudPort
from retraining.hooks.session import Session, is_refused, own_session


class State(StrEnum):
    """What a check came to."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    """No answer that tells, or not asked because of an earlier one."""
    HIDDEN = "hidden"
    """It cannot be known here, by this account or on this machine; the line says why. No run needs the answer."""


PASSING = (State.OK, State.HIDDEN)
_LONGEST_NAME = max(len(role.name) for role in ROLES)


class NotKnownError(Exception):
    """A check has no answer; the text says why, and what would give one."""


class UnansweredError(Exception):
    """A service was asked what it does not understand; the text says what. No role mends it."""


class MendableError(SettingsError):
    """Something is wrong, and a command mends it.

    Args:
        where: What it is about.
        found: What is there.
        expected: What should be there.
        command: For a shell.
    """

    def __init__(self, where: str, found: str, expected: str, command: str) -> None:
        super().__init__(where, found, expected)
        self.command = command


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
        return f"{self.state:<8} {self.check:<{_LONGEST_NAME}} {self.text}{command}"


class Project:
    """What the checks look at: the cloud, the models' files, and this machine.

    Args:
        shell: Connects to the cloud when the first check asks.
        include: Folder with models and sql.
        as_connection: Whether to ask as Airflow's connection, in the place of this machine's own credentials.

    Attributes:
        policies: Those that were read, by what they are of; None: the answer does not have it.
    """

    def __init__(self, shell: Shell, include: Path, *, as_connection: bool = False) -> None:
        self._shell = shell
        self._as_connection = as_connection
        self.include = include
        self.policies: dict[str, list[Binding] | None] = {}

    @cached_property
    def cloud(self) -> CloudPort:
        """All services.

        Raises:
            SettingsError: The environment does not say where things are.
        """
        return Cloud() if self._as_connection else self._shell.connect()

    @property
    def settings(self) -> Settings:
        """Where things are."""
        return self.cloud.settings

    @cached_property
    def session(self) -> Session:
        """The credentials that everything is asked with."""
        settings = self.settings
        if isinstance(self.cloud, Cloud) and self._as_connection:
            return self.cloud.session
        return own_session(settings.project, settings.region, settings.max_bytes_billed)

    @cached_property
    def access(self) -> Access:
        """Questions about permissions, APIs and images."""
        return Access(self.session)

    @cached_property
    def number(self) -> str:
        """The project's number."""
        return self.access.project_number()

    @property
    def caller(self) -> str:
        """How the credentials came."""
        return f"the connection {self.settings.gcp_conn_id}" if self._as_connection else "this machine's own"

    def specs(self) -> list[ModelSpec]:
        """Return what each model's file says."""
        return [load_spec(path) for path in find_specs(self.include)]

    def job_accounts(self) -> dict[str, str]:
        """Return the accounts that jobs run as, each with the folder below which it writes: of all, or of a model."""
        accounts = {self.settings.service_account: "jobs/"} if self.settings.service_account else {}
        own = {spec.service_account: f"jobs/{spec.name}/" for spec in self.specs() if spec.service_account}
        return {**own, **accounts}


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing to look at.

    Args:
        name: First word of its line.
        look: Return what is well, or None where the account may not look; raise what is wrong.
        needs: Checks that must not have failed for this one to be made.
        create: Command where the hook or the check itself names what is wrong, or there is no such thing.
        grant: Command where the account may not look. In both stand settings in braces.
    """

    name: str
    look: Callable[[Project], str | None]
    needs: tuple[str, ...] = ()
    create: str = ""
    grant: str = ""


def examine(project: Project, checks: Sequence[Check]) -> list[Finding]:
    """Return what each check came to, in their order."""
    found: dict[str, Finding] = {}
    for each in checks:
        found[each.name] = _make(each, project, found)
    return list(found.values())


def _make(each: Check, project: Project, earlier: Mapping[str, Finding]) -> Finding:
    blocked = [name for name in each.needs if earlier[name].state not in PASSING]
    if blocked:
        return Finding(check=each.name, state=State.UNKNOWN, text=f"not asked: needs {', '.join(blocked)}")
    text = attempt(partial(each.look, project))
    if isinstance(text, NotKnownError):
        return Finding(check=each.name, state=State.HIDDEN, text=str(text))
    if isinstance(text, UnansweredError):
        return Finding(check=each.name, state=State.UNKNOWN, text=str(text))
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
    if isinstance(error, MendableError):
        return Finding(check=each.name, state=State.WRONG, text=str(known), command=error.command)
    is_own = isinstance(error, RetrainingError)  # of a check itself, which no role mends
    command = each.create if is_own or is_refused(error) else each.grant
    if command:
        settings = project.settings
        command = command.format_map({**asdict(settings), "query_project": settings.query_project or settings.project})
    if (api := disabled_api(error)) is not None:
        command = f"gcloud services enable {api} --project={project.settings.project}"
    return Finding(check=each.name, state=State.WRONG, text=str(known), command=command)


def disabled_api(error: Exception) -> str | None:
    """Return the API whose being disabled is why a call was refused; None: it was refused for something else."""
    if getattr(error, "reason", None) != "SERVICE_DISABLED":
        return None
    return str((getattr(error, "metadata", None) or {}).get("service", "")) or None

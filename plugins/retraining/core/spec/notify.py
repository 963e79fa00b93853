"""The sections `notify` (who is told, where, of what) and `report` (what a run's page shows) of a model's YAML."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from retraining.core.settings import CONNECTION_PATTERN, EMAIL_PATTERN
from retraining.core.spec.section import Section

Event = Literal["failure", "decision", "drift", "rollback", "approval", "budget"]
EVENTS: tuple[Event, ...] = get_args(Event)
Email = Annotated[str, StringConstraints(pattern=f"^{EMAIL_PATTERN}$", max_length=254)]
ConnectionId = Annotated[str, StringConstraints(pattern=f"^{CONNECTION_PATTERN}$")]
"""Id of an Airflow connection: what is secret stands there."""
NotifierName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,99}$")]


class Notify(Section):
    """Who is told what of this model. The key is `events`, for `on` is a truth value in YAML."""

    owners: Annotated[tuple[Email, ...], Field(max_length=20)] | None = None
    """E-mail addresses, of which each gets a mail of its own. `null`: those of `RETRAINING_NOTIFY_OWNERS`, `[]`:
    nobody."""
    channels: Annotated[tuple[ConnectionId, ...], Field(max_length=10)] | None = None
    """Ids of Airflow connections of webhooks; `null`: those of `RETRAINING_NOTIFY_CHANNELS`, `[]`: none."""
    notifiers: Annotated[tuple[NotifierName, ...], Field(max_length=10)] = ()
    """Names of entry points `retraining.notifiers` of installed packages: [notifiers of one's
    own](operations.md#your-own-notifiers)."""
    events: tuple[Event, ...] = EVENTS
    """What they are told."""


class RunPage(Section):
    """What the run's page shows of single examples."""

    show_rows: bool = False
    """The features' values of the 20 largest errors, on the page and in `evaluation.json`; `false`: their keys
    alone."""

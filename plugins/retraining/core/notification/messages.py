"""Messages to people: to whom they go, in which words, and a trial of both.

The words are from the templates in `package_data/templates/notifications`, for a mail and for a post in Slack. A
template of an event has three blocks of plain text: `subject`, `text`, `way_out`. Two layouts show them, and escape:
the mail for HTML, the post for JSON and for Slack's own marks. What is shown is text and never a template itself.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import jinja2

from retraining.core.documents.document import read_object
from retraining.core.notification import notices
from retraining.core.notification.notices import Notice
from retraining.core.settings import Settings, data_path
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.notify import Notify
from retraining.core.untyped import ApiJson

MAIL, CHANNEL, NOTIFIER = "mail", "channel", "notifier"


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """One owner by mail, one channel, or one notifier of a team's own.

    Attributes:
        name: How documents and logs call it: without an address.
        connection_id: Airflow connection that it goes through; empty: it is a team's own notifier.
        owner: E-mail address; None: it is none.
        notifier: Name of the entry point; None: it is none.
    """

    name: str
    connection_id: str
    owner: str | None = None
    notifier: str | None = None

    @property
    def through(self) -> str:
        """What it goes through, for a log."""
        return self.connection_id or self.name


def recipients(notify: Notify, settings: Settings) -> list[Recipient]:
    """Return who is told, each once: owners get a mail each, so that none sees another's address."""
    owners = settings.notify_owners if notify.owners is None else notify.owners
    channels = settings.notify_channels if notify.channels is None else notify.channels
    mails = [
        Recipient(name=f"{MAIL}:{short(owner)}", connection_id=settings.notify_smtp_conn_id, owner=owner)
        for owner in owners
    ]
    posts = [Recipient(name=f"{CHANNEL}:{connection}", connection_id=connection) for connection in channels]
    own = [Recipient(name=f"{NOTIFIER}:{name}", connection_id="", notifier=name) for name in notify.notifiers]
    return list({each.name: each for each in (*mails, *posts, *own)}.values())


def short(text: str) -> str:
    """Return what stands for an address where it must not stand itself."""
    return hashlib.sha256(text.strip().lower().encode()).hexdigest()[:12]


RUNBOOK = "docs/operations.md"
MOST_SUBJECT, MOST_BODY = 140, 2000
"""Letters: Slack takes 150 in a heading, and 3,000 in a section, where an escaped letter is up to five."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """What is sent: the mail's subject and HTML, the post of a webhook as Slack reads it, and its parts as plain text.

    The parts are what a team's own notifier gets: `event`, `model` (None: of all models), `subject`, `lines`,
    `way_out`, `links` (each with `label` and `address`) and `runbook`.
    """

    subject: str
    html: str
    post: ApiJson
    parts: ApiJson


def render_message(notice: Notice, runbook_url: str | None = None) -> Message:
    """Put a notice into words.

    Args:
        notice: What is told.
        runbook_url: Address of the run-book; None: it is named as a file.
    """
    template = _environment().get_template(f"{notice.text}.txt.j2")
    values = {**notice.values, "name": notice.model or "all models"}
    context = template.new_context(values)
    blocks = {name: "".join(block(context)) for name, block in template.blocks.items()}
    lines = [_one_line(line) for line in blocks["text"].splitlines() if line.strip()]
    subject = _cut(_one_line(blocks["subject"]), MOST_SUBJECT)
    way_out = _one_line(blocks["way_out"])
    runbook = f"{runbook_url or RUNBOOK}#{notice.runbook}"
    links = [f"<{_slack_address(link.address)}|{slack(link.label)}>" for link in notice.links]
    if runbook_url:
        links.append(f"<{_slack_address(runbook)}|Run-book>")
    else:
        links.append(f"Run-book: {slack(runbook)}")
    shown = {"subject": subject, "lines": lines, "way_out": way_out, "links": notice.links, "runbook": runbook}
    post = _environment().get_template("slack.json.j2")
    body = _cut("\n".join([*lines, way_out]), MOST_BODY)
    return Message(
        subject=subject,
        html=_environment().get_template("mail.html.j2").render(**shown),
        post=read_object(
            post.render(subject=subject, body=body, linked=_cut(" · ".join(links), MOST_BODY)), "slack.json.j2"
        ),
        parts={
            **shown,
            "event": notice.event,
            "model": notice.model,
            "links": [{"label": link.label, "address": link.address} for link in notice.links],
        },
    )


def slack(text: str) -> str:
    """Escape what Slack reads as a mark: a mention, a link, a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _slack_address(address: str) -> str:
    return slack(address).replace("|", "%7C")


def _one_line(text: str) -> str:
    """Return a text without line breaks and control characters, which a mail's header must not have."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


@functools.cache  # templates are compiled once
def _environment() -> jinja2.Environment:
    # The blocks of an event are escaped by the layouts: for HTML by its ending, for JSON by tojson at every value.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_path("templates/notifications")),
        autoescape=jinja2.select_autoescape(("html.j2",), default=False),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["slack"] = slack
    return environment


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One message on its way: whom it goes to, what it says, and its id."""

    recipient: Recipient
    message: Message
    message_id: str


def trials(spec: ModelSpec, settings: Settings, now: datetime) -> Iterator[Trial]:
    """Yield a message for each who is told of a model.

    Args:
        spec: Of its file.
        settings: Whose owners and channels count where the file names none.
        now: Tells one trial's mails from another's.
    """
    message = render_message(notices.of_trial(spec.name), settings.runbook_url)
    for recipient in recipients(spec.notify, settings):
        once = short(f"trial|{now.isoformat()}|{recipient.name}")
        yield Trial(recipient=recipient, message=message, message_id=f"<{once}@{settings.bucket}>")


def explain_settings(settings: Settings, whose: str) -> str:
    """Return by whose settings a trial is sent, and what they say; without an address of a person."""
    channels = ", ".join(settings.notify_channels) or "no channel"
    return (
        f"settings RETRAINING_… of {whose}, bucket {settings.bucket}; where the model's file names nobody: "
        f"{len(settings.notify_owners)} owners, {channels}; mails by {settings.notify_smtp_conn_id}"
    )


def nobody(spec: ModelSpec) -> str:
    """Return what to do where nobody is told."""
    return f"{spec.name}: nobody is told; name notify.owners, notify.channels or notify.notifiers in its file"

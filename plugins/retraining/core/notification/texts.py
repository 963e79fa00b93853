"""The words of a notice: from the templates in `include/templates/notifications` to a mail and a post for Slack.

A template of an event has three blocks of plain text: `subject`, `text`, `way_out`. Two layouts show them, and escape:
the mail for HTML, the post for JSON and for Slack's own marks. What is shown is text and never a template itself.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jinja2

from retraining.core.documents.stored_json import read_object
from retraining.core.notification.notices import Notice
from retraining.core.settings import include_path
from retraining.core.untyped import ApiJson

RUNBOOK = "docs/operations.md"
MOST_SUBJECT, MOST_BODY = 140, 2000
"""Letters: Slack takes 150 in a heading, and 3,000 in a section, where an escaped letter is up to five."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """What is sent: the mail's subject and HTML, and the post of a webhook as Slack reads it."""

    subject: str
    html: str
    post: ApiJson


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
        loader=jinja2.FileSystemLoader(include_path() / "templates" / "notifications"),
        autoescape=jinja2.select_autoescape(("html.j2",), default=False),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["slack"] = slack
    return environment

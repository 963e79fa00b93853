"""A trial message to all who are told of a model, with the connections of this shell's environment."""

from __future__ import annotations

from retraining.core.notification import notices
from retraining.core.notification.channels import recipients, short
from retraining.core.notification.texts import render_message
from retraining.core.spec.model import ModelSpec
from retraining.hooks.notifiers import NotSentError
from retraining.hooks.ports import CloudPort


def send_trial(cloud: CloudPort, spec: ModelSpec) -> tuple[list[str], bool]:
    """Send it; return a line for each who is told, and whether all were reached."""
    whom = recipients(spec.notify, cloud.settings)
    if not whom:
        return [f"{spec.name}: nobody is told; name notify.owners or notify.channels in its file"], False
    message = render_message(notices.of_trial(spec.name), cloud.settings.runbook_url)
    lines, reached = [], True
    for recipient in whom:
        try:
            if recipient.owner is None:
                cloud.notifiers.post(recipient.connection_id, message.post)
            else:
                once = f"<{short(f'trial|{cloud.clock.now().isoformat()}|{recipient.name}')}@{cloud.settings.bucket}>"
                cloud.notifiers.send_mail(recipient.connection_id, recipient.owner, message.subject, message.html, once)
            lines.append(f"{recipient.owner or recipient.connection_id}: sent")
        except NotSentError as error:
            reached = False
            lines.append(f"{recipient.owner or recipient.connection_id}: not sent, {error}")
    return lines, reached

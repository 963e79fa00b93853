"""Document of a task's failed try: the message that a person reads on the run's page, in a shell and in a mail."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from retraining.core.documents.document import Document, ModelId, Positive, Text, Uri, UtcTime

MOST_TEXT = 2000
"""Letters of a part: a job's last lines, and not its whole log."""
Part = Annotated[str, StringConstraints(max_length=MOST_TEXT)]


class Failure(Document):
    """Why a try of a task failed, in four parts, without a terminal's escapes and without secrets.

    `error` is the class of the error; of what this package did not raise itself `where` is the task. `attempt` is
    Airflow's try, `retried` whether it makes another by itself. `quotes` says that `found` may quote the data or
    another service, and so stays out of mails. `log` is the address of the try's log; null: the UI's is not known.
    `folder_uri` is where it lies, in `failures`, beside the run's page; null: it was written by an earlier release.
    """

    kind: Literal["failure"] = "failure"
    model: ModelId
    dag_run_id: Text
    task: Text
    attempt: Positive
    retried: bool
    failed_at: UtcTime
    error: Text
    where: Part
    found: Part
    expected: Part
    way_out: Part
    quotes: bool
    log: Text | None = None
    folder_uri: Uri | None = None

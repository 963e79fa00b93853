"""One wake of a task that waits for a job: find it, create it if there is none, look at it, come back later.

In: an order, the task instance's identity, the hooks. Out: the job's result, or None to be called again. The job itself
is the only state: whatever died before this wake, the job is found by its labels, never made twice, never lost.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from retraining.core import names
from retraining.core.documents import KINDS, Document
from retraining.core.errors import JobError
from retraining.core.job_failures import OF_THE_SERVICE, Failure, classify, may_follow, on_rung, pause
from retraining.hooks.airflow_exceptions import AirflowFailException
from retraining.hooks.cloud import Cloud
from retraining.hooks.logs import Cursor
from retraining.hooks.session import is_transient
from retraining.hooks.vertex_jobs import Job, JobType
from retraining.operators.job_identity import JobIdentity
from retraining.operators.wake import WakeMemory

LOGGER = logging.getLogger(__name__)
LOOK_INTERVAL_S = 1.0
CREATE_TRIES = 3
CREATE_WAIT_S = 2.0
SHOWN_LINES = 20
LAST_READS = 5


@dataclass(frozen=True, kw_only=True)
class JobOrder:
    """What a task wants done: a job, the document it reads, the document it leaves. The last two may be missing.

    The document counts only with the object at `artifact_uri`, where that is named.
    `retries` stands for the task's own where it is given; `way_out` is what a person does when no job may follow.
    `before_create` is asked before a job is paid for; while it says False there is none.
    """

    custom_job: dict[str, Any]
    request: Document | None = None
    request_uri: str = ""
    result_uri: str = ""
    result_kind: str = ""
    artifact_uri: str = ""
    retries: int | None = None
    way_out: str = "Mend what they name and clear the task"
    before_create: Callable[[], bool] = field(default=lambda: True)


class Reconciler:
    """One wake.

    Args:
        cloud: The hooks.
        order: What is wanted.
        identity: Whose job it is.
        on_job: Told of the job as soon as it is known.
    """

    def __init__(self, cloud: Cloud, order: JobOrder, identity: JobIdentity, on_job: Callable[[Job], None]) -> None:
        self._cloud = cloud
        self._order = order
        self._identity = identity
        self._on_job = on_job
        self._memory = WakeMemory(cloud.artifacts, cloud.settings.bucket, identity.key, identity.try_number)
        self._types = (JobType.of(order.custom_job),)
        self._cursor = Cursor()
        self._tail: deque[str] = deque(maxlen=SHOWN_LINES)

    def run(self) -> dict[str, Any] | None:
        """The job's result; None when it is still running at the end of this wake.

        Raises:
            AirflowFailException: No job may follow the one that ended; with its last lines.
            JobError: It succeeded, and left nothing.
        """
        stored = self._document()
        its_job = self._find_its_job() if stored else None
        if stored and not (its_job and its_job.active) and self._forget_without_artifact():
            stored = its_job = None
        if stored and its_job is None:
            LOGGER.info("%s is there already: no job is needed", self._order.result_uri)
            return self._result(stored, None)
        job = its_job or self._find_or_create()
        if job is None:
            return None
        self._on_job(job)
        self._recall(job)
        clock = self._cloud.clock
        until = clock.monotonic() + self._cloud.settings.watch_s
        while True:
            self._print_new_lines(job)
            if not job.active:
                return self._finish(job)
            if clock.monotonic() >= until:
                LOGGER.info("%s is %s; the next wake goes on", job.job_id, job.state)
                self._memory.save(job=job.name, cursor=self._cursor.to_json())
                return None
            clock.sleep(LOOK_INTERVAL_S)
            job = self._cloud.jobs.get(job.name)

    def _forget_without_artifact(self) -> bool:
        """Delete a stored result whose artifact is gone, so that its job runs again; False: there is nothing to do."""
        gone, uri = self._order.artifact_uri, self._order.result_uri
        if not gone or self._cloud.artifacts.exists(gone):
            return False
        LOGGER.warning(
            "%s is there, and %s is gone: a result without it does not count, so it is made again", uri, gone
        )
        if found := self._cloud.objects.find(uri):
            list(self._cloud.objects.delete([found]))
        return True

    def _find_its_job(self) -> Job | None:
        """The job that left the stored result, while this task slept or before it was cleared; None: another run's."""
        jobs = self._paid_jobs()
        return jobs[-1] if jobs else None

    def _paid_jobs(self) -> list[Job]:
        """Every job that this task instance had for this order, of any generation and end, oldest first."""
        labels = self._order.custom_job.get("labels", {})
        return [job for job in self._all_jobs() if labels.items() <= job.labels.items()]

    def _all_jobs(self) -> list[Job]:
        return self._cloud.jobs.find({names.OWNER_LABEL: self._identity.owner}, self._types)

    def _find_or_create(self) -> Job | None:
        """This generation's job that counts, after ending what older generations left; None: its time has not come."""
        mine = []
        for job in self._all_jobs():
            if job.labels.get(names.KEY_LABEL) == self._identity.key:
                mine.append(job)
            elif job.active:
                LOGGER.warning("%s is of an older generation of this task: it is cancelled", job.job_id)
                self._cloud.jobs.cancel(job.name)
        if mine and (mine[-1].active or mine[-1].state == "JOB_STATE_SUCCEEDED"):
            LOGGER.info("%s is this task's job: %s", mine[-1].job_id, mine[-1].state)
            job = mine[-1]
        else:
            if mine:
                self._on_job(mine[-1])
            if mine and self._recall(mine[-1]):  # it ended between two wakes
                self._print_rest(mine[-1])
            return self._create(mine)
        return job

    def _create(self, before: list[Job]) -> Job | None:
        failures = [failure_of(job) for job in before]
        if before and not self._may_follow(failures):
            raise AirflowFailException(str(self._error(before[-1], failures[-1])))
        if (wait := pause(failures)) and (ended := before[-1].ended) and self._cloud.clock.now() < ended + wait:
            LOGGER.info("%s ended: %s; another job follows after %s", before[-1].job_id, failures[-1], ended + wait)
            return None
        order = self._order
        if not order.before_create():
            return None
        if order.request is not None:
            self._cloud.artifacts.write_once(order.request_uri, order.request.to_bytes())
        wanted = on_rung(order.custom_job, failures)
        wanted["labels"] = {**wanted.get("labels", {}), **self._identity.labels}
        known = {job.name for job in before}
        for attempt in range(1, CREATE_TRIES + 1):
            try:
                job = self._cloud.jobs.create(wanted)
            except Exception as error:
                if not is_transient(error) or attempt == CREATE_TRIES:
                    raise
                LOGGER.warning("no answer to the create (%s): looking whether the job is there", error)
                self._cloud.clock.sleep(CREATE_WAIT_S)
                found = self._cloud.jobs.find({names.KEY_LABEL: self._identity.key}, self._types)
                if new := [job for job in found if job.name not in known]:
                    return new[-1]
            else:
                LOGGER.info("%s is created", job.job_id)
                return job
        raise AssertionError("unreachable: the last try returns or raises")

    def _may_follow(self, failures: list[Failure]) -> bool:
        retries = self._identity.retries if self._order.retries is None else self._order.retries
        return may_follow(failures, retries)

    def _finish(self, job: Job) -> dict[str, Any] | None:
        self._print_rest(job)
        if stored := self._document():
            return self._result(stored, job)
        if job.state == "JOB_STATE_SUCCEEDED":
            if not self._order.result_uri:
                return {"job": job.name, "state": job.state, "seconds": job.seconds}
            found, way_out = f"it succeeded and left no {self._order.result_uri}", "Look at its log, clear the task"
            raise JobError(job.job_id, found, "", way_out)
        failure = failure_of(job)
        mine = [one for one in self._all_jobs() if one.labels.get(names.KEY_LABEL) == self._identity.key]
        failures = [failure_of(one) for one in mine if one.name != job.name]
        if not self._may_follow([*failures, failure]):
            raise AirflowFailException(str(self._error(job, failure)))
        self._memory.save(job=job.name, cursor=self._cursor.to_json())
        if failure not in OF_THE_SERVICE:
            LOGGER.warning("%s Another job follows.", self._error(job, failure))
            return None
        LOGGER.warning("%s ended: %s (%s); another job follows", job.job_id, failure, job.error_message)
        return None if pause([*failures, failure]) else self.run()

    def _document(self) -> Document | None:
        """The stored result; None when there is none yet, as always of an order without one."""
        uri = self._order.result_uri
        data = self._cloud.artifacts.read(uri) if uri else None
        return None if data is None else KINDS[self._order.result_kind].parse(data, uri)

    def _result(self, document: Document, job: Job | None) -> dict[str, Any]:
        """The result for XCom, with what all jobs of this task took."""
        took = [(one.seconds, one.spot) for one in self._paid_jobs() if one.seconds is not None] if job else []
        return {
            "uri": self._order.result_uri,
            "sha256": document.digest(),
            "job": job.name if job else None,
            "seconds": sum(seconds for seconds, _ in took) if took else None,
            "spot_seconds": sum(seconds for seconds, spot in took if spot) if took else None,
        }

    def _recall(self, job: Job) -> bool:
        """Set the cursor to where the last wake of this try stopped reading; False when it read another job or none."""
        saved = self._memory.load()
        known = bool(saved.get("job") == job.name)
        self._cursor = Cursor.from_json(saved["cursor"]) if known else Cursor()
        return known

    def _print_new_lines(self, job: Job) -> int:
        lines = self._cloud.logs.read_new(job.job_id, self._cursor)
        for line in lines:
            text = f"[{line.task}] {line.text}"
            self._tail.append(text)
            LOGGER.info("%s", text)
        return len(lines)

    def _print_rest(self, job: Job) -> None:
        for _ in range(LAST_READS):
            if not self._print_new_lines(job):
                return

    def _error(self, job: Job, failure: Failure) -> JobError:
        if not self._tail:  # an earlier wake printed them
            self._tail.extend(f"[{line.task}] {line.text}" for line in self._cloud.logs.read_new(job.job_id, Cursor()))
        lines = "\n".join(self._tail)
        found = f"{failure}: {job.error_message or job.state}\nIts last lines:\n{lines}\n"
        return JobError(f"job {job.job_id}", found, "", self._order.way_out)


def failure_of(job: Job) -> Failure:
    """The kind of a job's bad end."""
    return classify(job.state, job.error_code, job.error_message)

"""One poke of a task that waits for a job: find it, create it if there is none, look at it, come back later.

In: a job request, the task instance's identity, the hooks. Out: the job's result, or None to be called again. The job
itself is the only state: whatever died before this poke, the job is found by its labels, never made twice, never lost.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from retraining.core.documents import RESULTS, Document, digest
from retraining.core.documents.document import read_object
from retraining.core.errors import ContractError, JobError, RetrainingError
from retraining.core.jobs import claims, machine_pools, waits
from retraining.core.jobs.adoption import require_own_result
from retraining.core.jobs.failures import OF_THE_SERVICE, Failure, with_spot_fallback
from retraining.core.jobs.job import Job, JobIdentity, JobType
from retraining.core.jobs.outcomes import (
    failure_of,
    job_error,
    may_retry,
    newest_of,
    result_of,
    result_without_document,
)
from retraining.core.jobs.requests import JobRequest, by_settings
from retraining.core.jobs.submission import Submission
from retraining.core.naming import storage
from retraining.core.untyped import JsonObject, ProtoJson, XCom
from retraining.hooks.logs import Cursor
from retraining.hooks.ports import ArtifactsPort, CloudPort
from retraining.hooks.session import explain, is_transient
from retraining.operators.airflow.boundary import FailedForGoodError
from retraining.operators.jobs.claims import ClaimedJobs, Seen, TaskJobsPort

LOGGER = logging.getLogger(__name__)
LOOK_INTERVAL_S = 1.0
SHOWN_LINES = 20
LAST_READS = 5 * waits.LONGEST


class PollMemory:
    """What a waiting task remembers between two pokes of the same try: a small JSON object on storage.

    Airflow deletes a task's XComs at the start of every poke, and its own state store came with 3.3 only. It is a
    help, not a truth: without it lines are printed again and operations are looked up again.

    Args:
        artifacts: Cloud Storage.
        bucket: Of the settings.
        key: Identity of the task instance's work, for example a job key.
        try_number: Another try has another log file and begins anew.
    """

    def __init__(self, artifacts: ArtifactsPort, bucket: str, key: str, try_number: int) -> None:
        self._artifacts = artifacts
        self._uri = storage.poke_uri(bucket, key)
        self._try_number = try_number

    def load_values(self) -> JsonObject:
        """Return what the last poke saved; nothing in the first one."""
        data = self._artifacts.read_object(self._uri)
        if data is None:
            return {}
        try:
            saved = read_object(data, self._uri)
        except ContractError as error:
            LOGGER.warning("%s What the last poke left counts for nothing", error)
            return {}
        values = saved.get("values")
        return values if saved.get("try_number") == self._try_number and isinstance(values, dict) else {}

    def save_values(self, **values: object) -> None:
        """Keep values for the next poke."""
        document = {"try_number": self._try_number, "values": values}
        self._artifacts.overwrite(self._uri, json.dumps(document).encode(), "application/json")


class PlacePort(Protocol):
    """Room for a job.

    Attributes:
        ahead: After `take` said False: how many are before it.
    """

    ahead: int

    def take(self) -> bool:
        """Return whether the job may begin."""

    def leave(self, job: Job) -> None:
        """Give the place of a job that has ended back."""


class Reconciler:
    """One poke.

    Args:
        cloud: The hooks.
        job_request: The job, and what it is to leave.
        identity: Whose job it is.
        on_job: Called with the job as soon as it is known.
        may_create: Asked before a job is paid for; while it says False there is none.
        place: Among the jobs of the region; None: nobody limits them.
        jobs: The service as the task sees it; None: as it is.

    Attributes:
        sleep_s: Seconds until the next poke, when this one has ended.
    """

    def __init__(
        self,
        cloud: CloudPort,
        job_request: JobRequest,
        identity: JobIdentity,
        on_job: Callable[[Job], None],
        may_create: Callable[[], bool] = lambda: True,
        place: PlacePort | None = None,
        jobs: TaskJobsPort | None = None,
    ) -> None:
        self._cloud = cloud
        self._service = jobs or cloud.jobs
        self._job_request = job_request
        self._identity = identity
        self._on_job = on_job
        self._may_create = may_create
        self._place = place
        self.sleep_s: float = cloud.settings.wake_interval_s
        self._memory = PollMemory(cloud.artifacts, cloud.settings.bucket, identity.key, identity.try_number)
        self._jobs = ClaimedJobs(cloud, identity, JobType.of(job_request.custom_job), self._service)
        self._cursor = Cursor()
        self._tail: deque[str] = deque(maxlen=SHOWN_LINES)

    def poll_job(self) -> XCom | None:
        """Return the job's result; None when it is still running at the end of this poke.

        Raises:
            FailedForGoodError: No job may follow the one that ended; with its last lines.
            JobError: It succeeded, and left nothing.
        """
        seen, stored, job = self._look()
        alone = self._jobs.cancel_stale(seen, spared=job)
        if job is None and self._jobs.others_go_on(seen):
            # It may have succeeded before it was cancelled: only what it came to says whether another job is needed.
            seen, stored, job = self._look()
            alone = alone and not self._jobs.others_go_on(seen)
        if stored and job is None:
            LOGGER.info("%s is there already: no job is needed", self._job_request.stored_uri)
            return self._result(stored, None)
        if job is None and alone:
            job = self._next_job(seen)
        return None if job is None else self._watch(job)

    def _look(self) -> tuple[Seen, Document | None, Job | None]:
        """Return what is there, the result, and the job to wait for or that left it.

        First the jobs: of one that ended by then, whatever it left is there.
        """
        seen = self._jobs.find_jobs()
        stored = self._document() or self._left_before(seen)
        job = seen.standing.counts or (newest_of(self._job_request, seen.everything) if stored else None)
        if stored and not (job and job.active) and self._forget_without_artifact():
            stored, job = None, seen.standing.counts
        return seen, stored, job

    def _watch(self, job: Job) -> XCom | None:
        self._on_job(job)
        self._restore_cursor(job)
        clock = self._cloud.clock
        settings = self._cloud.settings
        until = clock.monotonic() + waits.watch_for(self._age(job), settings.watch_s)
        while True:
            self._print_new_lines(job)
            if not job.active:
                return self._finish_job(job)
            if clock.monotonic() >= until:
                LOGGER.info("%s is %s; the next poke goes on", job.job_id, job.state)
                self._memory.save_values(job=job.name, cursor=self._cursor.to_json())
                self.sleep_s = waits.sleep_for(self._age(job), settings.wake_interval_s)
                return None
            clock.sleep(LOOK_INTERVAL_S)
            job = self._service.get(job.name)

    def _age(self, job: Job) -> timedelta:
        return self._cloud.clock.now() - job.created if job.created else timedelta()

    def _forget_without_artifact(self) -> bool:
        """Delete a stored result whose artifact is gone, so that its job runs again; False: there is nothing to do."""
        gone, uri = self._job_request.artifact_uri, self._job_request.stored_uri
        if not gone or self._cloud.artifacts.exists(gone):
            return False
        LOGGER.warning(
            "%s is there, and %s is gone: a result without it does not count, so it is made again", uri, gone
        )
        for each in dict.fromkeys((self._job_request.result_uri, uri)):  # first what a job would take for its own
            if stored := self._cloud.objects.find_object(each):
                list(self._cloud.objects.delete([stored]))
        return True

    def _next_job(self, seen: Seen) -> Job | None:
        """Create the job that follows those which failed; None: its time has not come."""
        spent = seen.standing.spent
        if spent:
            self._on_job(spent[-1])
            if self._restore_cursor(spent[-1]):  # it ended between two pokes
                self._print_rest(spent[-1])
        failures = self._failures(seen)
        if not may_retry(self._job_request, failures, self._identity.retries):
            raise FailedForGoodError(self._error(spent[-1] if spent else None, failures[-1]))
        last_end = max((job.ended for job in spent if job.ended), default=None)
        begin = claims.not_before(seen.claim, last_end, failures)
        if begin and seen.began < begin:
            why = f"the last one ended: {failures[-1]}" if failures else "somebody may be about to create it"
            LOGGER.info("no job is created before %s: %s", begin, why)
            return None
        if not self._has_room() or not self._may_create():
            return None
        if newest_of(self._job_request, seen.everything) and not spent and not self._forget_leftover():
            return None
        if self._job_request.request is not None:
            self._cloud.artifacts.write_once(self._job_request.request_uri, self._job_request.request.to_bytes())
        asked = self._job_request.custom_job
        custom_job = by_settings(asked, self._job_request.plan, self._cloud.settings)
        if custom_job != asked:
            LOGGER.warning("the job is of the trainer that this environment has now, not of the one in the run's plan")
        custom_job = self._placed(with_spot_fallback(custom_job, failures), failures)
        self._write_submission(custom_job)
        return self._jobs.create_job(custom_job, seen)

    def _has_room(self) -> bool:
        if self._place is None or self._place.take():
            return True
        self.sleep_s = waits.queue_for(self._place.ahead, self._cloud.settings.wake_interval_s)
        return False

    def _placed(self, custom_job: ProtoJson, failures: Sequence[Failure]) -> ProtoJson:
        """Return the job as it is created: on the machines of the model's pool, where these are there."""
        pool = self._job_request.machine_pool
        if pool is None:
            return custom_job
        try:
            found = self._cloud.machine_pools.find(machine_pools.pool_id(self._cloud.environment.label, pool))
        except Exception as error:  # of any class: no run depends on a pool, and a fault of ours is raised again
            if not (isinstance(error, RetrainingError) or is_transient(error) or explain(error)):
                raise
            LOGGER.warning("nobody can say whether %s is open: %s", pool, error)
            found = None
        placed, words = machine_pools.place(custom_job, found, failures, self._cloud.clock.now())
        LOGGER.info("the job runs %s", words)
        return placed

    def _write_submission(self, custom_job: ProtoJson) -> None:
        """Store the job as people submit it; the page shows it too."""
        if uri := self._job_request.submission_uri:
            settings = self._cloud.settings
            submission = Submission(job=custom_job, project=settings.project, region=settings.region)
            for ending, text in submission.files().items():
                self._cloud.artifacts.overwrite(f"{uri}.{ending}", text.encode(), "text/plain; charset=utf-8")

    def _failures(self, seen: Seen) -> list[Failure]:
        """Return the failures of this generation's jobs, then of creates that made none."""
        without_job = seen.claim.failures_by(seen.began) if seen.claim else ()
        return [*map(failure_of, seen.standing.spent), *without_job]

    def _finish_job(self, job: Job) -> XCom | None:
        self._print_rest(job)
        if self._place is not None:
            self._place.leave(job)
        if stored := self._document() or self._adopt():
            return self._result(stored, job)
        if job.succeeded:
            return result_without_document(self._job_request, job)
        self._memory.save_values(job=job.name, cursor=self._cursor.to_json())
        seen = self._jobs.find_jobs(fresh=job)
        if job not in seen.standing.spent:
            LOGGER.warning("%s was made beside an older job: the next poke waits for that one", job.job_id)
            return None
        failure = failure_of(job)
        if not may_retry(self._job_request, self._failures(seen), self._identity.retries):
            raise FailedForGoodError(self._error(job, failure))
        text = job.error_message if failure in OF_THE_SERVICE else str(self._error(job, failure))
        LOGGER.warning("%s ended: %s (%s); another job follows", job.job_id, failure, text)
        return None

    def _document(self) -> Document | None:
        """Return the stored result; None when there is none yet, or when none is wanted."""
        uri = self._job_request.stored_uri
        data = self._cloud.artifacts.read_object(uri) if uri else None
        return None if data is None else RESULTS[self._job_request.result_kind].parse(data, uri)

    def _left_before(self, seen: Seen) -> Document | None:
        """Take over what a job left before its task was cleared; None: nothing, or it was taken over once.

        Somebody has deleted it from the record then, so that it is made again.
        """
        newest, wanted = newest_of(self._job_request, seen.everything), self._job_request
        if wanted.stored_uri == wanted.result_uri:
            return None
        if newest is None or newest.active or self._cloud.artifacts.exists(storage.adoption_uri(wanted.stored_uri)):
            return None
        return self._adopt()

    def _forget_leftover(self) -> bool:
        """Delete what a job left before its task was cleared, and the record has not: no job shall take it for its own.

        False: somebody has created the next job meanwhile.
        """
        wanted = self._job_request
        if wanted.stored_uri == wanted.result_uri:
            return True
        leftover = self._cloud.objects.find_object(wanted.result_uri)
        if leftover is None:
            return True
        if self._jobs.find_jobs().standing.counts is not None:  # looked at after the object: it may be that job's own
            return False
        LOGGER.warning("%s is of before the task was cleared: it is deleted, and made again", leftover.uri)
        list(self._cloud.objects.delete([leftover]))
        return True

    def _adopt(self) -> Document | None:
        """Take the result of a job that has ended over to the record, where no job may write; None: it left none.

        Raises:
            ContractError: What lies there is not this request's.
        """
        wanted = self._job_request
        if wanted.request is None or wanted.stored_uri == wanted.result_uri:
            return None
        data = self._cloud.artifacts.read_object(wanted.result_uri)
        request = self._cloud.artifacts.read_object(wanted.request_uri)
        if data is None or request is None:
            return None
        asked = type(wanted.request).parse(request, wanted.request_uri)
        left = RESULTS[wanted.result_kind].parse(data, wanted.result_uri)
        require_own_result(asked, digest(request), left, wanted.result_uri)
        self._cloud.artifacts.write_once(storage.adoption_uri(wanted.stored_uri), left.digest().encode(), "text/plain")
        stored = self._cloud.artifacts.write_once(wanted.stored_uri, data)
        return type(left).parse(stored, wanted.stored_uri)

    def _result(self, document: Document, job: Job | None) -> XCom:
        """Return the result for XCom."""
        return result_of(self._job_request, document, job, self._jobs.find_jobs().everything if job else ())

    def _restore_cursor(self, job: Job) -> bool:
        """Set the cursor to where the last poke of this try stopped reading; False when it read another job or none."""
        saved = self._memory.load_values()
        self._cursor = Cursor(newest=job.lines_from)
        if saved.get("job") != job.name:
            return False
        try:
            self._cursor = Cursor.from_json(str(saved.get("cursor")))
        except ContractError as error:
            LOGGER.warning("%s The job's lines are printed again", error)
            return False
        return True

    def _print_new_lines(self, job: Job) -> int:
        lines = self._cloud.logs.read_new(job.job_id, self._cursor)
        for line in lines:
            text = f"[{line.task}] {line.text}"
            self._tail.append(text)
            LOGGER.log(line.level, "%s", text)
        return len(lines)

    def _print_rest(self, job: Job) -> None:
        for _ in range(LAST_READS):
            if not self._print_new_lines(job):
                return

    def _error(self, job: Job | None, failure: Failure) -> JobError:
        if job is not None and not self._tail:  # an earlier poke printed them
            cursor = Cursor(newest=job.lines_from)
            self._tail.extend(f"[{line.task}] {line.text}" for line in self._cloud.logs.read_new(job.job_id, cursor))
        return job_error(self._job_request, job, failure, self._tail)

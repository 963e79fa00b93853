"""What a job that ended means for its task: the result, another job, or the end.

In: what a task wants (`JobRequest`), its jobs as they stand, the stored document. Out: values and errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retraining.core.documents.document import Document
from retraining.core.errors import JobError
from retraining.core.jobs.failures import OF_THE_SERVICE, Failure, classify, may_follow
from retraining.core.jobs.job import FAILED, Job
from retraining.core.jobs.requests import JobRequest
from retraining.core.untyped import XCom


def failure_of(job: Job) -> Failure:
    """Return the kind of a job's bad end.

    With its pool the service takes its machines: nobody cancelled the job. One that ran out of time and never began had
    no machines: its timeout begins with it, so that it was the time for which it could wait for them.
    """
    failure = classify(job.state, job.error_code, job.error_message)
    if failure is Failure.EXPIRED and job.started is None:
        return Failure.STOCKOUT
    return Failure.PREEMPTED if job.pool_id and failure is Failure.CANCELLED else failure


def is_of(job_request: JobRequest, job: Job) -> bool:
    """Return whether a job of the task instance did this request, of whatever generation and end."""
    return bool(job_request.custom_job.get("labels", {}).items() <= job.labels.items())


def newest_of(job_request: JobRequest, jobs: Iterable[Job]) -> Job | None:
    """Return the job that left the stored result before its task was cleared; None: it is another run's."""
    return next((job for job in reversed([*jobs]) if is_of(job_request, job)), None)


def may_retry(job_request: JobRequest, failures: Sequence[Failure], retries: int) -> bool:
    """Return whether another job follows those that failed.

    Args:
        job_request: Its own `retries` stand for the task's where they are given.
        failures: Of all jobs of this generation of the task.
        retries: Of the task.
    """
    return may_follow(failures, retries if job_request.retries is None else job_request.retries)


def goes_on_with(job: Job, *, bears_failure: bool) -> bool:
    """Return whether a study goes on with the trials of a job that ended: it succeeded, or only its trials failed.

    Args:
        job: A tuning job.
        bears_failure: Whether the study can do without these trials.
    """
    if job.succeeded:
        return True
    return bears_failure and job.state == FAILED and failure_of(job) not in OF_THE_SERVICE


def result_of(job_request: JobRequest, document: Document, job: Job | None, jobs: Iterable[Job]) -> XCom:
    """Return a task's result, with what all its jobs took.

    Args:
        job_request: What was wanted.
        document: What is stored.
        job: That left it; None: it was there before.
        jobs: All of the task instance.
    """
    mine = [other for other in jobs if is_of(job_request, other)] if job else []
    seconds = [(other.seconds, other.spot) for other in mine if other.seconds is not None]
    return {
        "uri": job_request.stored_uri,
        "sha256": document.digest(),
        "job": job.name if job else None,
        "seconds": sum(each for each, _ in seconds) if seconds else None,
        "spot_seconds": sum(each for each, spot in seconds if spot) if seconds else None,
    }


def result_without_document(job_request: JobRequest, job: Job) -> XCom:
    """Return the result of a job that succeeded and that nobody asked for a document.

    Raises:
        JobError: One was asked for, and is not there.
    """
    if job_request.result_uri:
        found, way_out = f"it succeeded and left no {job_request.result_uri}", "Look at its log, clear the task"
        raise JobError(job.job_id, found, "that document", way_out)
    return {"job": job.name, "state": job.state, "seconds": job.seconds}


def job_error(job_request: JobRequest, job: Job | None, failure: Failure, lines: Iterable[str]) -> JobError:
    """Return the error of a task that no other job follows.

    Args:
        job_request: What was wanted.
        job: The last one; None: none was ever created.
        failure: Of the last one, or of the last create.
        lines: The job's last ones.
    """
    if job is None:
        where = str(job_request.custom_job.get("display_name", "job"))
        return JobError(where, f"it was never created: {failure}", "a job", job_request.way_out)
    text = "\n".join(lines)
    found = f"{failure}: {job.error_message or job.state}\nIts last lines:\n{text}\n"
    return JobError(f"job {job.job_id}", found, "success", job_request.way_out)

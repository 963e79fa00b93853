"""Why a job ended badly, and what follows: another job at once, another one later, or the end.

In: a job's state, its google.rpc.Code, its message. The state decides first, then the code; words only where the two
leave several kinds open, for a program's own words (`timeout`, `quota`) may be in the message too.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from retraining.core.untyped import ProtoJson

JOBS_ON_SPOT = 2
MAX_SERVICE_FAILURES = 5
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(minutes=15)


class Failure(StrEnum):
    """Kinds of bad ends."""

    PREEMPTED = "preempted"
    STOCKOUT = "no machines"
    QUOTA = "quota"
    INTERNAL = "internal error of the service"
    UNASKED = "ended before it was asked"
    CANCELLED = "cancelled"
    EXPIRED = "ran into its timeout"
    REFUSED = "refused by the service"
    USER = "user error"
    PROGRAM = "program error"


# Not the job's fault: another one is created, whatever the task's `retries`.
OF_THE_SERVICE = frozenset({Failure.PREEMPTED, Failure.STOCKOUT, Failure.QUOTA, Failure.INTERNAL, Failure.UNASKED})
# Of these a new job at once would end the same way.
NEED_TIME = frozenset({Failure.STOCKOUT, Failure.QUOTA})
FOR_GOOD = frozenset({Failure.EXPIRED, Failure.REFUSED, Failure.USER})

# google.rpc.Code, https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = 0, 1, 2, 3, 4, 5
PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED = 7, 8, 9, 10
UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = 12, 13, 14, 15, 16

UNASKED_WORDS = "its machine was not asked in time"
"""Of a job of several tasks that ended well, but before one of them."""
_OWN_TIMEOUT = r"longer than its timeout|timed out|exceed\w* (the |its )?(job )?(timeout|time limit)"
_NO_MACHINES = r"insufficient|stock-?out|not have enough resources"
_PREEMPTED = r"\bpreempt"
# The trainer's exit status for requests and data that no repetition mends.
_USER_STATUS = r"non-zero status of 2\b"
_UNSAID = frozenset({OK, CANCELLED, UNKNOWN})


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A row of the table. What is left out holds for any.

    Attributes:
        failure: The kind.
        state: The job's.
        codes: Its error has one of these.
        words: Regular expression over its message, in lower case.
    """

    failure: Failure
    state: str = ""
    codes: frozenset[int] = frozenset()
    message: str = ""

    def holds(self, state: str, code: int, message: str) -> bool:
        """Return whether the row is about such an end."""
        return (
            self.state in ("", state)
            and (not self.codes or code in self.codes)
            and re.search(self.message, message.lower()) is not None
        )


RULES = (
    Rule(failure=Failure.EXPIRED, state="JOB_STATE_EXPIRED"),
    Rule(failure=Failure.EXPIRED, state="JOB_STATE_CANCELLED", message=_OWN_TIMEOUT),
    Rule(failure=Failure.CANCELLED, state="JOB_STATE_CANCELLED"),
    Rule(failure=Failure.UNASKED, codes=frozenset({ABORTED}), message=f"^{UNASKED_WORDS}"),
    Rule(failure=Failure.USER, codes=frozenset({INVALID_ARGUMENT}), message=_USER_STATUS),
    Rule(failure=Failure.PROGRAM, codes=frozenset({INVALID_ARGUMENT})),
    Rule(failure=Failure.QUOTA, codes=frozenset({RESOURCE_EXHAUSTED}), message="quota"),
    Rule(failure=Failure.STOCKOUT, codes=frozenset({RESOURCE_EXHAUSTED})),
    Rule(failure=Failure.EXPIRED, codes=frozenset({DEADLINE_EXCEEDED}), message=_OWN_TIMEOUT),
    Rule(failure=Failure.PREEMPTED, codes=frozenset({ABORTED, INTERNAL, UNAVAILABLE}), message=_PREEMPTED),
    Rule(failure=Failure.STOCKOUT, codes=frozenset({INTERNAL, UNAVAILABLE}), message=_NO_MACHINES),
    Rule(failure=Failure.INTERNAL, codes=frozenset({DEADLINE_EXCEEDED, ABORTED, INTERNAL, UNAVAILABLE, DATA_LOSS})),
    Rule(
        failure=Failure.REFUSED,
        codes=frozenset({NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION, UNIMPLEMENTED, UNAUTHENTICATED}),
    ),
    Rule(failure=Failure.USER, codes=_UNSAID, message=_USER_STATUS),
    Rule(failure=Failure.PROGRAM, codes=_UNSAID, message="non-zero status"),
    Rule(failure=Failure.PREEMPTED, codes=_UNSAID, message=_PREEMPTED),
    Rule(failure=Failure.QUOTA, codes=_UNSAID, message="quota"),
    Rule(failure=Failure.STOCKOUT, codes=_UNSAID, message=_NO_MACHINES),
    Rule(failure=Failure.INTERNAL, codes=_UNSAID, message="internal error"),
    Rule(failure=Failure.PROGRAM),
)
"""The first row that holds decides."""


def find_rule(state: str, code: int, message: str) -> Rule:
    """Return the row of the table for a bad end.

    Args:
        state: The job's, for example `JOB_STATE_FAILED`.
        code: google.rpc.Code of its error, 0 for none.
        message: Of its error.
    """
    return next(rule for rule in RULES if rule.holds(state, code, message))


def classify(state: str, code: int, message: str) -> Failure:
    """Return the kind of a bad end; see `find_rule`."""
    return find_rule(state, code, message).failure


def may_follow(failures: Sequence[Failure], retries: int) -> bool:
    """Return whether another job follows a task's failed ones.

    What the service did to jobs and what the program did are counted apart, and neither is counted by the tries of
    Airflow, which also grow when a heartbeat, a worker or an answer is lost.

    Args:
        failures: Of all jobs of this generation of the task.
        retries: How many more jobs may follow failures that are not the service's.
    """
    services = sum(failure in OF_THE_SERVICE for failure in failures)
    for_good = bool(FOR_GOOD.intersection(failures))
    return not for_good and services < MAX_SERVICE_FAILURES and len(failures) - services <= retries


def pause(failures: Sequence[Failure]) -> timedelta:
    """Return how long after the last failure the next job is created.

    Doubles with each that a job at once would repeat.
    """
    if not failures or failures[-1] not in NEED_TIME:
        return timedelta(0)
    before = sum(failure in NEED_TIME for failure in failures) - 1
    wait: timedelta = FIRST_PAUSE * 2**before
    return min(wait, LONGEST_PAUSE)


def with_spot_fallback(custom_job: Mapping[str, Any], failures: Sequence[Failure]) -> ProtoJson:
    """Return the job to create after these failures: twice on spot machines, or on those waited for, then on demand."""
    job: ProtoJson = copy.deepcopy(dict(custom_job))
    scheduling = (job.get("job_spec") or job.get("trial_job_spec") or {}).get("scheduling", {})
    lost = sum(failure in (Failure.PREEMPTED, Failure.STOCKOUT) for failure in failures)
    if scheduling.get("strategy") in ("SPOT", "FLEX_START") and lost >= JOBS_ON_SPOT:
        del scheduling["strategy"]
        scheduling.pop("max_wait_duration", None)
    return job

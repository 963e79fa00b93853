"""What can go wrong, by who can mend it. Imports nothing.

TrainerError                 exit code 1: trying again may help
├── StorageError             storage or BigQuery did not answer, also after retries
├── Preempted                exit code 143, as if SIGTERM had ended it: starting it again goes on where it was
├── PeerLost                 another replica of the training went away: this one starts again and waits for it
└── RequestError             exit code 2: trying again cannot help
    ├── ContractError        a document breaks its schema
    ├── DiskFull             the machine's disk has no room for what the job writes
    └── DataError            shards, statistics or a stored model are not what the documents say
        └── Diverged         the loss is not a number
"""

from __future__ import annotations

OUTAGE_S = 600.0
"""For which a service that does not answer is asked again: another job would begin with the minutes that a machine's
start takes, and do anew what this one has in memory."""
NEW_ATTEMPT = "Trigger the DAG again with this run's as_of and the Param force"
"""A way out where clearing a task would find what is recorded; a new attempt makes all of it in a folder of its own."""


class TrainerError(Exception):
    """A message in four parts: where, what was found, what was expected, the way out.

    Args:
        where: Document and field, file, or flag.
        found: What stands there.
        expected: What would have been right.
        way_out: What to do about it.
    """

    exit_code = 1

    def __init__(self, where: str, found: str, expected: str = "", way_out: str = "") -> None:
        self.where, self.found, self.expected, self.way_out = where, found, expected, way_out
        sentences = [f"{where}: {found}", f"Expected {expected}" if expected else "", way_out]
        super().__init__(" ".join(part.rstrip(".") + "." for part in sentences if part))


class StorageError(TrainerError):
    """Storage or BigQuery did not do what was asked, after retries."""


class Preempted(TrainerError):
    """The machine was taken away (SIGTERM) and the training's state is saved."""

    exit_code = 143


class PeerLost(TrainerError):
    """Another replica went away in the middle of a step.

    Args:
        where: Of the training.
        found: What TensorFlow reports.
        step: Reached by this process, where its message may as well be an error of the program; else None.
    """

    def __init__(self, where: str, found: str, *, step: int | None = None) -> None:
        super().__init__(where, found)
        self.step = step


class RequestError(TrainerError):
    """What was asked cannot be done; trying again gives the same answer."""

    exit_code = 2


class ContractError(RequestError):
    """A document is missing, is not JSON, or breaks its schema."""


class DiskFull(RequestError):
    """The machine's disk is full: the same job fills it again."""


class DataError(RequestError):
    """Shards, statistics, rows or a stored model are not what the documents say."""


class Diverged(DataError):
    """The loss of a training is not a number any more."""

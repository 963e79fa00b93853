"""Every error this package raises on purpose; this module imports nothing of the package.

    RetrainingError
    ├── SettingsError     the environment does not say where things are
    ├── SpecError         a model's YAML or SQL file is wrong
    ├── PlanError         this run's Params ask for something impossible
    │   └── BudgetError   it may cost more than its model's budget
    ├── DataError         the examples are not fit to train on
    ├── ContractError     a document does not obey its contract
    ├── JobError          a job ended badly
    ├── RunError          tasks of a run did not succeed
    └── ConflictError     somebody else changed what this run wanted to change

Each message has four parts: where, what was found, what was expected, the way out.
"""

from __future__ import annotations

GRANT = (
    "Give the connection's account the role with the permission that the message names (docs/composer.md, Roles), or "
    "correct RETRAINING_PROJECT"
)
"""The way out where Google refuses the connection's account."""


class RetrainingError(Exception):
    """A failure with the place, the finding, the expectation and the way out.

    Args:
        where: File, document, setting or resource the error is about.
        found: What is there.
        expected: What should be there; may be empty when `found` says it all.
        way_out: What a person can do about it.
    """

    def __init__(self, where: str, found: str, expected: str = "", way_out: str = "") -> None:
        self.where = where
        self.found = found
        self.expected = expected
        self.way_out = way_out
        super().__init__(where, found, expected, way_out)

    def __str__(self) -> str:
        """Return the four parts as one line."""
        parts = [f"{self.where}: {_sentence(self.found)}"]
        if self.expected:
            parts.append(_sentence(f"Expected {self.expected}"))
        if self.way_out:
            parts.append(_sentence(self.way_out))
        return " ".join(parts)


class SettingsError(RetrainingError):
    """The environment does not say where things are."""


class SpecError(RetrainingError):
    """A model's YAML or SQL file is wrong."""


class PlanError(RetrainingError):
    """This run's Params ask for something impossible."""


class BudgetError(PlanError):
    """The run may cost more than its model's budget."""


class DataError(RetrainingError):
    """The examples are not fit to train on."""


class ContractError(RetrainingError):
    """A document does not obey its contract."""


class JobError(RetrainingError):
    """A job ended badly."""


class RunError(RetrainingError):
    """Tasks of a run did not succeed."""


class ConflictError(RetrainingError):
    """Somebody else changed what this run wanted to change; reading again may help."""


def is_final(error: RetrainingError) -> bool:
    """Tell whether trying again cannot mend an error: all but a job's bad end and somebody else's change."""
    return not isinstance(error, JobError | ConflictError)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?…" else text + "."

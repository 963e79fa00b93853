"""Every error this package raises on purpose; this module imports nothing of the package.

    RetrainingError
    ├── SettingsError     the environment does not say where things are
    ├── SpecError         a model's YAML or SQL file is wrong
    ├── PlanError         this run's Params ask for something impossible
    │   ├── BudgetError   it may cost more than its model's budget
    │   └── QuotaError    it needs more at once than its region's quota, or found no room in time
    ├── DataError         the examples are not fit to train on
    ├── ContractError     a document does not obey its contract
    ├── JobError          a job ended badly
    ├── RunError          tasks of a run did not succeed
    ├── ConflictError     somebody else changed what this run wanted to change
    └── TrackingError     an experiment tracker did not take a run

Each message has four parts: where, what was found, what was expected, the way out; there may stand the nearest of the
words that exist.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

GRANT = (
    "Give the connection's account the role with the permission that the message names (docs/composer.md, Roles), or "
    "correct RETRAINING_PROJECT (of statements RETRAINING_QUERY_PROJECT, where it is set)"
)
"""The way out where Google refuses the connection's account."""


# What a database or a shell paints its messages with (ECMA-48): sequences with parameters, titles, single characters.
_ESCAPES = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?")
# The rest of them, and what turns the direction of a text around; line breaks and tabs stay.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SECRETS = (
    (re.compile(r"(?<=://)[^\s/:@]*:[^\s/]*@"), "***@"),
    (re.compile(r"(?i)(\bbearer +)[\w.~+/=-]{8,}"), r"\1***"),
    (re.compile(r"\bya29\.[\w.-]+"), "***"),
    (
        re.compile(
            r"(?i)((?:token|password|passwd|secret|api_?key|private_key)[\"']?(?:=|[\"']:) *[\"']?|(?:signature|sig)=)"
            r"[^\s\"'&,;]+"
        ),
        r"\1***",
    ),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"), "***"),
)


def plain_text(text: str) -> str:
    """Return a text as a page, a log and a mail may show it: without a terminal's escapes, and without secrets.

    Taken for a secret are an address's login with a password, a bearer token, a private key, and what stands after
    `password=`, `"token": ` and their like.
    """
    text = _CONTROLS.sub("", _ESCAPES.sub("", text))
    for secret, shown in _SECRETS:
        text = secret.sub(shown, text)
    return text


class RetrainingError(Exception):
    """A failure with the place, the finding, the expectation and the way out.

    Args:
        where: File, document, setting or resource the error is about.
        found: What is there.
        expected: What should be there; may be empty when `found` says it all.
        way_out: What a person can do about it.
    """

    def __init__(self, where: str, found: str, expected: str = "", way_out: str = "") -> None:
        self.where = plain_text(where)
        self.found = plain_text(found)
        self.expected = plain_text(expected)
        self.way_out = plain_text(way_out)
        super().__init__(self.where, self.found, self.expected, self.way_out)

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


class QuotaError(PlanError):
    """A job needs more at once than its region's quota, or found no room in time."""


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


class TrackingError(RetrainingError):
    """An experiment tracker did not take a run: no task fails for it."""


def is_final(error: RetrainingError) -> bool:
    """Return whether trying again cannot mend an error: all but a job's bad end and somebody else's change."""
    return not isinstance(error, JobError | ConflictError)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?…" else text + "."


def suggest(word: str, known: Sequence[str]) -> str:
    """Return `Did you mean 'x'?` when one of the known words is near, else nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else ""

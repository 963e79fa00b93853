"""What a trial leaves: a file of answers without a name of anybody's, and where two such files differ.

The file is for people and for the next trial: `retraining trial --against FILE` on another cloud, the local one too,
names each fact that is another one there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TypeAlias

from retraining.core.documents.document import format_time, read_object
from retraining.core.errors import ContractError
from retraining.core.settings import EMAIL_PATTERN
from retraining.core.untyped import JsonObject

KIND = "retraining-trial"
EDITION = 1
Fact: TypeAlias = "bool | int | str | None"
_EMAIL = re.compile(EMAIL_PATTERN)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one probe came to.

    Attributes:
        id: The row of docs/assumptions.md.
        asked: What was asked.
        supposed: The facts that the row supposes.
        found: Those that were seen, by the same names; none where it failed.
        holds: Whether they are the same; None: nothing is known.
        problem: Why nothing is known.
        measured: Seconds and counts, for reading.
        seconds: How long it took.
    """

    id: str
    asked: str
    supposed: Mapping[str, Fact]
    found: Mapping[str, Fact]
    holds: bool | None
    problem: str | None
    measured: Mapping[str, float]
    seconds: float

    def line(self) -> str:
        """Return it as one line."""
        state = {True: "holds", False: "FALSE", None: "unknown"}[self.holds]
        wrong = [
            f"{name}: {self.found.get(name)!r}, supposed {fact!r}"
            for name, fact in self.supposed.items()
            if self.holds is False and self.found.get(name) != fact
        ]
        measured = [f"{name} {value:g}" for name, value in self.measured.items()]
        told = "; ".join([self.asked, *wrong, *([self.problem] if self.problem else []), *measured])
        return f"{state:<8} {self.id:<7} {told} ({self.seconds:g} s)"


class Names:
    """Names that are somebody's, and the words that stand for them in the record.

    Args:
        names: The words by the name: `{"my-project": "PROJECT"}`; empty names are left out.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = sorted(((name, word) for name, word in names.items() if name), key=lambda pair: -len(pair[0]))

    def hide(self, fact: Fact) -> Fact:
        """Return a fact without them; addresses of accounts are hidden too."""
        if not isinstance(fact, str):
            return fact
        for name, word in self._names:
            fact = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", word, fact)
        return _EMAIL.sub("ACCOUNT", fact)


def to_text(answers: Sequence[Answer], software: str, asked_at: datetime, region: str) -> str:
    """Return the file's text.

    Args:
        answers: In their order.
        software: Version that asked.
        asked_at: When the trial began.
        region: Where: Google's, no name of anybody's.
    """
    values = {
        "kind": KIND,
        "edition": EDITION,
        "software": software,
        "asked_at": format_time(asked_at),
        "region": region,
        "answers": [asdict(each) for each in answers],
    }
    return json.dumps(values, indent=1, sort_keys=False, ensure_ascii=False) + "\n"


def read_answers(data: bytes, where: str) -> dict[str, Answer]:
    """Return the answers of a file, by the row's id.

    Raises:
        ContractError: It is no such file.
    """
    expected = f"a file that `retraining trial` wrote, of edition {EDITION}"
    values = read_object(data, where)
    if (values.get("kind"), values.get("edition")) != (KIND, EDITION):
        raise ContractError(where, f"kind {values.get('kind')!r}, edition {values.get('edition')!r}", expected)
    try:
        answers = [_read(each) for each in values["answers"]]
    except (AttributeError, KeyError, TypeError) as error:
        raise ContractError(where, f"an answer without {error}", expected) from error
    return {each.id: each for each in answers}


def _read(values: JsonObject) -> Answer:
    found, supposed, measured = dict(values["found"]), dict(values["supposed"]), dict(values["measured"])
    holds, problem = values["holds"], values["problem"]
    if not (holds is None or isinstance(holds, bool)) or not (problem is None or isinstance(problem, str)):
        raise TypeError("holds and problem as they are written")
    return Answer(
        id=str(values["id"]),
        asked=str(values["asked"]),
        supposed=supposed,
        found=found,
        holds=holds,
        problem=problem,
        measured=measured,
        seconds=float(values["seconds"]),
    )


def differences(here: Sequence[Answer], there: Mapping[str, Answer]) -> list[str]:
    """Return a line for each fact that two trials saw otherwise, and for each row that one of them knows nothing of.

    Args:
        here: Of this trial.
        there: Of the one in the file.
    """
    lines = []
    for mine in here:
        other = there.get(mine.id)
        if other is None:
            lines.append(f"{mine.id} is not in the file")
        elif (mine.problem is None) != (other.problem is None):
            lines.append(f"{mine.id}: here {mine.problem or 'an answer'}; in the file {other.problem or 'an answer'}")
        else:
            lines += [
                f"{mine.id}, {name}: here {mine.found.get(name)!r}; in the file {other.found.get(name)!r}"
                for name in dict.fromkeys([*mine.found, *other.found])
                if mine.found.get(name) != other.found.get(name)
            ]
    known = {each.id for each in here}
    return [*lines, *(f"{each} is only in the file" for each in there if each not in known)]

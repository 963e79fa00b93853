"""Scoring of JSON lines in storage: what the lines must be, and whether the answers are as many.

A line is an instance with its key: `{"id": "a", "carrier": "UA", "distance": 12.5}`. A line of the answers has the key
and the prediction. Answers of a job lie in a folder of its own, and `current.json` in the destination names the one
that counts: readers see the old answers until that object is replaced, and then the new ones. A message says where a
line stands, never what it holds: whoever reads logs may not be one who may read the file.

Of keys 8 bytes each are kept, whatever their length, to tell whether two sets are the same: ten million are 80 MB, and
that two of them look alike has a chance of 3 in a million.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NoReturn, cast

from retraining.core.data.span_store import StoredObject
from retraining.core.documents.document import canonical_json, format_time
from retraining.core.documents.json_text import read_json
from retraining.core.documents.scoring import Predictions, ScoringInput, ScoringPlan
from retraining.core.errors import DataError
from retraining.core.scoring.answers import SHOWN
from retraining.core.untyped import JsonObject

Key = str | int
PlacedKey = tuple[Key, str]
"""A key, and where it stands."""
_GROUPS = 256


class KeySet:
    """The keys of some lines."""

    def __init__(self) -> None:
        self.lines = 0
        self._sum = 0
        self._groups = [array("Q") for _ in range(_GROUPS)]

    @classmethod
    def of(cls, keys: Iterable[Key]) -> KeySet:
        """Return the set of some keys, one by one."""
        found = cls()
        for key in keys:
            mark = _mark(key)
            found.lines += 1
            found._sum = (found._sum + mark) % 2**64
            found._groups[mark % _GROUPS].append(mark)
        return found

    @property
    def digest(self) -> str:
        """What tells these keys, and how often each stands, from any others."""
        return f"{self.lines}-{self._sum:016x}"

    def doubled(self) -> set[int]:
        """Return the marks of keys that stand more than once."""
        return self._find(lambda index: [mark for mark, times in Counter(self._groups[index]).items() if times > 1])

    def without(self, other: KeySet) -> set[int]:
        """Return the marks of keys that the other set does not have."""
        return self._find(lambda index: set(self._groups[index]).difference(other._groups[index]))

    def _find(self, marks: Callable[[int], Iterable[int]]) -> set[int]:
        """Go from group to group: only one of them needs more memory than its marks."""
        return {mark for index in range(_GROUPS) for mark in marks(index)}


def find_places(marks: set[int], placed: Iterable[PlacedKey], most: int) -> str:
    """Return where keys that have one of the marks stand, the first few of them."""
    found: list[str] = []
    for key, place in placed:
        if _mark(key) in marks:
            if len(found) == most:
                return "; ".join([*found, "…"])
            found.append(place)
    return "; ".join(found)


def _mark(key: Key) -> int:
    """Return a key's mark; 7 and "7" have the same: BigQuery and Vertex AI write both alike."""
    return int.from_bytes(hashlib.blake2b(str(key).encode(), digest_size=8).digest(), "little")


RESULTS, ERRORS = "prediction.results-", "prediction.errors_stats-"
"""What Vertex AI calls the objects of answers, and of what has none."""

PIECE_BYTES = 8_000_000
"""Of a file that are in memory while its lines are counted."""

_GZIP = b"\x1f\x8b"
_LIMITS = "not UTF-8, a name that stands twice, a number that is not finite or too long, or too many levels"
_WAY_OUT = "Correct the files, then clear plan and what follows it"


def split_lines(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that comes in pieces, with their numbers, without the blank ones."""
    number, rest = 0, b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            number += 1
            if line.strip():
                yield number, line
    if rest.strip():
        yield number + 1, rest


def instance_key(plan: ScoringPlan, where: str, line: bytes) -> Key:
    """Return the key of a line that is an instance of the version.

    Args:
        plan: The scoring.
        where: File and number of the line.
        line: As it stands there.

    Raises:
        DataError: It is none.
    """
    wanted = [plan.key, *(feature.name for feature in plan.features)]
    expected = f"JSON lines, each with {', '.join(wanted)}"
    if line.startswith(_GZIP):
        way_out = "Unpack it (gunzip): a batch prediction reads JSON lines as plain text"
        raise DataError(where, "a compressed file", f"plain {expected}", way_out)
    try:
        values = read_json(line)
    except ValueError as error:
        raise DataError(where, f"no JSON: {_reason(error)}", expected, _WAY_OUT) from None
    if not isinstance(values, dict):
        raise DataError(where, f"no object but {_kind(values)}", expected, _WAY_OUT)
    if missing := [name for name in wanted if name not in values]:
        raise DataError(where, f"no {', '.join(missing)}", expected, _WAY_OUT)
    if more := len(values) - len(set(wanted)):
        raise DataError(where, f"{more} more than these", f"{expected}, and nothing else", _WAY_OUT)
    key = values[plan.key]
    if not _is_key(key):
        raise DataError(where, f"the key {plan.key} is {_kind(key)}", "a text or a whole number", _WAY_OUT)
    return cast(Key, key)


def answer_key(plan: ScoringPlan, where: str, line: bytes) -> Key:
    """Return the key of a line of answers whose prediction can be read.

    Raises:
        DataError: It is of another form.
    """
    with contextlib.suppress(ValueError):
        values = read_json(line)
        if isinstance(values, dict) and _is_key(values.get("key")) and _is_answer(plan, values.get("prediction")):
            return cast(Key, values["key"])
    form = f"{plan.answer_size} numbers" if plan.answer_size else "a number"
    way_out = f"{plan.destination.table} stays as it was. Compare the serving image with the version's signature"
    raise DataError(where, "an answer of another form", f"a key, and {form} as {plan.output!r}", way_out)


def require_distinct(plan: ScoringPlan, sent: KeySet, placed: Iterable[PlacedKey]) -> None:
    """Refuse lines of which some have the same key: their answers could not be told apart.

    Args:
        plan: The scoring.
        sent: The keys of all lines.
        placed: The same once more, to say where some stand.

    Raises:
        DataError: Some have.
    """
    if doubled := sent.doubled():
        found = f"{len(doubled)} {plan.key} more than once in {sent.lines} lines: {find_places(doubled, placed, SHOWN)}"
        raise DataError(str(plan.source.files), found, "each key once", _WAY_OUT)


def build_input(plan: ScoringPlan, objects: Sequence[StoredObject], sent: KeySet) -> ScoringInput:
    """Return the document of the instances.

    Raises:
        DataError: There is no file, or no line.
    """
    source = str(plan.source.files)
    if not sent.lines:
        found = "no line" if objects else "no file"
        raise DataError(source, found, "one at least", f"Correct the address, or have the file written. {_WAY_OUT}")
    return ScoringInput(
        model=plan.model,
        run_key=plan.run_key,
        table=source,
        key_type=None,
        rows=sent.lines,
        fingerprint=fingerprint(objects),
        keys=sent.digest,
        bytes_processed=sum(item.bytes for item in objects),
    )


def fingerprint(objects: Sequence[StoredObject]) -> str:
    """Return what tells files from others, and from themselves once they are written again."""
    return hashlib.sha256(canonical_json([[item.uri, item.generation] for item in objects])).hexdigest()


def is_whole(instances: ScoringInput, answered: KeySet) -> bool:
    """Return whether there is an answer for each line, and no other; a document of an earlier release has no keys."""
    return answered.lines == instances.rows and instances.keys in (None, answered.digest)


def describe_difference(
    sent: KeySet,
    answered: KeySet,
    asked: Callable[[], Iterable[PlacedKey]],
    said: Callable[[], Iterable[PlacedKey]],
) -> Iterator[str]:
    """Yield how many lines have no answer, or several, how many answers are of no line, and where some of them stand.

    Args:
        sent: The keys of the lines.
        answered: The keys of the answers.
        asked: Gives the lines' keys once more.
        said: Gives the answers' keys once more.
    """
    for what, marks, placed in (
        ("without an answer", sent.without(answered), asked),
        ("answered more than once", answered.doubled(), said),
        ("answered and not asked", answered.without(sent), said),
    ):
        if marks:
            yield f"{len(marks)} {what}: {find_places(marks, placed(), SHOWN)}"


def refuse_answers(plan: ScoringPlan, predictions: Predictions, found: Iterable[str]) -> NoReturn:
    """Refuse answers that are not one per line, before `current.json` names them.

    Raises:
        DataError: Always.
    """
    way_out = f"{plan.destination.table} stays as it was. Correct these lines, then trigger the DAG again with Force"
    raise DataError(predictions.table, "; ".join(filter(None, found)), "one for each", way_out)


def current_uri(plan: ScoringPlan) -> str:
    """Return the object that names the answers that count."""
    return f"{plan.destination.table}/current.json"


def current(plan: ScoringPlan, instances: ScoringInput, predictions: Predictions) -> bytes:
    """Return what it says."""
    values = {
        "predictions": f"{predictions.table}/{RESULTS}*",
        "rows": instances.rows,
        "model_version": plan.version.version_id,
        "scored_as_of": format_time(plan.as_of),
        "job": predictions.job,
    }
    return (json.dumps(values, indent=2) + "\n").encode()


def time_of_current(data: bytes, where: str) -> datetime:
    """Return of which time the answers are that `current.json` names.

    Raises:
        DataError: It is none of this system's.
    """
    with contextlib.suppress(ValueError, TypeError, KeyError):
        values = cast(JsonObject, read_json(data))
        return datetime.fromisoformat(values["scored_as_of"])
    way_out = "Name another folder as destination; or delete this object, if it may go"
    raise DataError(where, "no record of a scoring", "the one that an earlier scoring left, or nothing", way_out)


def _reason(error: ValueError) -> str:
    """Return why a text is no JSON, without any of it."""
    return f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else _LIMITS


def _kind(value: object) -> str:
    """Return what JSON calls the kind of a value."""
    if isinstance(value, bool) or value is None:
        return "true, false or null"
    return {str: "a text", int: "a number", float: "a number", list: "a list"}.get(type(value), "an object")


def _is_key(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_answer(plan: ScoringPlan, prediction: object) -> bool:
    """Return whether a prediction is what the query of answers in a table takes for one."""
    value = prediction.get(plan.output) if isinstance(prediction, dict) else prediction
    numbers = value if isinstance(value, list) else [value]
    fits = len(numbers) == plan.answer_size if plan.answer_size else len(numbers) > 0
    return fits and all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers)

"""Scoring of JSON lines in storage: what the lines must be, and whether the answers are as many.

A line is an instance with its key: `{"id": "a", "carrier": "UA", "distance": 12.5}`. A line of the answers has the key
and the prediction. Answers of a job lie in a folder of its own, and `current.json` in the destination names the one
that counts: readers see the old answers until that object is replaced, and then the new ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from retraining.core.data.span_store import StoredObject
from retraining.core.documents.document import canonical_json, format_time
from retraining.core.documents.scoring import Predictions, ScoringInput, ScoringPlan
from retraining.core.errors import DataError

RESULTS, ERRORS = "prediction.results-", "prediction.errors_stats-"
"""What Vertex AI calls the objects of answers, and of what has none."""

PIECE_BYTES = 8_000_000
"""Of a file that are in memory while its lines are counted."""

_GZIP = b"\x1f\x8b"
_WAY_OUT = "Correct the files, then clear plan and what follows it"


class LineCount:
    """Counts the lines of one file, piece by piece, without the blank ones."""

    def __init__(self) -> None:
        self.lines = 0
        self.first = b""
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Count what a piece ends; what it begins is kept."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        for line in whole:
            self._count(line)

    def end(self) -> None:
        """Count a last line that nothing ends."""
        self._count(self._rest)
        self._rest = b""

    def _count(self, line: bytes) -> None:
        if line.strip():
            self.first = self.first or line
            self.lines += 1


def require_instance(plan: ScoringPlan, uri: str, first: bytes) -> None:
    """Refuse a file whose first line is no instance of the version.

    Raises:
        DataError: It is none.
    """
    if not first:
        return
    wanted = [plan.key, *(feature.name for feature in plan.features)]
    expected = f"JSON lines, each with {', '.join(wanted)}"
    if first.startswith(_GZIP):
        raise DataError(uri, "a compressed file", f"plain {expected}", "Unpack it: a batch prediction reads text")
    try:
        values = json.loads(first)
    except ValueError:
        raise DataError(uri, f"a first line {first[:80]!r}", expected, _WAY_OUT) from None
    if not isinstance(values, dict):
        raise DataError(uri, f"a first line that is no object: {first[:80]!r}", expected, _WAY_OUT)
    if missing := [name for name in wanted if name not in values]:
        raise DataError(uri, f"no {', '.join(missing)} in its first line", expected, _WAY_OUT)
    if strange := [name for name in values if name not in wanted]:
        raise DataError(uri, f"{', '.join(strange)} in its first line", f"{expected}, and nothing else", _WAY_OUT)


def build_input(plan: ScoringPlan, objects: Sequence[StoredObject], lines: int) -> ScoringInput:
    """Return the document of the instances.

    Raises:
        DataError: There is no file, or no line.
    """
    source = str(plan.source.files)
    if not lines:
        found = "no line" if objects else "no file"
        raise DataError(source, found, "one at least", f"Correct the address, or have the file written. {_WAY_OUT}")
    names = canonical_json([[item.uri, item.generation] for item in objects])
    return ScoringInput(
        model=plan.model,
        run_key=plan.run_key,
        table=source,
        key_type=None,
        rows=lines,
        fingerprint=hashlib.sha256(names).hexdigest(),
        bytes_processed=sum(item.bytes for item in objects),
    )


def require_whole(
    plan: ScoringPlan, instances: ScoringInput, predictions: Predictions, answers: int, errors: str
) -> None:
    """Refuse answers that are not as many as the instances, before `current.json` names them.

    Args:
        plan: The scoring.
        instances: What was sent.
        predictions: Of the job.
        answers: Lines of answers.
        errors: What the job says of lines that have none.

    Raises:
        DataError: There are fewer or more.
    """
    if answers == instances.rows:
        return
    found = f"{answers} answers for {instances.rows} lines{f'; {errors[:500]}' if errors else ''}"
    way_out = f"{plan.destination.table} stays as it was. Correct these lines, then trigger the DAG again with Force"
    raise DataError(predictions.table, found, "one for each", way_out)


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

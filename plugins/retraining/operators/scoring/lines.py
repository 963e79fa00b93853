"""What the tasks of a scoring do with JSON lines in storage instead of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from retraining.core.catalog.cost import load_prices
from retraining.core.data.span_store import StoredObject
from retraining.core.documents import Predictions, ScoringInput, ScoringPlan, ScoringResult
from retraining.core.errors import DataError
from retraining.core.scoring import answers, lines
from retraining.core.scoring.lines import Key, KeySet, PlacedKey
from retraining.core.settings import include_path
from retraining.hooks.ports import CloudPort

_WAY_OUT = "Once nobody writes there any more, trigger the DAG again with Force"


def take_lines(cloud: CloudPort, planned: ScoringPlan) -> ScoringInput:
    """Look whether every line is an instance with a key of its own, and count them."""
    asked = _instances(cloud, planned)
    sent = KeySet.of(asked.keys())
    lines.require_distinct(planned, sent, asked.placed())
    return lines.build_input(planned, asked.objects, sent)


def newest_lines(cloud: CloudPort, planned: ScoringPlan) -> datetime | None:
    """Return of which time the answers are that the destination names; None: it names none."""
    uri = lines.current_uri(planned)
    data = cloud.artifacts.read_object(uri)
    return lines.time_of_current(data, uri) if data else None


def write_lines(
    cloud: CloudPort,
    planned: ScoringPlan,
    sent: ScoringInput,
    predictions: Predictions,
    require_claim: Callable[[], None],
) -> ScoringResult:
    """Let the destination name the answers of a job, if there is one for each line.

    Args:
        cloud: The hooks.
        planned: The scoring.
        sent: What was sent.
        predictions: What the job left.
        require_claim: Looks whether the destination is still this run's.

    Raises:
        ConflictError: It is not.
        DataError: Answers are missing, or too many; or newer ones are named.
    """
    found = cloud.objects.match(f"{predictions.table}/{lines.RESULTS}*")
    said = _Lines(cloud, planned, found, lines.answer_key)
    answered = KeySet.of(said.keys())
    if not lines.is_whole(sent, answered):
        lines.refuse_answers(planned, predictions, _problems(cloud, planned, sent, predictions, said, answered))
    _name_answers(cloud, planned, lines.current(planned, sent, predictions), require_claim)
    return answers.build_result(planned, sent, predictions, load_prices(include_path()))


def _name_answers(cloud: CloudPort, planned: ScoringPlan, said: bytes, require_claim: Callable[[], None]) -> None:
    """Put `current.json` there, by compare and set: whoever has the claim after this run has changed it, or will."""
    uri = lines.current_uri(planned)
    while True:
        data, generation = cloud.artifacts.read_generation(uri)
        answers.require_newest(planned, lines.time_of_current(data, uri) if data else None, uri)
        require_claim()  # after the look: a claim that is lost later goes with a change of the object
        if cloud.artifacts.write_if(uri, said, generation) is not None:
            return


@dataclass(frozen=True)
class _Lines:
    """The lines of some files, and how a key is read from one; each use reads the files anew."""

    cloud: CloudPort
    planned: ScoringPlan
    objects: Sequence[StoredObject]
    read_key: Callable[[ScoringPlan, str, bytes], Key]

    def keys(self) -> Iterator[Key]:
        """Yield the key of each line."""
        return (key for key, _ in self.placed())

    def placed(self) -> Iterator[PlacedKey]:
        """Yield the key of each line, and its place."""
        for item in self.objects:
            for number, line in lines.split_lines(self._pieces(item)):
                where = f"{item.uri}, line {number}"
                yield self.read_key(self.planned, where, line), where

    def _pieces(self, item: StoredObject) -> Iterator[bytes]:
        for start in range(0, item.bytes, lines.PIECE_BYTES):
            end = min(item.bytes, start + lines.PIECE_BYTES)
            piece = self.cloud.artifacts.read_ranges({item.uri: (start, end)}).get(item.uri, b"")
            if len(piece) < end - start:
                raise DataError(item.uri, "it was deleted or written again meanwhile", "files that stay", _WAY_OUT)
            yield piece


def _instances(cloud: CloudPort, planned: ScoringPlan) -> _Lines:
    return _Lines(cloud, planned, cloud.objects.match(str(planned.source.files)), lines.instance_key)


def _problems(
    cloud: CloudPort,
    planned: ScoringPlan,
    sent: ScoringInput,
    predictions: Predictions,
    said: _Lines,
    answered: KeySet,
) -> Iterator[str]:
    """Say what is missing or too much; the files are read once more for that."""
    yield f"{answered.lines} answers for {sent.rows} lines"
    asked = _instances(cloud, planned)
    if lines.fingerprint(asked.objects) != sent.fingerprint:
        yield f"{planned.source.files} has changed since snapshot read it"
    else:
        sent_keys = KeySet.of(asked.keys())
        yield from lines.describe_difference(sent_keys, answered, asked.placed, said.placed)
    errors = [item.uri for item in cloud.objects.match(f"{predictions.table}/{lines.ERRORS}*") if item.bytes]
    if errors:
        yield f"the service's own errors are in {', '.join(errors)}"

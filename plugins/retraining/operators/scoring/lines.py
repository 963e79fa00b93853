"""What the tasks of a scoring do with JSON lines in storage instead of tables."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.catalog.cost import load_prices
from retraining.core.data.span_store import StoredObject
from retraining.core.documents import Predictions, ScoringInput, ScoringPlan, ScoringResult
from retraining.core.scoring import answers, lines
from retraining.core.settings import include_path
from retraining.hooks.ports import CloudPort


def take_lines(cloud: CloudPort, planned: ScoringPlan) -> ScoringInput:
    """Count the lines to score, and look whether each file begins with an instance."""
    objects = cloud.objects.match(str(planned.source.files))
    total = 0
    for item in objects:
        counted = _count(cloud, item)
        lines.require_instance(planned, item.uri, counted.first)
        total += counted.lines
    return lines.build_input(planned, objects, total)


def write_lines(cloud: CloudPort, planned: ScoringPlan, sent: ScoringInput, predictions: Predictions) -> ScoringResult:
    """Let the destination name the answers of a job, if they are as many as the lines."""
    total = sum(_count(cloud, item).lines for item in cloud.objects.match(f"{predictions.table}/{lines.RESULTS}*"))
    errors = " ".join(
        (cloud.artifacts.read_object(item.uri) or b"").decode(errors="replace").strip()
        for item in cloud.objects.match(f"{predictions.table}/{lines.ERRORS}*")
    )
    lines.require_whole(planned, sent, predictions, total, errors)
    cloud.artifacts.overwrite(lines.current_uri(planned), lines.current(planned, sent, predictions), "application/json")
    return answers.build_result(planned, sent, predictions, load_prices(include_path()))


def _count(cloud: CloudPort, item: StoredObject) -> lines.LineCount:
    counted = lines.LineCount()
    for piece in _pieces(cloud, item):
        counted.add(piece)
    counted.end()
    return counted


def _pieces(cloud: CloudPort, item: StoredObject) -> Iterator[bytes]:
    for start in range(0, item.bytes, lines.PIECE_BYTES):
        end = min(item.bytes, start + lines.PIECE_BYTES)
        yield cloud.artifacts.read_ranges({item.uri: (start, end)}).get(item.uri, b"")

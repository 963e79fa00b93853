"""JSON lines to score: split piece by piece, each held to what the version reads, and compared by their keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import ScoringPlan
from retraining.core.errors import DataError
from retraining.core.scoring import lines
from retraining.core.scoring.lines import KeySet, find_places
from tests.support.contracts import EXAMPLES
from tests.support.refusals import refuses

PLAN = json.loads((EXAMPLES / "scoring_plan__query.json").read_bytes())
LINE = {"flight_id": 7, "carrier": "UA", "distance": 12.5}


def plan(**changes: Any) -> ScoringPlan:
    """The example, changed."""
    return ScoringPlan.parse(json.dumps(PLAN | changes))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n \r\n", []),
        (b"abc\n\ndefg\nhi", [(1, b"abc"), (3, b"defg"), (4, b"hi")]),
        (b"\nabcdefgh\r\n", [(2, b"abcdefgh\r")]),
    ],
    ids=["empty", "blank", "no end", "one"],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_lines_come_in_pieces_of_any_size(text: bytes, expected: list[tuple[int, bytes]], size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert list(lines.split_lines(pieces)) == expected


def test_a_line_gives_its_key() -> None:
    assert lines.instance_key(plan(), "a, line 1", json.dumps(LINE).encode()) == 7


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"\x1f\x8b\x08\x00", r"a, line 4: a compressed file\. Expected plain JSON lines.*Unpack it \(gunzip\)"),
        (b"flight_id,carrier", "line 4: no JSON: Expecting value at character 0"),
        (b'{"flight_id": 7, "distance": NaN}', "line 4: no JSON: not UTF-8, "),
        (b"\xff", "line 4: no JSON: not UTF-8, "),
        (b"[" * 5000, "line 4: no JSON: not UTF-8, .* or too many levels"),
        (b"[1]", "no object but a list"),
        (
            json.dumps({"flight_id": 7, "carrier": "UA"}).encode(),
            r"line 4: no distance\. Expected JSON lines, each with",
        ),
        (json.dumps(LINE | {"late": 0}).encode(), r"line 4: 1 more than these\. Expected .*and nothing else"),
        (
            json.dumps(LINE | {"flight_id": None}).encode(),
            "the key flight_id is true, false or null. Expected a text or a whole",
        ),
        (json.dumps(LINE | {"flight_id": True}).encode(), "the key flight_id is true, false or null"),
        (json.dumps(LINE | {"flight_id": 1.5}).encode(), "the key flight_id is a number"),
    ],
)
def test_a_line_that_is_no_instance_is_named(line: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        lines.instance_key(plan(), "a, line 4", line)


@pytest.mark.parametrize(
    ("prediction", "size"),
    [(0.25, None), (1, None), ([0.25], None), ({"score": 0.25, "delay": 3.0}, None), ({"scores": [0.1, 0.9]}, 2)],
)
def test_an_answer_has_a_key_and_what_the_plan_says(prediction: Any, size: int | None) -> None:
    asked = plan(answer_size=size, output="scores" if size else "score")
    assert lines.answer_key(asked, "b", json.dumps({"key": "x", "prediction": prediction}).encode()) == "x"


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"key": "x"}',
        b'{"prediction": 0.5}',
        b'{"key": "x", "prediction": "late"}',
        b'{"key": "x", "prediction": {"delay": 1}}',
        b'{"key": "x", "prediction": []}',
    ],
)
def test_an_answer_of_another_form_is_refused(line: bytes) -> None:
    with refuses(
        DataError, where="b, line 2", found="another form", expected="number as 'score'", way_out="stays as it"
    ):
        lines.answer_key(plan(), "b, line 2", line)
    with pytest.raises(DataError, match="2 numbers"):
        lines.answer_key(plan(answer_size=2), "b", b'{"key": "x", "prediction": [0.5]}')


def test_the_order_of_keys_does_not_matter_and_anything_else_does() -> None:
    keys = ["a", "b", 7]
    digest = KeySet.of(keys).digest
    assert KeySet.of(reversed(keys)).digest == digest
    for other in (["a", "b"], ["a", "b", 8], ["a", "a", "b", 7], ["a", "b", 7, 7]):
        assert KeySet.of(other).digest != digest


def test_what_two_sets_of_keys_differ_in_is_found_and_named() -> None:
    """Among more keys than are told in a message; where they stand, never what they are."""
    numbers, said = range(5000), [*range(10, 5000), 4711, "x"]
    sent, answered = KeySet.of(numbers), KeySet.of(said)
    asked_places = [(key, f"line {place}") for place, key in enumerate(numbers, start=1)]
    said_places = [(key, f"answer {place}") for place, key in enumerate(said, start=1)]
    assert find_places(sent.without(answered), asked_places, 5) == "line 1; line 2; line 3; line 4; line 5; …"
    assert find_places(answered.doubled(), said_places, 5) == "answer 4702; answer 4991"
    assert find_places(answered.without(sent), said_places, 5) == "answer 4992"
    assert (sent.doubled(), len(sent.without(answered))) == (set(), 10)

"""Broken JSON, made from good JSON by a seed: what the fuzz tests of both sides feed to their readers."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

SECONDS_EACH = 5.0
_LOOKS = 3
"""Of what was slow once: a machine that stands still counts as seconds of a thread too."""
BITS = [
    "[", "]", "{", "}", ":", ",", '"', "\\", "null", "true", "1e999", "-1e999", "NaN", "Infinity",
    "-0", "9" * 30, "9" * 5000,
    "[" * 1000, '{"a":' * 300, '"\\ud800"', '"\\u0000"',
    "1.5", "-1", '""', "{}", "[]", '"gs://"', "\ufeff", "\x00", "é",
]  # fmt: skip
STRANGE = [None, True, -1, 0, 1e308, 2**63, "", "x" * 500, [], {}, [[[]]], {"a": {"b": 1}}, "2013-02-30", "gs://"]
NO_JSON = [
    ('{"kind": "span", "n": ' + "9" * 5000 + "}", "a whole number of 5000 digits"),
    ('{"kind": "span", "n": 99999999999999999999}', "a whole number of 20 digits"),
    ('{"kind": "span", "n": 1e999}', "the number 1e999, which is not finite"),
    ('{"kind": "span", "n": NaN}', "the number NaN, which is not finite"),
    ('{"kind": "span", "n": ' + "[" * 1000 + "]" * 1000 + "}", "more than 100 levels"),
    ('{"kind": "span", "n": ' + "[" * 200 + "]" * 200 + "}", "more than 100 levels"),
    ("[" * 100_000, "more than 100 levels"),
    ('{"kind": "span", "n": "\\ud800"}', "surrogates not allowed"),
]
"""What Python's reader takes and JSON has not, with the words that say so."""


def mutate_text(text: str, bits: list[str], rng: random.Random) -> str:
    """Return a text with one to four bits put in, cut out, doubled or exchanged."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice([0, 1, 1, 2, 5, 20, 100]))
        match rng.randrange(5):
            case 0:
                text = text[:at] + rng.choice(bits) + text[at:]
            case 1:
                text = text[:at] + text[end:]
            case 2:
                text = text[:end] + text[at:]
            case 3:
                text = text[:at] + rng.choice(bits) + text[end:]
            case _:
                lines = text.split("\n")
                one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines[one], lines[other] = lines[other], lines[one]
                text = "\n".join(lines)
    return text


def mutate_value(value: object, rng: random.Random) -> object:
    """Return a JSON value with one part somewhere in it replaced by another kind of value, or taken out."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        rest = {name: item for name, item in value.items() if name != key}
        return rest if rng.random() < 0.1 else {**rest, key: mutate_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        index = rng.randrange(len(value))
        return [*value[:index], mutate_value(value[index], rng), *value[index + 1 :]]
    return rng.choice(STRANGE)


def quickly(act: Callable[[], object], case: object, seconds: float = SECONDS_EACH) -> None:
    """Do something that can be done again, and fail if it takes so long each of three times in a row."""
    for _ in range(_LOOKS):
        started = time.thread_time()
        act()
        if time.thread_time() - started < seconds:
            return
    pytest.fail(f"{_LOOKS} times over {seconds} s: {case!r}")


def require_words(
    read: Callable[[Path, bytes], object], paths: list[Path], seed: int, mutations: int, error_type: type[Exception]
) -> None:
    """Read mutations of documents: each is read, or refused by that error, within seconds; over a third is refused.

    A failure names the number of its mutation.
    """
    rng, refused = random.Random(seed), 0
    contents: Mapping[Path, str] = {path: path.read_text(encoding="utf-8") for path in paths}
    for number in range(mutations):
        path = rng.choice(paths)
        if rng.random() < 0.5:
            text = mutate_text(contents[path], BITS, rng)
        else:
            text = json.dumps(mutate_value(json.loads(contents[path]), rng))
        said: list[str] = []

        def act(path: Path = path, text: str = text, said: list[str] = said) -> None:
            try:
                read(path, text.encode("utf-8", "surrogatepass"))
            except error_type as error:
                said.append(str(error))

        try:
            quickly(act, (number, path.name))
        except Exception as error:  # noqa: BLE001 - that is what must not be
            pytest.fail(f"mutation {number} of seed {seed}, {path.name}: {error!r}\n{text[:2000]}")
        refused += bool(said)
        "".join(said).encode()
    assert refused > mutations // 3

"""Thousands of broken documents: each is read, or refused in words. Seeded: a failure names the number of its mutation.

The other half of the documents, and the models' files, are in `tests/core/test_fuzz.py`.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from trainer.contract import documents
from trainer.contract.reading import parse, serialise
from trainer.errors import ContractError

MUTATIONS = 2000  # of each seed
SECONDS_EACH = 5.0
EXAMPLES = Path(__file__).resolve().parents[3] / "include" / "contracts" / "examples"
OWN = {
    cls.kind: cls
    for cls in (
        documents.ExportRequest,
        documents.TrainRequest,
        documents.EvaluateRequest,
        documents.Manifest,
        documents.Span,
        documents.Report,
        documents.Evaluation,
        documents.Statistics,
    )
}
VALID = [path for path in sorted((EXAMPLES / "valid").glob("*.json")) if path.name.split("__")[0] in OWN]
BITS = [
    "[", "]", "{", "}", ":", ",", '"', "\\", "null", "true", "1e999", "-1e999", "NaN", "Infinity",
    "-0", "9" * 30, "9" * 5000,
    "[" * 1000, '{"a":' * 300, '"\\ud800"', '"\\u0000"',
    "1.5", "-1", '""', "{}", "[]", '"gs://"', "\ufeff", "\x00", "é",
]  # fmt: skip
STRANGE = [None, True, -1, 0, 1e308, 2**63, "", "x" * 500, [], {}, [[[]]], {"a": {"b": 1}}, "2013-02-30", "gs://"]


def text_mutated(text: str, rng: random.Random) -> str:
    """A text with one to four bits put in, cut out or exchanged."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice([0, 1, 1, 2, 5, 20, 100]))
        text = text[:at] + rng.choice([*BITS, ""]) + text[end:]
    return text


def values_mutated(value: object, rng: random.Random) -> object:
    """A JSON value with one part somewhere in it replaced by another kind of value, or taken out."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        rest = {name: item for name, item in value.items() if name != key}
        return rest if rng.random() < 0.1 else {**rest, key: values_mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        index = rng.randrange(len(value))
        return [*value[:index], values_mutated(value[index], rng), *value[index + 1 :]]
    return rng.choice(STRANGE)


@pytest.mark.parametrize("seed", range(2))
def test_no_mutation_of_a_document_ends_in_another_error(seed: int) -> None:
    rng, refused = random.Random(seed), 0  # noqa: S311 - it shall repeat itself
    contents = {path: path.read_text(encoding="utf-8") for path in VALID}
    for number in range(MUTATIONS):
        path = rng.choice(VALID)
        if rng.random() < 0.5:
            text = text_mutated(contents[path], rng)
        else:
            text = json.dumps(values_mutated(json.loads(contents[path]), rng))
        started = time.monotonic()
        try:
            document = parse(OWN[path.name.split("__")[0]], text.encode("utf-8", "surrogatepass"), path.name)
            if not isinstance(document, documents.Statistics):
                serialise(document)
        except ContractError as error:
            refused += 1
            str(error).encode()
        except Exception as error:  # noqa: BLE001 - that is what must not be
            pytest.fail(f"mutation {number} of seed {seed}, {path.name}: {error!r}\n{text[:2000]}")
        assert time.monotonic() - started < SECONDS_EACH, (number, path.name)
    assert refused > MUTATIONS // 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"kind": "span", "n": ' + "9" * 5000 + "}", "a whole number of 5000 digits"),
        ('{"kind": "span", "n": 99999999999999999999}', "a whole number of 20 digits"),
        ('{"kind": "span", "n": 1e999}', "the number 1e999, which is not finite"),
        ('{"kind": "span", "n": NaN}', "the number NaN, which is not finite"),
        ('{"kind": "span", "n": ' + "[" * 1000 + "]" * 1000 + "}", "more than 100 levels"),
        ('{"kind": "span", "n": ' + "[" * 200 + "]" * 200 + "}", "more than 100 levels"),
        ("[" * 100_000, "more than 100 levels"),
        ('{"kind": "span", "n": "\\ud800"}', "surrogates not allowed"),
    ],
    ids=lambda value: value[-24:],
)
def test_what_python_would_read_and_json_has_not_is_said(text: str, words: str) -> None:
    with pytest.raises(ContractError, match=f"not JSON .*{words}"):
        parse(documents.Span, text.encode(), "span.json")

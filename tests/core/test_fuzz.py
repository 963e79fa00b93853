"""Thousands of broken files: each is refused in words or read, none ends in another error, none takes long.

Seeded: the same mutations every time. A failure names the number of its mutation.
"""

from __future__ import annotations

import json
import random
import time

import pytest
from small_model import SPEC_YAML

from retraining.core import documents, settings
from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.errors import ContractError, PlanError, SpecError
from retraining.core.spec import files

MUTATIONS = 1500  # of each seed
SECONDS_EACH = 5.0
INCLUDE = settings.include_path()
SPECS = [SPEC_YAML, *(path.read_text(encoding="utf-8") for path in sorted((INCLUDE / "models").glob("*.yaml")))]
VALID = sorted((INCLUDE / "contracts" / "examples" / "valid").glob("*.json"))
YAML_BITS = [
    "[", "]", "{", "}", ":", ": ", "- ", "? ", "&a ", "*a", "!!int ", "!!python/object:os.x ", "<<: ", "|\n", ">\n",
    "'", '"', "#", "---\n", "...\n", "%YAML 1.1\n", "\t", "\n", "\\", "\x00", "\ufeff", "\u2028", "é", "😀", "~",
    "null", "yes", "2026-02-29", "2026-02-28T25:00:00Z", "1e999", ".nan", "-.inf", "0x" + "f" * 40, "9" * 30,
    "9" * 5000, "1:30",
    "010", "[" * 30, "{a: " * 25, "kind", "name", "numeric", "-1", "0", "1.5", "true", "a" * 300,
]  # fmt: skip
JSON_BITS = [
    "[", "]", "{", "}", ":", ",", '"', "\\", "null", "true", "1e999", "-1e999", "NaN", "Infinity",
    "-0", "9" * 30, "9" * 5000,
    "[" * 1000, '{"a":' * 300, '"\\ud800"', '"\\u0000"',
    "1.5", "-1", '""', "{}", "[]", '"gs://"', "\ufeff", "\x00", "é",
]  # fmt: skip


def mutated(text: str, bits: list[str], rng: random.Random) -> str:
    """A text with one to four bits put in, cut out, doubled or exchanged."""
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


def values_mutated(value: object, rng: random.Random) -> object:
    """A JSON value with one part somewhere in it replaced by another kind of value, or taken out."""
    strange = [None, True, -1, 0, 1e308, 2**63, "", "x" * 500, [], {}, [[[]]], {"a": {"b": 1}}, "2013-02-30", "gs://"]
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        rest = {name: item for name, item in value.items() if name != key}
        return rest if rng.random() < 0.1 else {**rest, key: values_mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        index = rng.randrange(len(value))
        return [*value[:index], values_mutated(value[index], rng), *value[index + 1 :]]
    return rng.choice(strange)


@pytest.mark.parametrize("seed", range(2))
def test_no_mutation_of_a_models_file_ends_in_another_error(tmp_path, seed):
    rng, known, refused = random.Random(seed), load_capabilities(), 0  # noqa: S311 - it shall repeat itself
    path = tmp_path / "late.yaml"
    for number in range(MUTATIONS):
        text = mutated(rng.choice(SPECS), YAML_BITS, rng)
        path.write_bytes(text.encode("utf-8", "surrogatepass") if rng.random() < 0.97 else text.encode("utf-16"))
        started = time.monotonic()
        try:
            spec = files.load_spec(path)
            require_trainable(spec, known)
            spec.with_overrides(
                {rng.choice(["data.window_days", "training.epochs", "label"]): rng.choice([1, "x", {}])}
            )
        except (SpecError, PlanError) as error:
            refused += 1
            str(error).encode()
        except Exception as error:  # noqa: BLE001 - that is what must not be
            pytest.fail(f"mutation {number} of seed {seed}: {error!r}\n{text[:2000]}")
        assert time.monotonic() - started < SECONDS_EACH, (number, text[:2000])
    assert refused > MUTATIONS // 3


@pytest.mark.parametrize("seed", range(2))
def test_no_mutation_of_a_document_ends_in_another_error(seed):
    rng, refused = random.Random(seed), 0  # noqa: S311 - it shall repeat itself
    contents = {path: path.read_text(encoding="utf-8") for path in VALID}
    for number in range(MUTATIONS):
        path = rng.choice(VALID)
        if rng.random() < 0.5:
            text = mutated(contents[path], JSON_BITS, rng)
        else:
            text = json.dumps(values_mutated(json.loads(contents[path]), rng))
        started = time.monotonic()
        try:
            documents.KINDS[path.name.split("__")[0]].parse(text.encode("utf-8", "surrogatepass"), path.name).to_bytes()
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
        ('{"kind": "checks", "n": ' + "9" * 5000 + "}", "a whole number of 5000 digits"),
        ('{"kind": "checks", "n": 99999999999999999999}', "a whole number of 20 digits"),
        ('{"kind": "checks", "n": 1e999}', "the number 1e999, which is not finite"),
        ('{"kind": "checks", "n": NaN}', "the number NaN, which is not finite"),
        ('{"kind": "checks", "n": ' + "[" * 1000 + "]" * 1000 + "}", "more than 100 levels"),
        ('{"kind": "checks", "n": ' + "[" * 200 + "]" * 200 + "}", "more than 100 levels"),
        ("[" * 100_000, "more than 100 levels"),
        ('{"kind": "checks", "n": "\\ud800"}', "surrogates not allowed"),
    ],
    ids=lambda value: value[-24:],
)
def test_what_python_would_read_and_json_has_not_is_said(text, words):
    with pytest.raises(ContractError, match=f"not JSON .*{words}"):
        documents.Checks.parse(text)

"""Thousands of broken files: each is refused in words or read, none ends in another error, none takes long.

Seeded: the same mutations every time. A failure names the number of its mutation.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from retraining.core import documents, settings
from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.errors import ContractError, PlanError, SpecError
from retraining.core.spec import files
from tests.support.contracts import VALID, kind_of
from tests.support.mutations import NO_JSON, mutate_text, quickly, require_words
from tests.support.small_model import SPEC_YAML

MUTATIONS = 1500  # of each seed
INCLUDE = settings.include_path()
SPECS = [SPEC_YAML, *(path.read_text(encoding="utf-8") for path in sorted((INCLUDE / "models").glob("*.yaml")))]
YAML_BITS = [
    "[", "]", "{", "}", ":", ": ", "- ", "? ", "&a ", "*a", "!!int ", "!!python/object:os.x ", "<<: ", "|\n", ">\n",
    "'", '"', "#", "---\n", "...\n", "%YAML 1.1\n", "\t", "\n", "\\", "\x00", "\ufeff", "\u2028", "é", "😀", "~",
    "null", "yes", "2026-02-29", "2026-02-28T25:00:00Z", "1e999", ".nan", "-.inf", "0x" + "f" * 40, "9" * 30,
    "9" * 5000, "1:30",
    "010", "[" * 30, "{a: " * 25, "kind", "name", "numeric", "-1", "0", "1.5", "true", "a" * 300,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_no_mutation_of_a_models_file_ends_in_another_error(tmp_path, seed):
    rng, known, refused = random.Random(seed), load_capabilities(), 0
    path = tmp_path / "late.yaml"
    for number in range(MUTATIONS):
        text = mutate_text(rng.choice(SPECS), YAML_BITS, rng)
        path.write_bytes(text.encode("utf-8", "surrogatepass") if rng.random() < 0.97 else text.encode("utf-16"))
        said: list[str] = []
        override = {rng.choice(["data.window_days", "training.epochs", "label"]): rng.choice([1, "x", {}])}

        def act(override: dict[str, object] = override, said: list[str] = said) -> None:
            try:
                spec = files.load_spec(path)
                require_trainable(spec, known)
                spec.with_overrides(override)
            except (SpecError, PlanError) as error:
                said.append(str(error))

        try:
            quickly(act, (number, text[:2000]))
        except Exception as error:  # noqa: BLE001 - that is what must not be
            pytest.fail(f"mutation {number} of seed {seed}: {error!r}\n{text[:2000]}")
        refused += bool(said)
        "".join(said).encode()
    assert refused > MUTATIONS // 3


def read_and_write(path: Path, content: bytes) -> None:
    documents.KINDS[kind_of(path)].parse(content, path.name).to_bytes()


@pytest.mark.parametrize("seed", range(2))
def test_no_mutation_of_a_document_ends_in_another_error(seed):
    require_words(read_and_write, VALID, seed, MUTATIONS, ContractError)


@pytest.mark.parametrize(("text", "words"), NO_JSON, ids=lambda value: value[-24:])
def test_what_python_would_read_and_json_has_not_is_said(text, words):
    with pytest.raises(ContractError, match=f"not JSON .*{words}"):
        documents.Span.parse(text)

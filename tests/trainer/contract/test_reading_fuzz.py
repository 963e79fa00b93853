"""Thousands of broken documents: each is read, or refused in words. Seeded: a failure names the number of its mutation.

The other half of the documents, and the models' files, are in `tests/core/test_fuzz.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.contracts import VALID, kind_of
from tests.support.mutations import NO_JSON, require_words
from tests.support.trainer_documents import OWN
from trainer.contract import documents
from trainer.contract.reading import parse_document, serialise
from trainer.errors import ContractError

MUTATIONS = 2000  # of each seed


def read_and_write(path: Path, content: bytes) -> None:
    document = parse_document(OWN[kind_of(path)], content, path.name)
    serialise(document)


@pytest.mark.parametrize("seed", range(2))
def test_no_mutation_of_a_document_ends_in_another_error(seed: int) -> None:
    require_words(read_and_write, [path for path in VALID if kind_of(path) in OWN], seed, MUTATIONS, ContractError)


@pytest.mark.parametrize(("text", "words"), NO_JSON, ids=lambda value: value[-24:])
def test_what_python_would_read_and_json_has_not_is_said(text: str, words: str) -> None:
    with pytest.raises(ContractError, match=f"not JSON .*{words}"):
        parse_document(documents.Span, text.encode(), "span.json")

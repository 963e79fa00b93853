"""What waits for BigQuery is brought over in pieces that one insert can hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcloud.vertex.endpoints.request_log import payload_text
from localcloud.vertex.resources.store import Store


@pytest.fixture
def store(tmp_path: Path):
    """A collection with five rows of a hundred letters, another one beside it."""
    made = Store(tmp_path / "store.db")
    for index in range(5):
        made.put_document("log", "table", {"payload": str(index) * 100})
        made.put_document("other", "table", {})
    yield made
    made.close()


@pytest.mark.parametrize(
    ("limit", "characters", "rows"),
    [(-1, None, 5), (3, None, 3), (-1, 1, 1), (-1, 250, 3), (2, 250, 2), (-1, 10_000, 5)],
)
def test_long_rows_are_fewer_and_one_at_least(store, limit: int, characters: int | None, rows: int) -> None:
    found = store.list_documents("log", limit=limit, max_characters=characters)
    assert [body["payload"][0] for _, _, body in found] == [str(index) for index in range(rows)]


def test_images_are_logged_as_they_were_sent() -> None:
    assert payload_text({"image": {"b64": "iVBORw0KGgo="}}) == '{"image":{"b64":"iVBORw0KGgo="}}'
    assert payload_text([0.25, float("nan")]) == '[0.25,"NaN"]'

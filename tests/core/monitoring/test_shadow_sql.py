"""The question for requests that are sent again, run by the local BigQuery: whose, of when, how many, how large."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retraining.core.monitoring import request_log
from retraining.core.spec.deployment import Shadow
from tests.support.request_log import SCHEMA, logged
from tests.support.warehouse import Warehouse

DATASET = "core_shadow_sql"
NOW = datetime(2013, 11, 20, 3, tzinfo=UTC)
MINE, OTHER = "1000000001", "1000000002"
MINUTE = timedelta(minutes=1)
NUMBER = 30
ONE = len('{"n": 10}') + len("0.1")
"""Characters of a request with its answer, where its number has two digits."""


@pytest.fixture(scope="module")
def ask(local_cloud) -> Any:
    """Asks for requests of a log; gives their numbers, oldest first."""
    warehouse, table = Warehouse(local_cloud, DATASET), f"{local_cloud.project}.{DATASET}.requests"
    rows = [logged(NOW - (NUMBER + 9 - number) * MINUTE, [{"n": number}], model=MINE) for number in range(10, 40)]
    rows += [
        logged(NOW - MINUTE / 2, [{"n": 90}], model=OTHER),
        logged(NOW + MINUTE, [{"n": 91}], model=MINE),
        logged(NOW - timedelta(hours=2), [{"n": 92}], model=MINE),
        logged(NOW - MINUTE / 4, [{"n": 93}, {"image": "x" * request_log.MAX_CHARACTERS}], model=MINE),
    ]
    warehouse.load(table, rows, SCHEMA)

    def run(*, hours: int = 1, most: int = 100) -> list[str]:
        shadow = Shadow(hours=hours, max_requests=most)
        found = warehouse.run(request_log.render_shadow_sql(table, MINE, NOW, shadow))
        assert {row["deployed_model_id"] for row in found} <= {MINE}
        assert all(row["response_payload"] == ["0.1"] for row in found)
        return [row["request_payload"][0] for row in sorted(found, key=lambda row: row["logging_time"])]

    return run


def numbers(first: int) -> list[str]:
    """Payloads from a number on, to the newest."""
    return [f'{{"n": {number}}}' for number in range(first, 40)]


def test_it_finds_what_the_version_before_answered_in_these_hours(ask) -> None:
    """Not another version's, nor what came after the replay began, nor a request as large as an image."""
    assert ask() == numbers(10)
    assert ask(hours=2) == numbers(10)  # from its start on, exclusive
    assert ask(hours=3) == ['{"n": 92}', *numbers(10)]


def test_the_newest_are_taken_where_there_are_more(ask) -> None:
    assert ask(most=20) == numbers(20)


@pytest.mark.parametrize(("characters", "first"), [(7 * ONE, 33), (7 * ONE - 1, 34), (ONE - 1, 40)])
def test_all_together_have_no_more_characters_than_a_worker_holds(
    ask, monkeypatch: pytest.MonkeyPatch, characters: int, first: int
) -> None:
    """The newest are kept; none at all where the newest alone is too large."""
    monkeypatch.setattr(request_log, "ALL_CHARACTERS", characters)
    assert ask() == numbers(first)

"""What the statements of a scoring do, in memory: the table of claims, the table of answers, the destination."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from retraining.core.data.sql import Query
from retraining.core.errors import DataError
from tests.support.fakes.warehouse import FakeWarehouse

_API_TYPES = {"INT64": "INTEGER", "FLOAT64": "FLOAT"}


class ScoredTables:
    """The effects of a scoring's statements on the cloud in memory.

    Attributes:
        held: Of which time, and of which table of answers, a day of the destination is; by `table$day`.
        claims: Destination, number and holder of each number that was taken.
        written: The statements that replaced something.
        before: Called once, before a statement of this purpose runs: the task is stopped there meanwhile.
    """

    def __init__(self, warehouse: FakeWarehouse, destination: str) -> None:
        self._warehouse = warehouse
        self.destination = destination
        self.held: dict[str, tuple[datetime, str]] = {}
        self.claims: list[tuple[str, int, str]] = []
        self.written: list[Query] = []
        self.before: dict[str, Callable[[], None]] = {}
        for purpose, effect in (
            ("claims", self._create),
            ("number", self._number),
            ("claim", self._claim),
            ("taken", lambda query: [{"taken": self._is_taken(query)}]),
            ("newest", self._newest),
            ("table of answers", self._create),
            (f"destination {destination}", self._replace_or_create),
        ):
            warehouse.effects[purpose] = self._paused(purpose, effect)

    def drop(self) -> None:
        """Delete the destination, as somebody else would."""
        self._warehouse.delete_table(self.destination)
        self.held.clear()

    def _paused(self, purpose: str, effect: Callable[[Query], list[dict[str, Any]]]) -> Any:
        def run(query: Query) -> list[dict[str, Any]]:
            name = "write" if "MERGE" in query.sql else purpose
            if meanwhile := self.before.pop(name, None):
                meanwhile()
            return effect(query)

        return run

    def _number(self, query: Query) -> list[dict[str, Any]]:
        if not any(table.endswith(".retraining_claims") for table in self._warehouse.schemas):
            raise DataError("number", "BigQuery refuses the statement: Not found: retraining_claims")
        name = _values(query)["destination"]
        return [{"number": max((number for table, number, _ in self.claims if table == name), default=0)}]

    def _claim(self, query: Query) -> list[dict[str, Any]]:
        values = _values(query)
        self.claims.append((values["destination"], values["number"], values["holder"]))
        return []

    def _is_taken(self, query: Query) -> bool:
        values = _values(query)
        mine = (values["number"], values["holder"])
        return any(
            table == values["destination"] and (number > mine[0] or (number == mine[0] and holder != mine[1]))
            for table, number, holder in self.claims
        )

    def _newest(self, query: Query) -> list[dict[str, Any]]:
        found = self.held.get(self._written(query))
        return [{"newest": found[0] if found else None}]

    def _create(self, query: Query) -> list[dict[str, Any]]:
        (table,) = re.findall(r"CREATE .*TABLE .*`(.+)`", query.sql)
        columns = re.findall(r"^  `(\w+)` ([A-Z0-9]+|ARRAY<FLOAT64>),?$", query.sql, re.MULTILINE)
        self._warehouse.schemas[table] = [
            {
                "name": name,
                "type": "FLOAT" if "ARRAY" in type_ else _API_TYPES.get(type_, type_),
                "mode": "REPEATED" if "ARRAY" in type_ else "NULLABLE",
                "fields": [],
            }
            for name, type_ in columns
        ]
        return []

    def _replace_or_create(self, query: Query) -> list[dict[str, Any]]:
        if "MERGE" not in query.sql:
            return self._create(query)
        values, day = _values(query), self._written(query)
        (answers,) = re.findall(r"SELECT \*\s+FROM `(.+)`", query.sql)
        for table in (self.destination, answers):
            if table not in self._warehouse.schemas:
                raise DataError("destination", f"BigQuery refuses the statement: Not found: {table}")
        as_of = datetime.fromisoformat(values["as_of"])
        if self._is_taken(query) or (day in self.held and self.held[day][0] > as_of):
            raise DataError("destination", "BigQuery refuses the statement: another scoring, or newer answers")
        self.held[day] = (as_of, answers)
        self.written.append(query)
        return []

    def _written(self, query: Query) -> str:
        day = _values(query).get("day")
        return f"{self.destination}${day.replace('-', '')}" if day else self.destination


def _values(query: Query) -> dict[str, Any]:
    return {each.name: each.value for each in query.parameters}

"""BigQuery: ids of jobs, time travel, dry runs, limits and loads. A thousand generated rows; free or next to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from retraining.commands.trial.probes import Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.core.data.source_files import Load
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.errors import DataError
from retraining.core.spec.source_files import SourceFiles
from retraining.core.untyped import Row

TEMPLATE = "trial.sql.j2"
ROWS = 1000
STREAMED = 50_000
"""Rows of the table that is read by streams: some messages of one."""
LONG_AGO = "2020-01-01T00:00:00Z"
CHANGED_WITHIN = timedelta(minutes=2)


@dataclass(frozen=True, kw_only=True)
class StatementProbes:
    """Rows of BigQuery."""

    trial: Trial

    def probes(self) -> Sequence[Probe]:
        """Return them; the first makes the table that the others read."""
        return (*self._run_as_wished(), *self._read_and_loaded())

    def _run_as_wished(self) -> Sequence[Probe]:
        return (
            Probe(
                id="BQ-1",
                asked="one job id for two statements",
                supposed={"the first": 1, "the second, as the first answered": 1},
                ask=self.use_an_id_twice,
            ),
            Probe(
                id="BQ-3",
                asked="a dry run of a view",
                supposed={"columns": "number INTEGER", "it names the table behind": True, "it says the bytes": True},
                ask=self.run_dry,
            ),
            Probe(
                id="BQ-4",
                asked="a statement over its limit of bytes",
                supposed={"it is refused": True},
                ask=self.exceed_the_limit,
            ),
        )

    def _read_and_loaded(self) -> Sequence[Probe]:
        return (
            Probe(
                id="BQ-2",
                asked="a table as of a time before its last rows",
                supposed={"rows now": ROWS + 1, "rows then": ROWS, "before it was made": "refused"},
                ask=self.travel,
            ),
            Probe(
                id="BQ-7",
                asked="a table's last change, after rows came",
                supposed={"it has moved": True},
                ask=self.change,
            ),
            Probe(
                id="BQ-8",
                asked="a load of two files of which one is broken",
                supposed={"it is refused": True, "rows of the good one": 0},
                ask=self.load_a_broken_file,
            ),
            Probe(
                id="BQ-9",
                asked="a dry run where the table is, and one elsewhere",
                supposed={"where it is": "answered", "elsewhere": "NotFound"},
                ask=self.ask_elsewhere,
            ),
            Probe(
                id="BQ-5",
                asked="a table's streams, after a row came, and one of them from its middle",
                supposed={"rows": STREAMED, "twice": 0, "the row that came": "not read", "from the middle": "the same"},
                ask=self.read_streams,
            ),
            Probe(
                id="BQ-12",
                asked="when a table expires, by the list of them",
                supposed={"hours": 24},
                ask=self.list_expiring,
            ),
        )

    def use_an_id_twice(self) -> Mapping[str, Fact]:
        """Run two statements as one job."""
        self._run("rows", rows=ROWS)
        first = self._run("answer", job="twice", number=1)
        second = self._run("answer", job="twice", number=2)
        return {"the first": first[0]["answer"], "the second, as the first answered": second[0]["answer"]}

    def run_dry(self) -> Mapping[str, Fact]:
        """Ask what a view would read."""
        view = self.trial.table("view")
        self._run("view", view=view)
        query = Query(sql=render(TEMPLATE, statement="numbers", table=view))
        told = self.trial.cloud.warehouse.dry_run(query, "trial, a dry run")
        return {
            "columns": ", ".join(f"{column['name']} {column['type']}" for column in told.schema),
            "it names the table behind": self.trial.table("rows") in told.tables,
            "it says the bytes": told.bytes_processed > 0,
        }

    def exceed_the_limit(self) -> Mapping[str, Fact]:
        """Read a table, where no byte may be read."""
        return {"it is refused": _is_refused(lambda: self._run("sum", max_bytes=1))}

    def travel(self) -> Mapping[str, Fact]:
        """Read the rows of a moment that has passed."""
        (then,) = self._run("moment")
        self._run("insert", number=0)
        (now,), (past,) = self._run("count"), self._run("count_then", moment=then["moment"])
        refused = _is_refused(lambda: self._run("count_then", job="early", moment=LONG_AGO))
        return {
            "rows now": now["count"],
            "rows then": past["count"],
            "before it was made": "refused" if refused else "answered",
        }

    def change(self) -> Mapping[str, Fact]:
        """Look at a table's last change before and after rows came."""
        warehouse, table = self.trial.cloud.warehouse, self.trial.table("rows")
        before = warehouse.table_changed(table)
        self._run("insert", job="change", number=-1)

        def moved() -> bool:
            now = warehouse.table_changed(table)
            return before is not None and now is not None and now > before

        return {"it has moved": self.trial.wait("the change", moved, CHANGED_WITHIN)}

    def load_a_broken_file(self) -> Mapping[str, Fact]:
        """Load two files at once."""
        trial, table = self.trial, self.trial.table("loaded")
        self._run("loaded", table=table)
        good, broken = trial.uri("load/good.json"), trial.uri("load/broken.json")
        trial.cloud.artifacts.overwrite(good, b'{"number": 1}\n{"number": 2}\n', "application/json")
        trial.cloud.artifacts.overwrite(broken, b'{"number": "three"}\n', "application/json")
        columns = [{"name": "number", "type": "INT64"}]
        files = SourceFiles.model_validate({"uris": [good, broken], "format": "json", "columns": columns})
        load = Load(table=table, files=files)
        refused = _is_refused(lambda: trial.cloud.warehouse.load_files(load, trial.job_id("load"), "trial, a load"))
        (count,) = self._run("count", job="count-loaded", table=table)
        return {"it is refused": refused, "rows of the good one": count["count"]}

    def ask_elsewhere(self) -> Mapping[str, Fact]:
        """Ask for the table in its dataset's location, and in the multi-region that holds that, or another one."""
        trial, table = self.trial, self.trial.table("rows")
        own = trial.cloud.warehouse.dataset_location(trial.cloud.settings.dataset)
        if own is None:
            raise LookupError("the dataset's location cannot be read")
        sql = render(TEMPLATE, statement="sum", table=table)
        around = "EU" if own.lower().startswith("europe-") else "US"
        other = around if around != own else "EU"
        asked = {"where it is": own, "elsewhere": other}
        return {name: trial.calls.tables.refused_in(location, sql) or "answered" for name, location in asked.items()}

    def read_streams(self) -> Mapping[str, Fact]:
        """Open a read session, add a row, and read all streams; then the longest of them from its middle."""
        streams, table = self.trial.calls.streams, self.trial.table("streamed")
        self._run("rows", job="streamed", table=table, rows=STREAMED)
        opened = streams.open_streams(table, "number")
        self._run("insert", job="insert-streamed", table=table, number=0)
        read = {name: streams.read_stream(name, opened.schema, 0) for name in opened.names}
        numbers = [number for each in read.values() for number in each]
        self.trial.measured["streams"] = len(read)
        longest = max(read, key=lambda name: len(read[name]))
        middle = len(read[longest]) // 2
        again = streams.read_stream(longest, opened.schema, middle)
        return {
            "rows": len(numbers),
            "twice": len(numbers) - len(set(numbers)),
            "the row that came": "read" if 0 in numbers else "not read",
            "from the middle": "the same" if again == read[longest][middle:] else "others",
        }

    def list_expiring(self) -> Mapping[str, Fact]:
        """Make a table that expires tomorrow, and list it."""
        table = self.trial.table("expiring")
        self._run("expiring", table=table)
        listed = self.trial.cloud.warehouse.list_tables(self.trial.cloud.settings.dataset)
        expires = next(each.expires for each in listed if each.name == table)
        return {"hours": None if expires is None else round((expires - datetime.now(UTC)) / timedelta(hours=1))}

    def _run(
        self, statement: str, *, job: str = "", max_bytes: int | None = None, moment: str = "", **values: str | int
    ) -> list[Row]:
        """Run a statement of the template, as a job of its name or of another."""
        sql = render(TEMPLATE, **{"statement": statement, "table": self.trial.table("rows"), **values})
        parameters = (Parameter(name="moment", type="TIMESTAMP", value=moment),) if moment else ()
        job_id = self.trial.job_id((job or statement).replace("_", "-"))
        query = Query(sql=sql, parameters=parameters)
        return self.trial.cloud.warehouse.run_query(query, job_id, f"trial, {statement}", max_bytes).rows


def _is_refused(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except DataError:
        return True
    return False

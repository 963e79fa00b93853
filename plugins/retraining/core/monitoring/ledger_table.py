"""The ledger in BigQuery: the table `retraining_ledger` of all models, one row for each decision of a monitor.

In: documents of monitor runs. Out: statements. The documents are what counts; the table is for whoever asks about many.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents import Ledger, LedgerResult, Signals
from retraining.core.documents.document import canonical_json, format_time
from retraining.core.errors import DataError

SCHEMA_VERSION = 1
COLUMNS = (
    "schema_version",
    "model",
    "ledger_id",
    "as_of",
    "outcome",
    "because",
    "cause",
    "causes",
    "named_states",
    "severity",
    "words",
    "champion_version",
    "champion_run_key",
    "requests",
    "window_hours",
    "signals",
    "policy",
    "facts",
    "ledger_uri",
    "signals_uri",
    "retrain_as_of",
    "last_retrain_as_of",
    "result",
)


def render_table(table: str) -> Query:
    """Return the statement that makes the table where it is missing."""
    return Query(sql=render("ledger_table.sql.j2", table=table))


def require_columns(table: str, columns: Collection[str]) -> None:
    """Refuse a table that is not the ledger's.

    Args:
        table: Its name.
        columns: That it has.

    Raises:
        DataError: One is missing.
    """
    if missing := [name for name in COLUMNS if name not in columns]:
        raise DataError(
            table,
            f"a table without {', '.join(missing)}",
            f"the ledger, of version {SCHEMA_VERSION} (docs/monitoring.md)",
            "Rename or delete it: the next decision makes it anew; add the column where it is of an earlier release",
        )


def render_rows(table: str, model: str, since: datetime, until: datetime) -> Query:
    """Return the query for the rows that the table has: `ledger_id, state` (of the result; null: none yet)."""
    times = {"since": since, "until": until}
    parameters = [Parameter(name=name, type="TIMESTAMP", value=format_time(time)) for name, time in times.items()]
    return Query(sql=render("ledger_rows.sql.j2", table=table), parameters=(_text("model", model), *parameters))


def render_insert(table: str, row: Ledger, signals: Signals | None, ledger_uri: str) -> Query:
    """Return the statement that adds a row, unless it is there.

    Args:
        table: Its name.
        row: What was decided.
        signals: What it was decided by; None: they are gone.
        ledger_uri: Where the row's document is.
    """
    champion = row.facts.champion if row.facts else None
    stored = row.to_json()
    values = {
        **{name: stored[name] for name in COLUMNS if name in stored and name not in ("policy", "facts")},
        "schema_version": SCHEMA_VERSION,
        "named_states": [{"cause": cause, "state": state} for cause, state in row.named_states.items()],
        "champion_version": champion.version_id if champion else None,
        "champion_run_key": champion.run_key if champion else None,
        "requests": signals.requests if signals else None,
        "window_hours": signals.window_hours if signals else None,
        "signals": [signal.model_dump(mode="json") for signal in signals.signals] if signals else [],
        "policy": _json(stored["policy"]),
        "facts": _json(stored["facts"]),
        "ledger_uri": ledger_uri,
    }
    parameters = (*_key(row.model, str(row.ledger_id), row.as_of), _text("row", canonical_json(values).decode()))
    return Query(sql=render("ledger_insert.sql.j2", table=table), parameters=parameters)


def render_result(table: str, model: str, result: LedgerResult) -> Query:
    """Return the statement that completes the row of an order by what came of it."""
    parameters = (
        *_key(model, result.ledger_id, result.ordered_at),
        _text("dag_run_id", result.dag_run_id or ""),
        _text("run_key", result.run_key or ""),
        _text("state", result.state),
        _text("version_id", result.version_id or ""),
        _text("gain", "" if result.gain is None else repr(result.gain)),
    )
    return Query(sql=render("ledger_result.sql.j2", table=table), parameters=parameters)


def _key(model: str, ledger_id: str, as_of: datetime) -> tuple[Parameter, ...]:
    time = Parameter(name="as_of", type="TIMESTAMP", value=format_time(as_of))
    return _text("model", model), _text("ledger_id", ledger_id), time


def _text(name: str, value: str) -> Parameter:
    return Parameter(name=name, type="STRING", value=value)


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True)

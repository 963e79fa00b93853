"""What one statement may take: DuckDB's memory limit alone does not bound texts and results.

In: bqemulator's engine, before it serves. Out: the same, whose statements end with `resourcesExceeded` when a text
they make is longer than a row of BigQuery's may be, when their result is larger than can be kept here, or when
DuckDB's own limit is reached. Others go on meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from localcloud.bigquery.patches import sql
from localcloud.untyped import Untyped

TEXT_BYTES = 100_000_000  # https://cloud.google.com/bigquery/quotas#query_jobs: a row's maximum size is 100 MB
RESULT_BYTES = 512 * 1024 * 1024
_BATCH_ROWS = 100_000
_REASON = "resourcesExceeded"
_MARK = "Resources exceeded during query execution"
_TOO_LONG = f"{_MARK}: a text of more than {TEXT_BYTES} bytes. Expected less, as a row of BigQuery has at most 100 MB."
_LENGTH = "(CASE WHEN typeof(s) = 'BLOB' THEN octet_length(CAST(s AS BLOB)) ELSE strlen(CAST(s AS VARCHAR)) END)"
# In the place of DuckDB's functions, which they call: an argument that is too large fails before anything is allocated.
_MACROS = (
    f"""CREATE OR REPLACE MACRO repeat(s, n) AS system.main.repeat(s, CASE WHEN
    {_LENGTH} * CAST(n AS HUGEINT) > {TEXT_BYTES} THEN error('{_TOO_LONG}') ELSE CAST(n AS BIGINT) END)""",
    *(
        f"CREATE OR REPLACE MACRO {name}(s, n, p) AS system.main.{name}(s, CASE WHEN n > {TEXT_BYTES // 4}"
        f" THEN error('{_TOO_LONG}') ELSE CAST(n AS INTEGER) END, p)"
        for name in ("lpad", "rpad")
    ),
)


def bound_memory(limit: str, directory: Path) -> None:
    """Give DuckDB a memory limit and a place to spill to; it would take 80 % of the machine."""
    from bqemulator.storage.engine import DuckDBEngine

    original = DuckDBEngine._apply_session_pragmas

    def apply_pragmas(self: Untyped) -> None:
        original(self)
        self.connection.execute("SET GLOBAL TimeZone = 'UTC'")
        self.connection.execute(f"SET memory_limit = '{limit}'")
        self.connection.execute(f"SET temp_directory = '{directory / 'spill'}'")
        sql.register_functions(self.connection)
        for macro in _MACROS:
            self.connection.execute(macro)

    DuckDBEngine._apply_session_pragmas = apply_pragmas


def bound_results(executor: Untyped) -> None:
    """Let a statement that takes too much end by BigQuery's name for it."""
    from bqemulator.storage import engine

    translate = executor.translate_runtime_error

    def keep_name(error: Exception, **about: Untyped) -> Untyped:
        return error if getattr(error, "bq_reason", "") == _REASON else translate(error, **about)

    executor.translate_runtime_error = keep_name

    kind = engine.DuckDBEngine
    kind.execute = _named(kind.execute)

    def fetch_arrow(self: Untyped, sql: str, parameters: Untyped = None) -> Untyped:
        import pyarrow as pa

        with _naming():
            result = self.execute(sql, parameters)
            description = result.description
            reader = result.to_arrow_reader(_BATCH_ROWS)
            batches, size = [], 0
            for batch in reader:
                size += batch.nbytes
                if size > RESULT_BYTES:
                    reader.close()
                    raise _exceeded(
                        f"{_MARK}: a result of more than {RESULT_BYTES} bytes. Expected less in the local cloud: select"
                        " fewer rows, or write a table by CREATE TABLE … AS."
                    )
                batches.append(batch)
            table = pa.Table.from_batches(batches, schema=reader.schema)
        return engine._annotate_with_duckdb_types(table, description)

    kind.fetch_arrow = fetch_arrow


def _named(function: Callable[..., Untyped]) -> Callable[..., Untyped]:
    @functools.wraps(function)
    def run(*args: Untyped, **kwargs: Untyped) -> Untyped:
        with _naming():
            return function(*args, **kwargs)

    return run


@contextmanager
def _naming() -> Iterator[None]:
    """Yield errors of memory the name that they have in BigQuery."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise _exceeded(f"{_MARK}: {str(error).splitlines()[0]}. Expected less memory: read fewer rows.") from error
    except duckdb.Error as error:
        if _MARK not in str(error):
            raise
        raise _exceeded(str(error)[str(error).index(_MARK) :].splitlines()[0]) from error
    except MemoryError as error:
        raise _exceeded(f"{_MARK}: no memory is left. Read fewer rows.") from error


def _exceeded(message: str) -> Exception:
    from bqemulator.domain.errors import DomainError

    class ResourcesExceededError(DomainError):  # type: ignore[misc]  # bqemulator is untyped here
        """BigQuery's `resourcesExceeded` (https://cloud.google.com/bigquery/docs/error-messages)."""

        http_status = 400
        bq_reason = _REASON
        grpc_status_name = "RESOURCE_EXHAUSTED"

    return ResourcesExceededError(message)

"""Patches what a failed statement says: DuckDB's words, where BigQuery has its own.

In: a statement's error. Out: the error with the service's words, https://cloud.google.com/bigquery/docs/error-messages.
Types that the service takes and DuckDB does not are not offered here: what neither takes was refused before it ran, by
the signatures of the service's functions (`localcloud.bigquery.types.calls`).
"""

from __future__ import annotations

import functools
import re

from localcloud.untyped import Untyped

# What our own macros end a statement with: a text that is no number, by its beginning.
_OWN = (
    "A TIMESTAMP has no",
    "Array (?:index|cannot have a null element)",
    "Bad ",
    "Division by zero",
    "Floating point error",
    "No matching signature for (?:function CONCAT|operator \\|\\|)",
    "The (?:local cloud has no|provided JSON input|length of|count of)",
    "division by zero",
)
_WORDS = (
    (re.compile(rf"Could not convert string '((?:{'|'.join(_OWN)})(?:[^']|'(?! to ))*)' to "), "{}"),
    (re.compile(r"while executing the UDF: ValueError: (The local cloud has no [^\n]+)"), "{}"),
    (re.compile(r"NOT NULL constraint failed: (?:.*\.)?(\w+)"), "Required field {} cannot be null"),
    (
        # `patches/sql/text_lengths.py`; of BYTES bqemulator writes what OCTET_LENGTH is for either type
        re.compile(r"""CHECK constraint failed .* CHECK\(\((?:length\(|CASE .*? THEN \(octet_length\(CAST\()"?(\w+)"""),
        "Value of column {} is longer than the column takes",
    ),
    (
        re.compile(r"Set operations can only apply to expressions with the same number of result (columns)"),
        "Queries of a set operation have different numbers of {}, or the statement declares another number of them",
    ),
    (re.compile(r'Referenced column "([^"]+)" not found'), "Unrecognized name: {}"),
    (
        re.compile(r"(?:Scalar|Aggregate|Table|Macro)?\s?[Ff]unction with name (\w+) does not exist"),
        "Function not found: {}",
    ),
)

_CALL = re.compile(
    r"No function matches the given name and argument types '(?:bqemu_|localcloud_)?([^('\s]+)\(([^']*)\)'"
)
_CAST = re.compile(r"Unimplemented type for cast \((.+?) -> (.+?)\)")
_TYPES = {
    "BLOB": "BYTES", "VARCHAR": "STRING", "STRING_LITERAL": "STRING", "BIGINT": "INT64", "INTEGER": "INT64",
    "INTEGER_LITERAL": "INT64", "DOUBLE": "FLOAT64", "BOOLEAN": "BOOL", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "TIMESTAMP": "DATETIME",
}  # fmt: skip
_TAKEN = re.compile(r'Could not rename "[^"]+" to "([^"]+)": another entry with this name already exists')
_DATASET = re.compile(r"Schema with name (\S+?)__(\S+) does not exist!")


def apply(routes: Untyped) -> None:
    """Say what went wrong as the service does."""
    from bqemulator.domain.errors import AlreadyExistsError, InvalidQueryError, NotFoundError, UnsupportedFeatureError
    from bqemulator.jobs import error_mapper

    def not_offered(raw: str, _duckdb_sql: str | None) -> UnsupportedFeatureError | None:
        call = missing_of(raw)
        return UnsupportedFeatureError(f"The local cloud has no {call}") if call else None

    error_mapper._DUCKDB_TRANSLATORS = (not_offered, *error_mapper._DUCKDB_TRANSLATORS)
    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(*args: Untyped, **kwargs: Untyped) -> Untyped:
        try:
            return await original(*args, **kwargs)
        except InvalidQueryError as error:
            if missing := _DATASET.search(str(error.message)):
                raise NotFoundError(f"Not found: Dataset {missing[1]}:{missing[2]}") from error
            if taken := _TAKEN.search(str(error.message)):
                raise AlreadyExistsError(f"Already Exists: Table {taken[1]}") from error
            words = words_of(str(error.message))
            if words is None:
                raise
            raise InvalidQueryError(words) from error

    routes.execute_query_job = execute


def missing_of(message: str) -> str | None:
    """Return the name of what DuckDB has not for such types; None: that is not what went wrong."""
    if found := _CALL.search(message):
        return f"{found[1].upper()} of {', '.join(map(_type, found[2].split(', ')))}"
    if found := _CAST.search(message):
        return f"CAST of {_type(found[1])} to {_type(found[2])}"
    return None


def _type(name: str) -> str:
    return "NUMERIC" if name.startswith("DECIMAL") else _TYPES.get(name, name)


def words_of(message: str) -> str | None:
    """Return the service's words for an error of DuckDB; None where it has none of its own."""
    found = ((pattern.search(message), words) for pattern, words in _WORDS)
    return next((words.format(match[1]) for match, words in found if match), None)

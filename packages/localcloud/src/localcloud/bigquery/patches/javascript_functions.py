"""Patches functions in JavaScript: they ran in the server's own process, with other types than BigQuery's, without end.

| in BigQuery | without it |
|---|---|
| `DETERMINISTIC`, `NOT DETERMINISTIC`, `OPTIONS(library = […])` | a syntax error |
| DATE and TIMESTAMP are Dates, JSON is a value, NaN is a Number, a Promise is waited for | texts, or an error |
| an argument of another type is refused | made a value of the parameter's type |
| what runs for too long, or takes too much memory, ends with an error | ends the server, or never |

Source: cloud.google.com/bigquery/docs/user-defined-functions#javascript-udf-structure.
"""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import re
from collections.abc import Callable

from localcloud.bigquery.patches.javascript.functions import Functions
from localcloud.refusals import NotOfferedError
from localcloud.untyped import Untyped

_LANGUAGES = ("JS", "JAVASCRIPT")
_OPTIONS = {"description", "library"}
_AGGREGATE = re.compile(
    r"\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\s+|TEMPORARY\s+)?AGGREGATE\s+FUNCTION\b", re.IGNORECASE
)
_declared: contextvars.ContextVar[dict[str, Untyped] | None] = contextvars.ContextVar("declared", default=None)


def apply(routes: Untyped, read_library: Callable[[str, str], str]) -> None:
    """Run them in a process of their own, with BigQuery's types.

    Args:
        read_library: Returns the text of an object, from its address and the project that asks for it.
    """
    from bqemulator.domain.errors import UnsupportedFeatureError
    from bqemulator.udf import js_udf

    functions = Functions(read_library)

    def materialize(_runtime: Untyped, routine: Untyped, engine: Untyped) -> None:
        try:
            functions.add(routine, engine.connection)
        except NotOfferedError as error:
            raise UnsupportedFeatureError(str(error)) from error

    def deregister(_runtime: Untyped, routine: Untyped, engine: Untyped) -> None:
        from bqemulator.udf.naming import qualified_routine_name

        functions.remove(qualified_routine_name(routine), engine.connection)

    js_udf.JavaScriptUDFRuntime.materialize = materialize
    js_udf.JavaScriptUDFRuntime.deregister = deregister
    _read_declarations()
    _check_routines(functions)
    _say_errors(functions)
    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(project_id: str, job_id: str, bq_sql: str, *args: Untyped, **kwargs: Untyped) -> Untyped:
        if _AGGREGATE.search(bq_sql):
            raise UnsupportedFeatureError("The local cloud has no CREATE AGGREGATE FUNCTION")
        functions.read_libraries_again()
        return await original(project_id, job_id, bq_sql, *args, **kwargs)

    routes.execute_query_job = execute


def _say_errors(functions: Functions) -> None:
    """Give a statement the error that a function ended it with."""
    from bqemulator.domain.errors import InvalidQueryError, NotFoundError, UnsupportedFeatureError
    from bqemulator.jobs import error_mapper

    kinds = {"notImplemented": UnsupportedFeatureError, "notFound": NotFoundError}

    def said(raw: str, _duckdb_sql: str | None) -> Untyped:
        found = functions.error_of(raw)
        return kinds.get(found[0], InvalidQueryError)(found[1]) if found else None

    error_mapper._DUCKDB_TRANSLATORS = (said, *error_mapper._DUCKDB_TRANSLATORS)


def _check_routines(functions: Functions) -> None:
    """Refuse a routine before the catalog has it, and keep what its statement declares."""
    from bqemulator.api.routes import routines
    from bqemulator.domain.errors import UnsupportedFeatureError
    from bqemulator.scripting import interpreter
    from bqemulator.udf.temp_registry import TempRoutineRegistry

    read, upsert, register = routines._rest_to_routine_meta, interpreter._upsert_routine, TempRoutineRegistry.register

    def checked(routine: Untyped) -> Untyped:
        routine = routine.model_copy(update=_declared.get() or {})
        if routine.language != "JAVASCRIPT":
            return routine
        try:
            functions.function_of(routine)
        except NotOfferedError as error:
            raise UnsupportedFeatureError(str(error)) from error
        return routine

    def rest_to_routine(project_id: str, dataset_id: str, body: Untyped, *args: Untyped) -> Untyped:
        language, kind = body.get("language", "SQL"), body.get("routineType", "SCALAR_FUNCTION")
        if language not in ("SQL", "JAVASCRIPT") or kind == "AGGREGATE_FUNCTION":
            raise UnsupportedFeatureError(f"The local cloud has no routines of type {kind} in {language}")
        return checked(read(project_id, dataset_id, body, *args))

    @functools.wraps(upsert)
    async def upsert_checked(ctx: Untyped, routine: Untyped, **kwargs: Untyped) -> None:
        await upsert(ctx, checked(routine), **kwargs)

    def register_checked(self: Untyped, bare_name: str, routine: Untyped) -> None:
        register(self, bare_name, checked(routine))

    routines._rest_to_routine_meta = rest_to_routine
    interpreter._upsert_routine = upsert_checked
    TempRoutineRegistry.register = register_checked


def _read_declarations() -> None:
    """Read what stands between RETURNS and a function's text."""
    from bqemulator.domain.errors import UnsupportedFeatureError
    from bqemulator.scripting import ast
    from bqemulator.scripting.interpreter import ScriptInterpreter
    from bqemulator.scripting.parser import Parser

    @dataclasses.dataclass(frozen=True)
    class Declared(ast.CreateFunctionStmt):  # type: ignore[misc]  # bqemulator has no types
        more: dict[str, Untyped] = dataclasses.field(default_factory=dict)

    read, run = Parser._parse_function_rest, ScriptInterpreter._exec_create_function

    def read_function(self: Untyped, *, or_replace: bool, table_fn: bool) -> Untyped:
        start = self._cursor._pos
        name, arguments = self._read_dotted_name(), self._parse_routine_arg_list(for_procedure=False)
        fields = _read_javascript(self, table_fn)
        if fields is None:
            self._cursor._pos = start
            return read(self, or_replace=or_replace, table_fn=table_fn)
        self._consume_optional_semicolon()
        return Declared(name=name, arguments=tuple(arguments), language="JAVASCRIPT", or_replace=or_replace, **fields)

    @functools.wraps(run)
    async def run_declared(self: Untyped, stmt: Untyped) -> None:
        more = getattr(stmt, "more", {})
        if "refused" in more:
            raise UnsupportedFeatureError(f"The local cloud has no {more['refused']}")
        token = _declared.set(more)
        try:
            await run(self, stmt)
        finally:
            _declared.reset(token)

    Parser._parse_function_rest = read_function
    ScriptInterpreter._exec_create_function = run_declared


def _read_javascript(parser: Untyped, table_fn: bool) -> dict[str, Untyped] | None:
    """Return fields of a statement; None for one that is not in JavaScript."""
    from bqemulator.udf.types import parse_bq_type_string

    answer, more = None, {}
    if _takes(parser, "RETURNS"):
        answer = parse_bq_type_string(_read_type(parser))
    is_negated = _takes(parser, "NOT")
    if _takes(parser, "DETERMINISTIC"):
        more["determinism_level"] = "NOT_DETERMINISTIC" if is_negated else "DETERMINISTIC"
    if not _takes(parser, "LANGUAGE"):
        return None
    language = str(parser._cursor.advance().value)
    if language.upper() not in _LANGUAGES or table_fn:
        more["refused"] = f"{'table functions' if table_fn else 'functions'} in the language {language}"
    more = _read_options(parser) | more
    parser._cursor.expect_keyword("AS")
    body = _read_text(parser)
    return {"return_type": answer, "body": body, "more": _read_options(parser) | more}


def _read_type(parser: Untyped) -> str:
    """Read a type up to a word that belongs to the function."""
    start, cursor = parser._cursor.pos, parser._cursor
    depth = 0
    while not cursor.at_eof():
        value = str(cursor.current.value).upper()
        if depth == 0 and cursor.pos > start and value in ("NOT", "DETERMINISTIC", "LANGUAGE", "AS", ";", "OPTIONS"):
            break
        depth += value.count("<") - value.count(">") if set(value) <= {"<", ">"} else 0
        cursor.advance()
    return str(cursor.slice(start, cursor.pos))


def _read_options(parser: Untyped) -> dict[str, Untyped]:
    """Read OPTIONS(library = …, description = …), where it stands."""
    read: dict[str, list[str]] = {}
    if not _takes(parser, "OPTIONS"):
        return {}
    parser._cursor.expect_punct("(")
    while not _takes(parser, ")"):
        option = str(parser._cursor.advance().value).lower()
        _takes(parser, "=")
        read.setdefault(option, []).extend(_read_texts(parser) if option in _OPTIONS else _skip_value(parser))
        _takes(parser, ",")
    more: dict[str, Untyped] = {}
    if "library" in read:
        more["imported_libraries"] = tuple(read["library"])
    if "description" in read:
        more["description"] = read["description"][-1]
    if others := sorted(read.keys() - _OPTIONS):
        more["refused"] = f"OPTIONS({others[0]}) of CREATE FUNCTION"
    return more


def _skip_value(parser: Untyped) -> list[str]:
    while not parser._cursor.at_eof() and parser._cursor.current.value not in (",", ")"):
        parser._cursor.advance()
    return []


def _read_texts(parser: Untyped) -> list[str]:
    """Read a text, or a list of them."""
    if not _takes(parser, "["):
        return [_read_text(parser)]
    texts = []
    while not _takes(parser, "]"):
        texts.append(_read_text(parser))
        _takes(parser, ",")
    return texts


def _read_text(parser: Untyped) -> str:
    """Read a text, also one whose backslashes are its own."""
    text = str(parser._cursor.current.value)
    if parser._cursor.current.kind != "STRING" or text[:1] not in ("r", "R"):
        return str(parser._read_string_literal())
    parser._cursor.advance()
    marks = 3 if text[1:4] in ('"""', "'''") and len(text) > 6 else 1
    return text[1 + marks : -marks]


def _takes(parser: Untyped, word: str) -> bool:
    """Return whether a word or a sign comes next, which is then read."""
    found = parser._cursor.current.kind != "STRING" and str(parser._cursor.current.value).upper() == word
    if found:
        parser._cursor.advance()
    return found

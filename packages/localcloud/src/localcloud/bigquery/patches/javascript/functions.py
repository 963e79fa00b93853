"""What DuckDB calls for a function in JavaScript: a function of Python's, and a macro that holds the arguments' types.

In: a routine of bqemulator's, and a connection. Out: the routine's name may be called. Errors leave DuckDB as a text
that `error_of` reads.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from localcloud.bigquery.patches.javascript.process import SECONDS, FailedError, LimitReachedError, Process
from localcloud.bigquery.patches.javascript.types import NotCoercedError, arrow_type, given, kind_of, taken
from localcloud.refusals import refuse
from localcloud.untyped import Untyped

_MARK = "localcloud-javascript"
_MARKED = re.compile(_MARK + r'-(\w+) ("(?:[^"\\]|\\.)*")')


_UNFIT = re.compile(r"No function matches the given name and argument types '(\w+)__js\(")


class Function:
    """A function: its types, and what the process makes it of.

    Raises:
        NotOfferedError: It has a type that is not offered.
    """

    def __init__(self, routine: Untyped, read_library: Callable[[str], str]) -> None:
        from bqemulator.udf.naming import qualified_routine_name

        if routine.routine_type != "SCALAR_FUNCTION":
            refuse(f"functions in JavaScript of type {routine.routine_type}")
        if routine.return_type is None:
            refuse("functions in JavaScript without RETURNS")
        self.parameters = [
            kind_of(each.data_type, f"parameter {each.name}", is_parameter=True) for each in routine.arguments
        ]
        self.answer = kind_of(routine.return_type, "value", is_parameter=False)
        self.macro = qualified_routine_name(routine)
        self.called = f"{self.macro}__js"
        self.shown = f"{routine.routine_id}({', '.join(kind.name for kind in self.parameters)})"
        self.libraries = tuple(routine.imported_libraries)
        self._names = [each.name for each in routine.arguments]
        self._body, self._read_library = routine.definition_body, read_library

    @property
    def macro_body(self) -> str:
        """The macro: a call with types that no cast makes others is an error."""
        names = [f"p{number}" for number in range(len(self.parameters))]
        call = f"CAST({self.called}({', '.join(names) or '0'}) AS {self.answer.duckdb})"  # JSON is a text for Arrow
        fitting = " AND ".join(f"({kind.fits(name)})" for name, kind in zip(names, self.parameters, strict=True))
        if fitting:
            wrong = _marked("notImplemented", self.of_other_types).replace("'", "''")
            call = f"CASE WHEN {fitting} THEN {call} ELSE error('{wrong}') END"
        return f'CREATE OR REPLACE MACRO "{self.macro}"({", ".join(names)}) AS ({call})'

    @property
    def of_other_types(self) -> str:
        """What is said of a call whose arguments have other types."""
        return f"The local cloud has no {self.shown} for arguments of other types: cast them"

    @functools.cached_property
    def definition(self) -> dict[str, Any]:
        """What the process makes the function of."""
        types = {"parameters": [kind.plain for kind in self.parameters], "answer": self.answer.plain}
        function = [json.dumps(self._names), self._body, json.dumps(types)]
        return {"name": self.called, "function": function, "libraries": [*map(self._read_library, self.libraries)]}


class Functions:
    """The functions that may be called."""

    def __init__(self, read_library: Callable[[str, str], str]) -> None:
        """Make them.

        Args:
            read_library: Returns the text of an object, from its address and the project that asks for it.
        """
        self._read_library = read_library
        self._process = Process()
        self._functions: dict[str, Function] = {}

    def function_of(self, routine: Untyped) -> Function:
        """Return a routine's function, which nobody may call yet."""
        return Function(routine, lambda uri: self._read_library(uri, routine.project_id))

    def add(self, routine: Untyped, connection: Untyped) -> None:
        """Let statements call a routine."""
        function = self.function_of(routine)
        self.remove(function.macro, connection)
        connection.create_function(
            function.called,
            self._callable(function),
            [connection.type(kind.duckdb) for kind in function.parameters] or [connection.type("BIGINT")],
            connection.type(function.answer.duckdb_of_arrow),
            type="arrow",
            null_handling="special",
            side_effects=True,
        )
        connection.execute(function.macro_body)
        self._functions[function.macro] = function

    def remove(self, macro: str, connection: Untyped) -> None:
        """Let nobody call it any more."""
        import duckdb

        if function := self._functions.pop(macro, None):
            self._forget(function)
            connection.execute(f'DROP MACRO IF EXISTS "{macro}"')
            with contextlib.suppress(duckdb.Error):
                connection.remove_function(function.called)

    def read_libraries_again(self) -> None:
        """Forget what libraries said: somebody may have changed them since the last statement."""
        for function in self._functions.values():
            if function.libraries and "definition" in vars(function):
                del function.definition
                self._forget(function)

    def error_of(self, text: str) -> tuple[str, str] | None:
        """Return reason and message of what a function ended a statement with; None: it was something else.

        Args:
            text: What DuckDB says.
        """
        if found := _MARKED.search(text):
            return found[1], str(json.loads(found[2]))
        unfit = _UNFIT.search(text)
        function = self._functions.get(unfit[1]) if unfit else None
        return ("notImplemented", function.of_other_types) if function else None

    def _forget(self, function: Function) -> None:
        with contextlib.suppress(LimitReachedError, FailedError):
            self._process.forget(function.called)

    def _callable(self, function: Function) -> Callable[..., Untyped]:
        """Return what DuckDB calls: it counts the parameters."""

        def call(*columns: Untyped) -> Untyped:
            return self._call(function, columns)

        names = [f"p{number}" for number in range(len(function.parameters) or 1)]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    def _call(self, function: Function, columns: Sequence[Untyped]) -> Untyped:
        """Return the column that a function makes of columns."""
        import pyarrow as pa
        from bqemulator.domain.errors import DomainError

        listed = [column.to_pylist() for column in columns]
        rows = [
            [given(value, kind) for value, kind in zip(row, function.parameters, strict=False)]
            for row in zip(*listed, strict=True)
        ]
        try:
            values = self._process.call(function.definition, rows)
            return pa.array([taken(value, function.answer) for value in values], type=arrow_type(function.answer))
        except DomainError as error:  # of a library
            raise ValueError(_marked(error.bq_reason, str(error.message))) from None
        except FailedError as error:
            place = f" line {error.place[0]}, columns {error.place[1]}-{error.place[1] + 1}" if error.place else ""
            raise _ended(error.text, f"{function.shown}{place}") from None
        except NotCoercedError as error:
            raise _ended(str(error), function.shown) from None
        except LimitReachedError as error:
            raise ValueError(_limit(str(error), function)) from None


def _limit(reached: str, function: Function) -> str:
    """Return what `localcloud.bigquery.limits` knows by its beginning."""
    said = "UDF out of memory" if reached == "memory" else f"UDF timed out, the local cloud waits {SECONDS:.0f} seconds"
    return f"Resources exceeded during query execution: {said}. At {function.shown}"


def _ended(text: str, where: str) -> ValueError:
    reason = "notImplemented" if text.startswith("The local cloud has no") else "invalidQuery"
    return ValueError(_marked(reason, f"{text} at {where}"))


def _marked(reason: str, message: str) -> str:
    return f"{_MARK}-{reason} {json.dumps(message)}"

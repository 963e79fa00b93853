"""Functions of a team's own: found, looked at without running them, and loaded.

In: how a model's file names a function, `file.py:name` below a folder of `include`, or an installed package's entry
point. Out: the function, with the SHA-256 of the source file that has it.

DAG files are parsed for all models at once, so there a file is only read (`look`): what it does when it is imported is
for the model's own tasks and check-models to find out (`load`).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from retraining.core.errors import SpecError, suggest

_T = TypeVar("_T")

LOAD_S = 30.0
"""In which a file must be imported."""
MOST_BYTES = 1_000_000
"""Of a file."""
_WAY_OUT = "Correct the file, or the model's, and run check-models"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where functions of one kind are.

    Attributes:
        folder: Of the files, `include/<kind>`.
        group: Of the entry points.
    """

    folder: Path
    group: str


@dataclass(frozen=True, kw_only=True)
class TeamFunction:
    """A function that is loaded.

    Attributes:
        call: It.
        sha256: Of the source file that has it; not of what that imports.
        package: Distribution and version of an entry point; None: it is a file of the team's repository.
    """

    call: Callable[..., Any]
    sha256: str
    package: str | None = None


class OutOfTimeError(Exception):
    """It was not done in time."""


def look(function: str, where: str, place: Place) -> None:
    """Refuse a function that cannot be used, as far as that is known without running anything of it.

    Raises:
        SpecError: There is no such file, function, entry point or imported package; says which.
    """
    path, separator, name = function.partition(":")
    if not separator:
        _find_point(function, where, place)
        return
    _find_function(_read(path, where, place), name, f"{where}, {path}")


def load(function: str, where: str, place: Place) -> TeamFunction:
    """Import a function.

    Raises:
        SpecError: It cannot be; says why. Whatever its file does, this is what comes of it.
    """
    look(function, where, place)
    path, separator, name = function.partition(":")
    if not separator:
        return _load_point(_find_point(function, where, place), where)
    source = _read(path, where, place)
    sha256 = hashlib.sha256(source).hexdigest()
    module = _require(lambda: _import_file(source, str(place.folder / path), sha256), f"{where}, {path}")
    call = getattr(module, name, None)
    if not callable(call):
        raise SpecError(f"{where}, {path}", f"{name} is {type(call).__name__}", "a function", _WAY_OUT)
    return TeamFunction(call=call, sha256=sha256)


def attempt(seconds: float, function: Callable[[], _T]) -> _T | Exception:
    """Return what a function returns, or the error that it ended with; it is waited for so long, in its own thread.

    Of a function that is not done in time it is an `OutOfTimeError`, and its thread ends with the process. What ends a
    program (`SystemExit`) is a `RuntimeError`.
    """
    outcome = _Outcome()
    results: list[_T] = []

    def work() -> None:
        with outcome:
            results.append(function())

    thread = threading.Thread(target=work, name="team-code", daemon=True)
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    error = outcome.error
    if error is None:
        return OutOfTimeError(f"not done within {seconds:g} seconds")
    return error if isinstance(error, Exception) else RuntimeError(f"it ended the program: {explain(error)}")


class _Outcome:
    """Keeps whatever ends what is done within it."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> bool:
        self.error = error
        return True


def explain(error: BaseException) -> str:
    """Return what went wrong in a team's function, in a line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _require(function: Callable[[], _T], where: str) -> _T:
    found = attempt(LOAD_S, function)
    if not isinstance(found, Exception):
        return found
    raise SpecError(
        where, f"it cannot be imported: {explain(found)}", "a file that can be imported", _WAY_OUT
    ) from found


class _FileLoader(importlib.abc.InspectLoader):
    """Imports a file from the very bytes that its digest is of."""

    def __init__(self, source: bytes, path: str) -> None:
        self._source, self._path = source, path

    def get_source(self, fullname: str) -> str:
        del fullname
        return importlib.util.decode_source(self._source)

    def get_code(self, fullname: str) -> types.CodeType:
        del fullname
        return self.source_to_code(self._source, self._path)

    def is_package(self, fullname: str) -> bool:
        del fullname
        return False


def _import_file(source: bytes, path: str, sha256: str) -> types.ModuleType:
    """Import a file under a name that no other module has."""
    name = f"retraining_team_{sha256[:32]}"
    loader = _FileLoader(source, path)
    spec = importlib.machinery.ModuleSpec(name, loader, origin=path)
    spec.has_location = True  # so that it has its `__file__`
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as an import does: dataclasses look there
    loader.exec_module(module)
    return module


def _read(path: str, where: str, place: Place) -> bytes:
    file = (place.folder / path).resolve()
    if not file.is_relative_to(place.folder.resolve()):
        raise SpecError(where, f"{path!r} leads outside", f"a file below {place.folder.name}", _WAY_OUT)
    if not file.is_file():
        known = sorted(str(each.relative_to(place.folder)) for each in place.folder.rglob("*.py"))
        expected = f"a file below include/{place.folder.name}"
        raise SpecError(where, f"no file {path!r}", expected, suggest(path, known) or _WAY_OUT)
    try:
        source = file.read_bytes()
    except OSError as error:
        raise SpecError(where, f"{path!r} cannot be read ({error})", "a file of Python", _WAY_OUT) from error
    if len(source) > MOST_BYTES:
        raise SpecError(where, f"{path!r} has {len(source):,} bytes", f"at most {MOST_BYTES:,}", _WAY_OUT)
    return source


def _find_function(source: bytes, name: str, where: str) -> None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise SpecError(where, f"it is no Python: {explain(error)}", "a file of Python", _WAY_OUT) from error
    for package in _imported(tree):
        if package.startswith("."):
            raise SpecError(where, f"it imports {package}", "one file, and installed packages", _WAY_OUT)
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            way_out = f"Install {package} in Airflow's environment, or remove the import"
            raise SpecError(where, f"it imports {package}, which is not installed", "installed packages", way_out)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if name not in functions:
        hint = suggest(name, functions) or _WAY_OUT
        raise SpecError(where, f"no function {name!r} in it", f"def {name}(run)", hint)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a file imports as soon as it is imported itself; of its own folder with a dot."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "").partition(".")[0]


def _find_point(name: str, where: str, place: Place) -> EntryPoint:
    installed = {point.name: point for point in entry_points(group=place.group)}
    if name not in installed:
        expected = f"a file below include/{place.folder.name} as file.py:name, or an entry point of {place.group}"
        listed = f" ({', '.join(sorted(installed))})" if installed else ""
        raise SpecError(where, f"no {name!r}", f"{expected}{listed}", suggest(name, list(installed)) or _WAY_OUT)
    return installed[name]


def _load_point(point: EntryPoint, where: str) -> TeamFunction:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else point.module
    place = f"{where}, {point.value} of {package}"
    call = _require(point.load, place)
    spec = _require(lambda: importlib.util.find_spec(point.module), place)
    if not callable(call) or spec is None or not spec.origin or not Path(spec.origin).is_file():
        raise SpecError(place, type(call).__name__, "a function in a file", "Correct or remove that package")
    sha256 = hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()
    return TeamFunction(call=call, sha256=sha256, package=package)

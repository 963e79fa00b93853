"""Functions of a team's own: found, looked at without running them, and loaded.

In: how a model's file names a function, `file.py:name` below a folder of `include`, or an installed package's entry
point. Out: the function, with the SHA-256 of the source file that has it.

DAG files are parsed for all models at once, so there a file is only read (`look`): what it does when it is imported is
for the model's own tasks and check-models to find out (`load`).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from retraining.core.errors import RetrainingError, SpecError, suggest

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
    module = _attempt(lambda: _run_file(source, str(place.folder / path), sha256), f"{where}, {path}")
    call = getattr(module, name, None)
    if not callable(call):
        raise SpecError(f"{where}, {path}", f"{name} is {type(call).__name__}", "a function", _WAY_OUT)
    return TeamFunction(call=call, sha256=sha256)


def within(seconds: float, function: Callable[[], _T]) -> _T:
    """Return what a function returns, and wait no longer than that for it, in a thread of its own.

    Raises:
        OutOfTimeError: It was not done in time. Its thread ends with the process.
        Exception: Whatever it raises; `SystemExit` is a `RuntimeError`.
    """
    done: list[Callable[[], _T]] = []

    def work() -> None:
        try:
            result = function()
            done.append(lambda: result)
        except BaseException as error:  # noqa: BLE001 - raised again, where it is waited for
            done.append(_raising(error))

    thread = threading.Thread(target=work, name="team-code", daemon=True)
    thread.start()
    thread.join(seconds)
    if not done:
        raise OutOfTimeError(f"not done within {seconds:g} seconds")
    return done[0]()


def explain(error: BaseException) -> str:
    """Return what went wrong in a team's function, in a line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def again() -> NoReturn:
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(f"it ended the program: {explain(error)}") from error

    return again


def _attempt(function: Callable[[], _T], where: str) -> _T:
    try:
        return within(LOAD_S, function)
    except RetrainingError:
        raise
    except Exception as error:
        raise SpecError(
            where, f"it cannot be imported: {explain(error)}", "a file that can be imported", _WAY_OUT
        ) from error


def _run_file(source: bytes, path: str, sha256: str) -> types.ModuleType:
    """Import a file from the very bytes that its digest is of, under a name that no other module has."""
    name = f"retraining_team_{sha256[:32]}"
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # as an import does: dataclasses look there
    exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 - the team's own code, as its DAG files are
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
    call = _attempt(point.load, place)
    spec = _attempt(lambda: importlib.util.find_spec(point.module), place)
    if not callable(call) or spec is None or not spec.origin or not Path(spec.origin).is_file():
        raise SpecError(place, type(call).__name__, "a function in a file", "Correct or remove that package")
    sha256 = hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()
    return TeamFunction(call=call, sha256=sha256, package=package)

"""What the commands share: what they work with, how they print, and what becomes of an error.

Text of documents, services and files is shown as a terminal may have it, and nothing in it obeyed: an escape sequence
moves the cursor, sets a window's title or hides what stands above; a mark of writing direction turns what follows
around; half a character ends the program that prints it.

A command reads its arguments, asks, prints and ends: with 0, with 1 where all is not well, with 2 where its arguments
are wrong.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from retraining.core.errors import PlanError, RetrainingError, SpecError, suggest
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import find_specs, spec_path
from retraining.hooks.cloud import OwnCloud
from retraining.hooks.ports import CloudPort
from retraining.hooks.session import explain

_T = TypeVar("_T")

INTERRUPTED = 130
"""What a shell takes for a command that Ctrl-C ended."""


INCLUDE = click.option(
    "--include",
    type=click.Path(path_type=Path),
    help="Folder with models and sql; left out: RETRAINING_INCLUDE, or the one beside dags.",
)


@dataclass(frozen=True, kw_only=True)
class Shell:
    """What a command works with.

    Attributes:
        connect: Makes the cloud, as this machine's own credentials may use it.
        connect_to: The same by other variables than this process's: another stage's.
        find_include: Finds the models' files.
    """

    connect: Callable[[], CloudPort] = OwnCloud
    connect_to: Callable[[Mapping[str, str]], CloudPort] = OwnCloud
    find_include: Callable[[], Path] = include_path

    def models(self) -> list[str]:
        """Return the name of every model."""
        return [path.stem for path in find_specs(self.find_include())]

    def require_model(self, model: str) -> str:
        """Return a name that a model has.

        Raises:
            SpecError: None has it.
        """
        known = self.models()
        if model not in known:
            raise SpecError("MODEL", f"no model {model!r}", f"one of: {', '.join(known)}", suggest(model, known))
        return model

    def spec(self, model: str) -> ModelSpec:
        """Return what a model's file says.

        Raises:
            SpecError: There is none, or it is wrong.
        """
        return load_spec(spec_path(self.find_include(), self.require_model(model)))


def split_pair(option: str, text: str, expected: str, example: str, prefix: str = "") -> tuple[str, str]:
    """Return name and value of what an option was given, `name=value`.

    Raises:
        PlanError: It is no such pair, or its name does not begin as it must.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.startswith(prefix):
        raise PlanError(option, repr(text), expected, f"For example {option} {example}")
    return name, value


def print_answer(lines: Iterable[str], *, is_good: bool = True) -> None:
    """Print a command's lines, and end it with 1 where all is not well."""
    print("\n".join(map(printable, lines)))
    end(is_good=is_good)


def print_warning(line: str) -> None:
    """Print a line beside the answer."""
    print(printable(line), file=sys.stderr)


def print_error(error: object) -> None:
    """Print an error's message, of one line or several."""
    print(printable(str(error), keep_lines=True), file=sys.stderr)


def end(*, is_good: bool) -> None:
    """End the command with 1 where all is not well."""
    if not is_good:
        raise click.exceptions.Exit(1)


def check_each(paths: Iterable[Path], check: Callable[[Path], str]) -> bool:
    """Print a check's line on each file, or its error, which hides no other file's; return whether all are well."""
    is_good = True
    for path in paths:
        said = attempt(partial(check, path))
        if isinstance(said, Exception):
            print_error(known_error(said) or f"{path.name}: {type(said).__name__}: {said}")
            is_good = False
        else:
            print(printable(said))
    return is_good


def attempt(ask: Callable[[], _T]) -> _T | Exception:
    """Return an answer, or the error in its place: what one question meets does not hide what the others find."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - of any class: whoever asks tells each error by its name
        return error


def run_program(program: click.Group, arguments: Sequence[str] | None, shell: Shell) -> int:
    """Run a command of the program.

    Args:
        program: All commands.
        arguments: Words behind the program's name; None: this process's.
        shell: What the command works with.

    Returns:
        The exit status.
    """
    try:
        status = program.main(arguments, prog_name=program.name, obj=shell, standalone_mode=False)
    except click.UsageError as error:
        print_error(_explain_usage(error, error.ctx or click.Context(program, info_name=program.name)))
        return 2
    except click.Abort:
        return INTERRUPTED
    except Exception as error:  # of any class: `explain` knows those of Google's clients, and the rest is raised again
        known = known_error(error)
        if known is None:
            raise
        print_error(known)
        return 1
    return int(status or 0)


def known_error(error: Exception) -> RetrainingError | None:
    """Return an error with its way out; None for one that nobody knows, as of a service that does not answer."""
    return error if isinstance(error, RetrainingError) else explain(error)


def _explain_usage(error: click.UsageError, context: click.Context) -> RetrainingError:
    if isinstance(context.command, click.Group):
        expected = f"one of: {', '.join(context.command.list_commands(context))}"
    else:
        expected = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    return RetrainingError(
        context.command_path, error.format_message(), expected, f"{context.command_path} --help explains it"
    )


REPLACED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that are no sign: controls, format marks, halves, separators of lines."""
SHOWN_AS = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Return a text in which every character is a sign or a space.

    Args:
        text: Of anybody.
        keep_lines: Whether a line break stays one; else it is a space, for a line of ours is one line.
    """
    if text.isprintable():
        return text
    return "".join(_shown(letter, keep_lines) for letter in text)


def _shown(letter: str, keep_lines: bool) -> str:
    if letter == "\n":
        return letter if keep_lines else " "
    if letter == "\t":
        return " "
    return SHOWN_AS if unicodedata.category(letter) in REPLACED else letter

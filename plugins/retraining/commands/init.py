"""The command `init`: a repository for a team's models, without the software."""

from __future__ import annotations

from pathlib import Path

import click

from retraining import __version__
from retraining.commands.shell import print_answer
from retraining.core.errors import ConflictError
from retraining.core.team_repository import render_repository


def require_empty(folder: Path) -> None:
    """Refuse a folder that has anything but git's own.

    Raises:
        ConflictError: It has something, or is a file.
    """
    expected, way_out = "a folder that is new or empty, but for .git", "Name another one: retraining init DIR"
    if folder.exists() and not folder.is_dir():
        raise ConflictError(str(folder), "a file", expected, way_out)
    there = sorted(path.name for path in folder.iterdir() if path.name != ".git") if folder.exists() else []
    if there:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise ConflictError(str(folder), f"not empty: {there[0]!r}{more}", expected, way_out)


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def init_repository(folder: Path) -> None:
    """Make a repository for a team's models in DIR.

    An example model with its SQL and test, three lines of DAGs, checks for pull requests, the way to Composer. The
    software is a package, which its requirements name by version. A folder that has anything is refused.
    """
    require_empty(folder)
    files = render_repository(folder.resolve().name, __version__)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with (folder / path).open("x", encoding="utf-8") as file:  # whoever comes in between loses nothing
            file.write(text)
    print_answer([*(f"wrote {folder / path}" for path in files), "", f"next: {folder / 'README.md'}"])

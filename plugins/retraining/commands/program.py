"""A program whose commands other packages may add to, by entry points of the group `retraining.commands`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

import click

from retraining.commands.shell import attempt
from retraining.core.errors import SettingsError

GROUP = "retraining.commands"


class OpenGroup(click.Group):
    """Its own commands, and those of installed packages; none of these takes the place of one of its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, its own first, as they were given; nothing of another package is imported for it."""
        del ctx
        return [*self.commands, *sorted(set(_installed()) - set(self.commands))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; that of another package is imported now. One that cannot be says so when it is run."""
        own = super().get_command(ctx, cmd_name)
        return own or (_load(_installed()[cmd_name]) if cmd_name in _installed() else None)


def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _load(point: EntryPoint) -> click.Command:
    command = attempt(point.load)  # another package's import may raise anything
    return command if isinstance(command, click.Command) else _refusing(point, command)


def _refusing(point: EntryPoint, found: object) -> click.Command:
    """Return a command that only says why it is none: the help of all others stays."""
    package = point.dist.name if point.dist else point.value

    def refuse() -> None:
        raise SettingsError(
            f"command {point.name}",
            f"{point.value} of the package {package}: {type(found).__name__}: {found}",
            "a command of click",
            "Correct or remove that package",
        )

    takes_anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    help_text = f"Cannot be loaded from the package {package}."
    return click.Command(point.name, callback=refuse, help=help_text, context_settings=takes_anything)

"""The command `diff`: what two stages of `environments.yaml` make of the same models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from retraining.commands.shell import INCLUDE, Shell, print_answer
from retraining.core.errors import SpecError, suggest
from retraining.core.planning.stage_changes import NOT_SET, stage_changes
from retraining.core.report.terminal import table
from retraining.core.spec.files import load_spec
from retraining.core.spec.stages import PLACES, require_stages
from retraining.core.spec.teams import find_specs

ANOTHER, SAME = "another run key", "the same run key"


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.argument("model", required=False)
@INCLUDE
@click.pass_obj
def show_differences(shell: Shell, old: str, new: str, model: str | None, include: Path | None) -> None:
    """Show what differs between two stages, OLD and NEW.

    Where each is, and of every model, or of MODEL, the keys whose values differ, as each stage resolves its file.
    Beside each key stands whether a run's key is another one by it. It reads the include folder alone.
    """
    folder = include or shell.find_include()
    paths = [path for path in find_specs(folder) if model in (None, path.stem)]
    if not paths and model:
        known = [path.stem for path in find_specs(folder)]
        raise SpecError("MODEL", f"no model {model!r}", f"one of: {', '.join(known)}", suggest(model, known))
    lines = [*_places(folder, old, new)]
    for path in paths:
        lines += _of_model(path, old, new)
    print_answer([*lines, "The environment's name is in every run key too: no two stages share a run."])


def _places(include: Path, old: str, new: str) -> Iterator[str]:
    """Yield where each stage is, as far as the file says it."""
    stages = require_stages(include, "OLD")
    before, now = stages.stage(old, "OLD").places, stages.stage(new, "NEW").places
    yield f"{old} → {new}"
    differ = [name for name in PLACES if before.get(name) != now.get(name)]
    rows = [(f"  {name}", f"{before.get(name, NOT_SET)} → {now.get(name, NOT_SET)}") for name in differ]
    yield from table(rows) if rows else ["  both are where their environments' variables say"]


def _of_model(path: Path, old: str, new: str) -> Iterator[str]:
    """Yield what differs of a model, and what follows."""
    changes = stage_changes(load_spec(path, old), load_spec(path, new))
    if not changes:
        yield f"{path.stem}: the same in both"
        return
    deciding = [change.key for change in changes if change.decides]
    follows = f"{len(deciding)} of them for {ANOTHER}" if deciding else "none of them for a run key"
    yield f"{path.stem}: {len(changes)} {'key differs' if len(changes) == 1 else 'keys differ'}, {follows}"
    yield from table(
        [
            (f"  {change.key}", f"{change.before} → {change.now}", ANOTHER if change.decides else SAME)
            for change in changes
        ]
    )

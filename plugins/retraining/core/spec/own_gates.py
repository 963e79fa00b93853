"""The functions that a model's file names as gates of the team's own: looked at, and loaded."""

from __future__ import annotations

from pathlib import Path

from retraining.core import team_code
from retraining.core.errors import SpecError
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import folder_of
from retraining.core.team_code import Place, TeamFunction

GROUP = "retraining.gates"
FOLDER = "gates"


def gate_place(include: Path) -> Place:
    """Return where gates are, below the folder with a model's files."""
    return Place(folder=include / FOLDER, group=GROUP)


def look_at_gates(spec: ModelSpec, include: Path) -> None:
    """Refuse gates that cannot be used, as far as that is known without running anything of them.

    Raises:
        SpecError: One cannot be.
    """
    for gate in spec.evaluation.gates:
        team_code.look(gate.function, _where(spec, gate.name), _place_of(spec, include))


def require_gates(spec: ModelSpec, include: Path) -> dict[str, TeamFunction]:
    """Return the functions by the gates' names.

    Raises:
        SpecError: One cannot be imported.
    """
    place = _place_of(spec, include)
    return {gate.name: team_code.load(gate.function, _where(spec, gate.name), place) for gate in spec.evaluation.gates}


def load_gates(spec: ModelSpec, include: Path) -> dict[str, TeamFunction | SpecError]:
    """Return the functions by the gates' names; of one that cannot be imported, why."""
    found: dict[str, TeamFunction | SpecError] = {}
    for gate in spec.evaluation.gates:
        try:
            found[gate.name] = team_code.load(gate.function, _where(spec, gate.name), _place_of(spec, include))
        except SpecError as error:
            found[gate.name] = error
    return found


def _place_of(spec: ModelSpec, include: Path) -> Place:
    return gate_place(folder_of(include, spec.name))


def _where(spec: ModelSpec, name: str) -> str:
    return f"{spec.name}.yaml, evaluation.gates, {name}"

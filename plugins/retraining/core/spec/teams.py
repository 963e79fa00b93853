"""Where models' files are: in `include` itself, or in the folder of a team, `include/teams/<team>`.

In: the file `include/teams.yaml`, of whoever runs the Airflow environment, and those folders, which hold what `include`
holds for one team: models, sql, gates, environments.yaml. Out: the files of all models, the folder of each, and a
model's file as its team has it.

A model belongs to the team whose prefix its name begins with, every other one to `include` itself; a file that lies
elsewhere is refused, and is in nobody's way. So no team can take another's model, nor its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, StringConstraints, ValidationError, model_validator

from retraining.core.errors import SpecError, suggest
from retraining.core.spec.messages import explain
from retraining.core.spec.model import ServiceAccount
from retraining.core.spec.section import Section
from retraining.core.spec.yaml_file import Location, SpecText, plain_id, read_spec_text, read_text

FILE = "teams.yaml"
FOLDER = "teams"
MODELS = "models"
ENDINGS = (".yaml", ".yml")

TeamName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


def _or_empty(value: object) -> object:
    return {} if value is None else value


class Team(Section):
    """What the models of a team's folder are held to."""

    prefix: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}_$")] | None = None
    """With which the names of its models begin; left out: the team's name and `_`."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    """Of its models: Airflow's owner, and the team of `budgets.yaml`; left out: the team's name."""
    service_account: ServiceAccount | None = None
    """That its models' jobs run as; left out: what each model says, but for an account of another team here."""


class Teams(Section):
    """The teams by their folders' names."""

    teams: dict[TeamName, Annotated[Team, BeforeValidator(_or_empty)]]

    @property
    def prefixes(self) -> dict[str, str]:
        """Prefix by team."""
        return {name: team.prefix or f"{name.replace('-', '_')}_" for name, team in self.teams.items()}

    @model_validator(mode="after")
    def _each_has_names_of_its_own(self) -> Self:
        prefixes = self.prefixes
        for name, prefix in prefixes.items():
            for other, longer in prefixes.items():
                if other != name and longer.startswith(prefix):
                    raise ValueError(
                        f"a model called {longer}… would be of team {name!r} and of team {other!r}: expected prefixes "
                        "none of which begins with another. Give one of them another `prefix`"
                    )
        return self

    def of_model(self, model: str) -> str | None:
        """Return the team that a model's name belongs to; None: it is of no team."""
        return next((name for name, prefix in self.prefixes.items() if model.startswith(prefix)), None)


NO_TEAMS = Teams(teams={})


@dataclass(frozen=True, kw_only=True)
class TeamFolder:
    """The folder of a team, by its place.

    Attributes:
        include: Beside whose `teams.yaml` it lies.
        team: Its name.
    """

    include: Path
    team: str

    @property
    def path(self) -> Path:
        """Where its models, SQL and gates are."""
        return self.include / FOLDER / self.team


def find_teams(include: Path) -> Teams:
    """Return what the file says; without one there are no teams.

    Raises:
        SpecError: Anything is wrong with it; the message has all findings, with lines.
    """
    path = include / FILE
    return _parse(read_text(path)) if path.is_file() else NO_TEAMS


@lru_cache(maxsize=4)  # every DAG file asks for every model at each parse
def _parse(data: str) -> Teams:
    text = read_spec_text(data, FILE)
    try:
        return Teams.model_validate(text.values)
    except ValidationError as error:
        raise explain(error, text, Teams) from error


def team_folder(path: Path) -> TeamFolder | None:
    """Return the team's folder that a model's file lies in; None: it lies in none."""
    folder = path.parent.parent
    include = folder.parent.parent
    if folder.parent.name != FOLDER or not ((include / FILE).is_file() or (include / MODELS).is_dir()):
        return None
    return TeamFolder(include=include, team=folder.name)


def team_folders(include: Path) -> list[TeamFolder]:
    """Return the folders of all teams, those that `teams.yaml` does not name too, sorted by name."""
    folder = include / FOLDER
    found = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [TeamFolder(include=include, team=name) for name in found if not name.startswith(".")]


def find_specs(include: Path) -> list[Path]:
    """Return the files of all models, those of teams too, sorted by name.

    Raises:
        SpecError: There is no folder `models`, and no teams.
    """
    folder = include / MODELS
    if not folder.is_dir() and not (include / FILE).is_file():
        raise SpecError(str(folder), "no such folder", "one YAML file per model in it", "Name the folder above it")
    folders = [folder, *(each.path / MODELS for each in team_folders(include))]
    found = (path for each in folders if each.is_dir() for path in each.iterdir())
    return sorted(
        (path for path in found if path.suffix in ENDINGS and path.is_file()),
        key=lambda path: (path.name, len(path.parts), path),
    )


def folder_of(include: Path, model: str) -> Path:
    """Return the folder with a model's files: `include`, or that of the team whose the name is.

    Args:
        include: The folder that the Airflow environment, or a command, has.
        model: Its name.

    Raises:
        SpecError: `teams.yaml` is wrong, and the model is none of `include/models`.
    """
    try:
        team = find_teams(include).of_model(model)
    except SpecError:
        if _existing(include / MODELS, model) is None:
            raise
        return include
    return include if team is None else include / FOLDER / team


def spec_path(include: Path, model: str) -> Path:
    """Return where a model's file is, or would be.

    Raises:
        SpecError: As of `folder_of`.
    """
    folder = folder_of(include, model) / MODELS
    return _existing(folder, model) or folder / f"{model}{ENDINGS[0]}"


def _existing(folder: Path, model: str) -> Path | None:
    paths = (folder / f"{model}{ending}" for ending in ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def plain_name(path: Path) -> str:
    """Return what a model's DAGs are called after.

    Of a file whose name no DAG can have it is something like it; of one that lies in a folder where its name is
    another's, the folder's name comes first, so that it takes the place of none.
    """
    name = plain_id(path)
    found = team_folder(path)
    try:
        owner = find_teams(found.include if found else path.parent.parent).of_model(path.stem)
    except SpecError:  # all teams' models are refused; the names of those that are not are still theirs
        owner = found.team if found and not _existing(found.include / MODELS, path.stem) else None
    if owner == (found.team if found else None):
        return name
    return f"{found.team if found else MODELS}.{name}"


def missing_folders(include: Path) -> dict[str, SpecError]:
    """Return what is wrong with teams that have no folder of models, by team; of a file that is wrong, nothing."""
    try:
        teams = find_teams(include).teams
    except SpecError:
        return {}
    return {
        name: SpecError(
            f"{FILE}, {name}",
            f"no folder {FOLDER}/{name}/{MODELS} beside it",
            "the team's models there",
            f"Bring them there, or remove {name} from {FILE}",
        )
        for name in teams
        if not (include / FOLDER / name / MODELS).is_dir()
    }


def explain_teams(include: Path) -> str:
    """Return a line: how many models each team has.

    Raises:
        SpecError: `teams.yaml` is wrong, a team has no folder of models, or a folder no team.
    """
    teams = find_teams(include).teams
    for error in missing_folders(include).values():
        raise error
    for folder in team_folders(include):
        require_team(folder)
    models = [team_folder(path) for path in find_specs(include)]
    counts = {name: sum(found is not None and found.team == name for found in models) for name in teams}
    return f"{FILE}: models of {', '.join(f'{name} ({count})' for name, count in counts.items()) or 'no team'}"


def require_team(folder: TeamFolder) -> Team:
    """Return what `teams.yaml` says of a folder.

    Raises:
        SpecError: The file is wrong, is not there, or does not name it.
    """
    teams = find_teams(folder.include).teams
    if folder.team not in teams:
        raise SpecError(
            f"{FOLDER}/{folder.team}",
            f"no team {folder.team!r} in {FILE}",
            f"one of: {', '.join(teams) or 'none is there'}",
            suggest(folder.team, list(teams)) or f"Add it to {folder.include.name}/{FILE}, or remove the folder",
        )
    return teams[folder.team]


def as_team_has_it(text: SpecText, path: Path) -> SpecText:
    """Return a model's file with what its team gives it, and hold it to the rest.

    Args:
        text: The file, as its stage has it.
        path: Of it, in a folder `models`.

    Raises:
        SpecError: `teams.yaml` is wrong or does not name the team, the model's name is another's, or the file says an
            owner or a service account that is not the team's.
    """
    found = team_folder(path)
    if found is None:
        _require_no_teams_name(path)
        return text
    team, prefixes = require_team(found), find_teams(found.include).prefixes
    if not path.stem.startswith(prefixes[found.team]):
        raise SpecError(
            f"{FOLDER}/{found.team}/{MODELS}/{path.name}",
            f"a model called {path.stem}",
            f"names that begin with {prefixes[found.team]!r}, as {FILE} has it of team {found.team}",
            "Rename the model and its file",
        )
    _refuse_others_account(text, found)
    given = {"owner": team.owner or found.team, "service_account": team.service_account}
    return _with_given(text, {key: value for key, value in given.items() if value is not None}, found.team)


def _refuse_others_account(text: SpecText, folder: TeamFolder) -> None:
    said = text.values.get("service_account")
    for name, other in find_teams(folder.include).teams.items():
        if said is not None and name != folder.team and said == other.service_account:
            raise SpecError(
                text.place(("service_account",)),
                f"service_account is {said!r}, which {FILE} gives team {name}",
                f"none of another team than {folder.team}",
                "Name another account, or leave it out",
            )


def _require_no_teams_name(path: Path) -> None:
    try:
        teams = find_teams(path.parent.parent)
    except SpecError:  # that of the teams' models says it
        return
    if team := teams.of_model(path.stem):
        raise SpecError(
            f"{MODELS}/{path.name}",
            f"a model called {path.stem}, which is a name of team {team}",
            f"names that do not begin with {teams.prefixes[team]!r}, or the file in {FOLDER}/{team}/{MODELS}",
            "Move the file with its SQL, or rename the model",
        )


def _with_given(text: SpecText, given: Mapping[str, str], team: str) -> SpecText:
    places = dict[Location, str]()
    for key, value in given.items():
        said = text.values.get(key)
        if said is not None and said != value:
            raise SpecError(
                text.place((key,)), f"{key} is {said!r}", f"{value!r}, as {FILE} has it of team {team}", f"Remove {key}"
            )
        places[key,] = f"{FILE}, {team}"
    return text.with_values(text.where, {**text.values, **given}, places)

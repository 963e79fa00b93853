"""The file `include/environments.yaml`: a team's stages, where each of them is, and what differs there.

In: the file beside the models' files. Out: a model's file as a stage has it, and the settings that a stage must have.

A stage changes how much is spent on a model and when, never what the model is: see `OVERLAID`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, model_validator

from retraining.core.errors import SettingsError, SpecError, suggest
from retraining.core.settings import SETTINGS, STAGE_PATTERN, as_written, include_path, stage_name
from retraining.core.spec.messages import Finding, explain, raise_findings, shorten
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.section import Section
from retraining.core.spec.teams import FOLDER, find_specs, spec_path, team_folder
from retraining.core.spec.yaml_file import Location, SpecText, read_spec_text, read_text
from retraining.core.untyped import YamlValues

FILE = "environments.yaml"
PLACES = ("project", "region", "bucket", "results_bucket", "dataset")
"""Settings that a stage may say."""
BUCKETS = ("bucket", "results_bucket")
ALL_MODELS = "all_models"

OVERLAID = (
    *("owner", "tags", "schedule", "triggers", "budget_usd", "priority", "labels", "notify"),
    *("service_account", "machine_pool", "jobs"),
    *("data.sample_percent", "data.window_days", "data.checks.min_rows", "data.checks.max_volume_change"),
    *("data.export", "data.keep_table_days"),
    *("training.epochs", "training.cluster", "training.strategy"),
    *("tuning.search", "tuning.every_days", "tuning.max_trials", "tuning.parallel_trials", "tuning.max_failed_trials"),
    "tuning.spot",
    *("deployment.endpoint", "deployment.machine", "deployment.accelerator", "deployment.min_replicas"),
    *("deployment.max_replicas", "deployment.autoscale_cpu_percent", "deployment.dedicated_endpoint"),
    "deployment.shared_machines",
    *("deployment.request_log_sampling", "deployment.keep_previous_hours", "deployment.canary"),
    *("deployment.staging", "deployment.shadow", "deployment.approval"),
    *("monitoring.schedule", "monitoring.window_hours", "monitoring.min_requests", "monitoring.max_gigabytes"),
    *("monitoring.performance.request_keys", "monitoring.multivariate.every_days", "monitoring.attributions"),
    *("monitoring.max_age_days", "monitoring.cooldown_hours", "monitoring.policy"),
    *("scoring.schedule", "scoring.table", "scoring.files", "scoring.destination", "scoring.allow_sources"),
    *("scoring.allow_destinations", "scoring.machine", "scoring.replicas", "scoring.timeout_hours"),
)
"""Keys of a model's file that a stage may say: when, where, how much, on what, for whom.

Not among them is what a model is: its query, features and label, its architecture and its gates.
"""

_KEYS: frozenset[Location] = frozenset(tuple(key.split(".")) for key in OVERLAID)
_SECTIONS = frozenset(key[:length] for key in _KEYS for length in range(1, len(key)))
_ABSENT = frozenset(name for name, field in ModelSpec.model_fields.items() if field.default is None)
"""Sections that a file without them does not have."""


def _or_empty(value: object) -> object:
    return {} if value is None else value


def _like(setting: str) -> StringConstraints:
    return StringConstraints(pattern=f"^({SETTINGS[setting].pattern})$")


Overlay = Annotated[YamlValues, BeforeValidator(_or_empty)]
StageName = Annotated[str, StringConstraints(pattern=f"^{STAGE_PATTERN}$")]


class Stage(Section):
    """Where a stage is, and what differs there."""

    project: Annotated[str, _like("project")] | None = None
    region: Annotated[str, _like("region")] | None = None
    bucket: Annotated[str, _like("bucket")] | None = None
    """Of `RETRAINING_BUCKET`, which Airflow alone writes where the jobs have another one."""
    results_bucket: Annotated[str, _like("results_bucket")] | None = None
    dataset: Annotated[str, _like("dataset")] | None = None
    all_models: Overlay = Field(default_factory=dict)
    """Of every model that has the section of a key."""
    models: Annotated[dict[str, Overlay], BeforeValidator(_or_empty)] = Field(default_factory=dict)
    """Of single models; it comes before what all have."""

    @property
    def places(self) -> dict[str, str]:
        """The settings that it says, by their names."""
        named = {name: getattr(self, name) for name in PLACES}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def buckets(self) -> list[str]:
        """Those that it says."""
        return [value for name, value in self.places.items() if name in BUCKETS]


class Stages(Section):
    """All stages, in the order in which a change goes through them."""

    stages: Annotated[dict[StageName, Annotated[Stage, BeforeValidator(_or_empty)]], Field(min_length=1)]

    @model_validator(mode="after")
    def _each_has_its_own_bucket(self) -> Self:
        owners: dict[str, str] = {}
        for name, stage in self.stages.items():
            for bucket in stage.buckets:
                if (owner := owners.setdefault(bucket, name)) != name:
                    raise ValueError(
                        f"stages {owner!r} and {name!r} have the same bucket {bucket!r}; expected one each: it holds "
                        "what a stage remembers. Give one of them another"
                    )
        return self


@dataclass(frozen=True, kw_only=True)
class StageFile:
    """What the file says, and on which lines."""

    said: Stages
    text: SpecText

    @property
    def names(self) -> list[str]:
        """All stages, as the file has them in order."""
        return list(self.said.stages)

    def stage(self, name: str, where: str) -> Stage:
        """Return a stage.

        Args:
            name: Its own.
            where: Who asks for it: a setting, an argument.

        Raises:
            SpecError: There is none of that name.
        """
        if name not in self.said.stages:
            way_out = suggest(name, self.names) or f"Correct it, or add the stage to {FILE}"
            raise SpecError(where, f"no stage {name!r}", f"one of: {', '.join(self.names)} ({FILE})", way_out)
        return self.said.stages[name]

    def require_models(self, name: str, include: Path) -> None:
        """Refuse what a stage says of a model that there is not.

        Args:
            name: The stage.
            include: The folder that this file is in.

        Raises:
            SpecError: It says something of one.
        """
        for model in self.said.stages[name].models:
            if not spec_path(include, model).is_file():
                known = [path.stem for path in find_specs(include)]
                raise SpecError(
                    self.text.place(("stages", name, "models", model)),
                    f"no model {model!r}, and stage {name!r} changes it",
                    f"one of: {', '.join(known)}",
                    suggest(model, known) or "Remove it, or name the model as its file is called",
                )

    def explain(self) -> str:
        """Return a line: which stages there are, and how many models each changes."""
        parts = [
            f"{name} ({'all models' if stage.all_models else f'{len(stage.models)} of the models'})"
            if stage.all_models or stage.models
            else f"{name} (the models as they are)"
            for name, stage in self.said.stages.items()
        ]
        return f"{FILE}: {', '.join(parts)}"

    def overlays(self, name: str, model: str) -> Iterator[tuple[Location, YamlValues]]:
        """Yield what a stage says of a model with the place in the file, the stronger last."""
        stage, place = self.said.stages[name], ("stages", name)
        yield (*place, ALL_MODELS), stage.all_models
        if model in stage.models:
            yield (*place, "models", model), stage.models[model]


def find_stages(include: Path) -> StageFile | None:
    """Return what the file says; None: there is none, and no stages.

    Raises:
        SpecError: Anything is wrong with it; the message has all findings, with lines.
    """
    path = include / FILE
    return _parse(read_text(path)) if path.is_file() else None


def require_stages(include: Path, where: str) -> StageFile:
    """Return what the file says.

    Args:
        include: Its folder.
        where: Who asks for a stage.

    Raises:
        SpecError: There is no such file, or anything is wrong with it.
    """
    found = find_stages(include)
    if found is None:
        raise SpecError(
            where, f"a stage, and no {include / FILE}", "that file, which names the stages", "Add it, or name no stage"
        )
    return found


@lru_cache(maxsize=4)  # every DAG file reads every model at each parse
def _parse(data: str) -> StageFile:
    text = read_spec_text(data, FILE)
    try:
        found = StageFile(said=Stages.model_validate(text.values), text=text)
    except ValidationError as error:
        raise explain(error, text, Stages) from error
    raise_findings(FILE, list(_refused(found)))
    return found


def _refused(found: StageFile) -> Iterator[Finding]:
    """Yield what stages say of models and may not."""
    for name, stage in found.said.stages.items():
        own = ((("stages", name, "models", model), overlay) for model, overlay in stage.models.items())
        for place, overlay in ((("stages", name, ALL_MODELS), stage.all_models), *own):
            for key, value in _values(overlay):
                if key not in _KEYS:
                    yield _refusal(found.text.place((*place, *key)), place, key, value)


def _refusal(where: str, place: Location, key: Location, value: object) -> Finding:
    inside = ".".join(map(str, place))
    if key in _SECTIONS:
        expected = f"a mapping with some of: {', '.join(_known(key))}"
        return where, f"{inside}.{'.'.join(map(str, key))} is {shorten(value)}", expected, "Write its keys below it"
    known, last = _known(key[:-1]), str(key[-1])
    section = f" of {'.'.join(map(str, key[:-1]))}" if key[:-1] else ""
    way_out = suggest(last, known) or (
        "What a model is, it is in all stages: change its own file, where the key is one of it"
    )
    return where, f"{inside} has the key {last!r}{section}", f"one of: {', '.join(known)}", way_out


def _known(section: Location) -> list[str]:
    """Return the names that an overlay may have in a section."""
    depth = len(section)
    return list(dict.fromkeys(str(key[depth]) for key in map(_split, OVERLAID) if key[:depth] == section))


def _split(key: str) -> Location:
    return tuple(key.split("."))


def _values(overlay: Mapping[str, object], section: Location = ()) -> Iterator[tuple[Location, object]]:
    """Yield the keys of an overlay, down to those that a stage may say, and their values."""
    for name, value in overlay.items():
        key = (*section, name)
        if key in _SECTIONS and isinstance(value, dict):
            yield from _values(value, key)
        else:
            yield key, value


def lay_over(text: SpecText, path: Path, stage: str) -> SpecText:
    """Return a model's file with what a stage says of it: a key's value takes the whole place of the file's own.

    Args:
        text: The file.
        path: Of it, in the folder `models`.
        stage: Which; empty: none, and the file is as it is.

    Raises:
        SpecError: There is no such stage, it is wrong, it changes a section that the model does not have, or it names a
            model that there is not.
    """
    if not stage:
        return text
    where = SETTINGS["stage"].variable if stage == stage_name() else "stage"
    include = folder_of_stages(path)
    found = require_stages(include, where)
    found.stage(stage, where)
    found.require_models(stage, include)
    values, places = copy.deepcopy(text.values), dict[Location, str]()
    for place, overlay in found.overlays(stage, path.stem):
        for key, value in _values(overlay):
            at = found.text.place((*place, *key))
            if _put(values, key, value):
                places[key] = at
            elif place[2] != ALL_MODELS:
                raise SpecError(
                    at,
                    f"{'.'.join(map(str, key))}, and {path.name} has no section {key[0]!r}",
                    "a key of what the model has",
                    f"Remove it, or add {key[0]} to {path.name}",
                )
    return text.with_values(f"{path.name} in stage {stage}", values, places)


def folder_of_stages(path: Path) -> Path:
    """Return the folder whose stages a model's file has: of a team without a file of its own, those of all."""
    own, team = path.parent.parent, team_folder(path)
    return own if team is None or (own / FILE).is_file() else team.include


def require_same_places(path: Path) -> None:
    """Refuse a team's stage that says another place than where this Airflow environment is.

    Args:
        path: Of a model's file.

    Raises:
        SpecError: It says one; or a file of stages is wrong.
    """
    stage, team = stage_name(), team_folder(path)
    own = find_stages(path.parent.parent) if stage and team else None
    if team is None or own is None or stage not in own.said.stages:
        return
    everybodys = find_stages(team.include)
    here = everybodys.said.stages.get(stage) if everybodys else None
    environ = {SETTINGS[key].variable: value for key, value in here.places.items()} if here else {}
    for variable, found, expected in _differences(own, stage, {**as_written(), **environ}):
        raise SpecError(
            f"{FOLDER}/{team.team}/{FILE}, {stage}",
            f"{expected.removeprefix(variable).strip()}, and this Airflow environment has {variable} {found}",
            "what the environment has, or nothing",
            f"Remove it from {stage}",
        )


def _put(values: YamlValues, key: Location, value: object) -> bool:
    """Put a value in its place; return whether there is one: a section that a model does not have is not made."""
    if len(key) > 1 and key[0] in _ABSENT and key[0] not in values:
        return False
    section: object = values
    for name in key[:-1]:
        section = section.setdefault(name, {}) if isinstance(section, dict) else None
    if not isinstance(section, dict):
        return False
    section[key[-1]] = copy.deepcopy(value)
    return True


def staged(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with what its stage says of settings that it does not have.

    Args:
        environ: The process's environment.

    Raises:
        SpecError: There is no such stage, or the file is wrong.
        SettingsError: A setting is another one than the stage's; all of them are named.
    """
    name, variable = stage_name(environ), SETTINGS["stage"].variable
    if not name:
        return environ
    found = require_stages(include_path(environ=environ), variable)
    places = found.stage(name, variable).places
    if differ := list(_differences(found, name, environ)):
        raise SettingsError(
            ", ".join(each for each, _, _ in differ),
            "; ".join(value for _, value, _ in differ),
            "; ".join(expected for _, _, expected in differ) + f", as {FILE} says of stage {name!r}",
            f"Remove the variable, which is taken from there, or correct it or {variable}",
        )
    return {**environ, **{SETTINGS[key].variable: value for key, value in places.items()}}


def _differences(found: StageFile, name: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield each variable that is not the stage's, what it is, and what was expected."""
    places = found.said.stages[name].places
    for key in PLACES:
        variable = SETTINGS[key].variable
        given, expected = environ.get(variable, "").strip(), places.get(key)
        owner = _owner(found, name, key, given)
        whose = f"the {key.replace('_', ' ')} of another stage, {owner!r}" if owner else "of none of the stages"
        if given and expected is not None and given != expected:
            yield variable, f"{given!r}, {whose}", f"{variable} {expected!r}"
        elif given and expected is None and owner and key in BUCKETS:
            yield variable, f"{given!r}, {whose}", f"{variable} with a bucket of its own"


def _owner(found: StageFile, name: str, key: str, value: str) -> str | None:
    """Return another stage that has a value of a setting, or a bucket for whatever; None: none has it."""
    others = ((other, stage) for other, stage in found.said.stages.items() if other != name)
    for other, stage in others:
        if value in (stage.buckets if key in BUCKETS else [stage.places.get(key)]):
            return other
    return None

"""What the trainer can train, and whether it can train a spec: asked before a job is paid for.

In: `package_data/contracts/capabilities.json`, which `make contracts` writes from the trainer's own registry, and a
spec. Out: everything that the trainer would refuse, with the way out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from retraining.core.catalog.trees import tree_findings
from retraining.core.documents.document import Document, Text, Value
from retraining.core.documents.json_text import read_json
from retraining.core.errors import ContractError, SettingsError, suggest
from retraining.core.settings import data_path
from retraining.core.spec.messages import Finding, raise_findings
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.training import MEMBERS
from retraining.core.spec.tuning import TuningParameter

Kind = str
"""Of what an architecture reads beside numbers and categories, in the plural: images, sequences, …"""
ReadValue = bool | float | str | tuple[int, ...]


class Hyperparameter(Value):
    """A hyperparameter of an architecture: its type, and what a value may be; of `integers` what each of them may be.

    `words` say the limits for messages; None: the type says it all.
    """

    type: Literal["boolean", "integer", "number", "text", "integers"]
    default: bool | int | float | str | tuple[int, ...]
    words: str | None = None
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    one_of: tuple[str, ...] = ()
    may_be_empty: bool = False

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        return self.words or {"boolean": "true or false", "text": "text"}.get(self.type, self.type)

    @property
    def is_address(self) -> bool:
        """Whether it names a file or folder on storage: of the trainer's texts, all that are no choice."""
        return self.type == "text" and not self.one_of

    def takes(self, value: object) -> bool:
        """Return whether the trainer takes a value, as a spec or (as text) a trial's flag has it."""
        try:
            self._limits.validate_python(self._read(value))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return False
        return True

    @functools.cached_property
    def _limits(self) -> TypeAdapter[Any]:
        limits = Field(ge=self.minimum, gt=self.above, le=self.maximum, lt=self.below, allow_inf_nan=False)
        form: Any = Annotated[float, limits]
        if self.type == "integers":
            form = Annotated[tuple[form, ...], Field(min_length=0 if self.may_be_empty else 1)]
        elif self.type == "text":
            form = Literal[self.one_of] if self.one_of else str
        return TypeAdapter(form)

    def _read(self, value: Any) -> ReadValue:  # noqa: ANN401 - whatever a YAML file holds
        if self.type == "text":
            return str(value)
        if self.type == "boolean":
            return {"true": True, "false": False}[str(value).lower()]
        if self.type == "integers":
            if isinstance(value, str):
                value = read_json(value if value.startswith("[") else f"[{value.replace('-', ',')}]")
            return tuple(_whole(item) for item in ([value] if isinstance(value, int | float) else value))
        if isinstance(value, bool):
            raise ValueError(value)
        return _whole(value) if self.type == "integer" else float(value)


class Architecture(Value):
    """An architecture: what it reads beside numbers and categories, and by name the hyperparameters it has.

    `needs` are hyperparameters without a useful default: where such features are, they must be given. One that `grows`
    has trees, and no weights that are learnt by steps.
    """

    grows: bool = False
    reads: tuple[Kind, ...]
    needs: dict[str, Kind]
    hyperparameters: dict[str, Hyperparameter]
    warm_start: bool = False
    """Whether a training can begin with the champion's weights."""

    def can_read(self, kinds: set[Kind]) -> bool:
        """Return whether it reads features of these kinds, and needs no other."""
        return kinds <= set(self.reads) and bool(kinds) == bool(self.reads)


class Capabilities(Document):
    """Architectures by name."""

    kind: Literal["capabilities"] = "capabilities"
    architectures: dict[Text, Architecture]


@functools.cache
def load_capabilities(include: Path | None = None) -> Capabilities:
    """Return the trainer's capabilities.

    Args:
        include: Folder of a team whose own `contracts/capabilities.json` comes first; None: that of the package.

    Raises:
        SettingsError: The file is missing or malformed.
    """
    path = data_path("contracts/capabilities.json", include)
    try:
        return Capabilities.parse(path.read_bytes(), path.name)
    except OSError as error:
        raise SettingsError(
            str(path), f"{error.strerror}", "what the trainer can train", "Install the package again"
        ) from error
    except ContractError as error:
        raise SettingsError(error.where, error.found, "a file as make contracts writes it") from error


def addresses(spec: ModelSpec, known: Capabilities) -> frozenset[str]:
    """Return the hyperparameters of a spec that name files or folders.

    A SavedModel is code, so only the YAML file says which.

    Of an architecture of an own image or package, whose hyperparameters are not known, all texts with a slash.
    """
    architecture = known.architectures.get(spec.training.model)
    of_trainer = architecture.hyperparameters if architecture else {}
    return frozenset(
        name
        for name, value in spec.training.hyperparameters.items()
        if (name in of_trainer and of_trainer[name].is_address) or (isinstance(value, str) and "/" in value)
    )


def require_trainable(spec: ModelSpec, known: Capabilities, where: str | None = None) -> None:
    """Refuse a spec, or a run's changed one, that the trainer would refuse.

    An own image (`training.runtime.image`) and a model's packages may have architectures of their own: an unknown name
    is then left to them.

    Args:
        spec: With the run's overrides, where there are some.
        known: What the trainer can train.
        where: Names the spec in messages; by default its file.

    Raises:
        SpecError: An unknown architecture or hyperparameter, a value out of its limits, features that the architecture
            cannot read, or something missing that it needs; the message has all findings.
    """
    where = where or f"{spec.name}.yaml"
    findings = _findings(spec, known.architectures)
    raise_findings(where, [(f"{where}, {item[0]}", item[1], item[2], item[3]) for item in findings])


def _findings(spec: ModelSpec, known: Mapping[str, Architecture]) -> Iterator[Finding]:
    name = spec.training.model
    # Where an image's models are its own, so are the names of its architectures.
    architecture = known.get(name) if spec.training.runtime.models == "saved_model" else None
    if architecture is None:
        if spec.training.runtime.image is None and not spec.training.packages:
            hint = suggest(name, sorted(known))
            yield "training.model", f"unknown architecture {name!r}", f"one of: {', '.join(sorted(known))}", hint
        if spec.training.runtime.image is None:
            yield from _cold(spec, None, known)
        return
    yield from _cold(spec, architecture, known)
    yield from _unreadable(spec, architecture, known)
    if architecture.grows:
        yield from tree_findings(spec)
    yield from _alone(spec, architecture, known)
    yield from _wrong_values(spec, architecture)
    for parameter in spec.tuning.parameters if spec.tuning else ():
        yield from _wrong_search(parameter, architecture)


def _cold(spec: ModelSpec, architecture: Architecture | None, known: Mapping[str, Architecture]) -> Iterator[Finding]:
    """Yield that an architecture cannot begin with the champion's weights, where it is asked to."""
    if spec.training.initial != "champion":
        return
    others = [item.name for item in spec.features if item.kind not in ("numeric", "categorical")]
    if architecture and architecture.warm_start:
        if others:
            found = f"feature {others[0]!r}, whose weights a training cannot begin with"
            yield "training.initial", found, "numbers and categories alone", "Remove training.initial, or the feature"
        return
    able = [name for name, item in sorted(known.items()) if item.warm_start]
    found = f"architecture {spec.training.model!r} cannot begin with the champion's weights"
    yield "training.initial", found, f"one that can: {', '.join(able)}", "Remove training.initial, or change the model"


def _alone(spec: ModelSpec, architecture: Architecture, known: Mapping[str, Architecture]) -> Iterator[Finding]:
    """Yield that an architecture's networks cannot stand side by side, where several are asked for."""
    if spec.training.ensemble in ("auto", 1) or MEMBERS in architecture.hyperparameters:
        return
    able = [name for name, item in sorted(known.items()) if MEMBERS in item.hyperparameters]
    what = "is an ensemble of trees already" if architecture.grows else f"has no hyperparameter {MEMBERS}"
    found = f"{spec.training.ensemble}, and architecture {spec.training.model!r} {what}"
    yield "training.ensemble", found, f"one of: {', '.join(able)}", "Remove training.ensemble, or change the model"


def _unreadable(spec: ModelSpec, architecture: Architecture, known: Mapping[str, Architecture]) -> Iterator[Finding]:
    name, plain = spec.training.model, ("numeric", "categorical", "time", "bag")
    there = {f"{item.kind}s": item.name for item in spec.features if item.kind not in plain}
    unread = next((kind for kind in there if kind not in architecture.reads), None)
    if unread or (architecture.reads and not there):
        readers = [other for other, item in sorted(known.items()) if item.can_read(set(there))]
        yield (
            "training.model",
            f"architecture {name!r} does not read {unread}, and {there[unread]!r} is one"
            if unread
            else f"architecture {name!r} needs {' or '.join(architecture.reads)}, and no feature is one",
            f"features without {unread}" if unread else f"features with {' or '.join(architecture.reads)}",
            f"Set training.model to {' or '.join(readers)}, or change the features"
            if readers
            else "Change the features",
        )
    for needed, kind in architecture.needs.items():
        if kind in there and not spec.training.hyperparameters.get(needed):
            yield (
                "training.hyperparameters",
                f"architecture {name!r} has no {needed}",
                f"its address, gs://…, for the {kind}: without it there is nothing that it could learn from",
                f"Set training.hyperparameters.{needed}, or choose another architecture",
            )


def _wrong_values(spec: ModelSpec, architecture: Architecture) -> Iterator[Finding]:
    place, known = "training.hyperparameters", architecture.hyperparameters
    for name, value in spec.training.hyperparameters.items():
        if name not in known:
            expected = f"one of: {', '.join(sorted(known))}"
            found = f"architecture {spec.training.model!r} has no hyperparameter {name!r}"
            yield place, found, expected, suggest(name, sorted(known))
        elif not known[name].takes(value):
            shown = list(value) if isinstance(value, tuple) else value
            yield f"{place}.{name}", repr(shown), known[name].expected, "Correct the value"


def _wrong_search(parameter: TuningParameter, architecture: Architecture) -> Iterator[Finding]:
    """Yield what trials could get and the trainer would refuse.

    Unknown names are found above, for the spec knows them.
    """
    known = architecture.hyperparameters.get(parameter.name)
    if known is None:
        return
    place = f"tuning.parameters, {parameter.name}"
    if parameter.kind == "double" and known.type != "number":
        yield place, "kind double", known.expected, "Search it as integer, discrete or categorical"
        return
    for value in parameter.numbers if parameter.kind in ("double", "integer") else parameter.values:
        if not known.takes(value):
            yield place, f"{value!r} would be tried", known.expected, "Narrow the search"


def _whole(value: Any) -> int:  # noqa: ANN401 - a scalar
    number = float(value)
    if isinstance(value, bool) or number != int(number):
        raise ValueError(value)
    return int(number)

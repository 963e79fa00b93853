"""Every architecture by name. To add one: a file with `build` and its hyperparameters, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Literal, get_args

import tf_keras

from trainer.contract.documents import HyperparameterValue
from trainer.errors import RequestError
from trainer.models import (
    cnn,
    conv1d,
    deep_cross,
    dense,
    module,
    recurrent,
    transfer,
    transformer,
    trees,
    wide_deep,
)
from trainer.models.features import InputShape
from trainer.models.hyperparameters import HyperparameterSet, read_values

Kind = Literal["images", "sequences", "texts"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """How to build a model.

    Attributes:
        build: From input shape, number of logits and hyperparameters to a Keras model.
        hyperparameters: Dataclass whose fields are the names, types, defaults and limits.
        grows: Whether its trees are grown (`trainer.training.trees`), and no weights learnt by steps.
        reads: What it reads beside numbers and categories, and needs one of at least.
        needs: Hyperparameters without a useful default: where such features are, they must be given.
        warm_start: Whether `trainer.training.carried` knows what its weights mean, so that a training can begin with a
            champion's.
    """

    build: Callable[[InputShape, int, Any], tf_keras.Model]
    hyperparameters: type[HyperparameterSet]
    grows: bool = False
    reads: tuple[Kind, ...] = ()
    needs: Mapping[str, Kind] = field(default_factory=dict)
    warm_start: bool = False

    def require_inputs(self, name: str, shape: InputShape) -> None:
        """Check that it can read the features.

        Raises:
            RequestError: There are some that it does not read, or none of those that it needs.
        """
        there = {kind: getattr(shape, kind) for kind in _KINDS if getattr(shape, kind)}
        unread = [kind for kind in there if kind not in self.reads]
        if not unread and (not self.reads or there):
            return
        if unread:
            mismatch = f"it does not read {unread[0]}, and {there[unread[0]][0].name!r} is one"
        else:
            mismatch = f"there is no {' and no '.join(kind.removesuffix('s') for kind in self.reads)}"
        fitting = [other for other, known in sorted(ARCHITECTURES.items()) if known.can_read(list(there))]
        raise RequestError(
            "training.model",
            f"architecture {name!r}: {mismatch}",
            f"features without {unread[0]}" if unread else f"features with {' or '.join(self.reads)}",
            f"Set training.model to {' or '.join(fitting)}, or change the features"
            if fitting
            else "Change the features",
        )

    def require_given(self, hyperparameters: HyperparameterSet, shape: InputShape) -> None:
        """Check that what it cannot do without is given.

        Raises:
            RequestError: It is not.
        """
        for name, kind in self.needs.items():
            if getattr(shape, kind) and not getattr(hyperparameters, name):
                raise RequestError(
                    "hyperparameters",
                    f"{name} is missing",
                    f"an address, gs://… or a local path, for the {kind}",
                    f"Set training.hyperparameters.{name}",
                )

    def can_read(self, kinds: Sequence[Kind]) -> bool:
        """Return whether it reads features of these kinds, and needs no other."""
        return set(kinds) <= set(self.reads) and bool(kinds) == bool(self.reads)


ARCHITECTURES = {
    "boosted_trees": Architecture(build=trees.build, hyperparameters=trees.BoostedTreesHyperparameters, grows=True),
    "cnn": Architecture(build=cnn.build, hyperparameters=cnn.CnnHyperparameters, reads=("images",)),
    "conv1d": Architecture(build=conv1d.build, hyperparameters=conv1d.Conv1dHyperparameters, reads=("sequences",)),
    "deep_cross": Architecture(build=deep_cross.build, hyperparameters=deep_cross.DeepCrossHyperparameters),
    "dense": Architecture(build=dense.build, hyperparameters=dense.DenseHyperparameters, warm_start=True),
    "gru": Architecture(
        build=recurrent.build_gru, hyperparameters=recurrent.RecurrentHyperparameters, reads=("sequences",)
    ),
    "linear": Architecture(build=wide_deep.build_linear, hyperparameters=wide_deep.LinearHyperparameters),
    "lstm": Architecture(
        build=recurrent.build_lstm, hyperparameters=recurrent.RecurrentHyperparameters, reads=("sequences",)
    ),
    "module": Architecture(
        build=module.build,
        hyperparameters=module.ModuleHyperparameters,
        reads=("images", "texts"),
        needs={"module": "images", "text_module": "texts"},
    ),
    "random_forest": Architecture(build=trees.build, hyperparameters=trees.RandomForestHyperparameters, grows=True),
    "transfer": Architecture(
        build=transfer.build,
        hyperparameters=transfer.TransferHyperparameters,
        reads=("images",),
        needs={"weights": "images"},
    ),
    "transformer": Architecture(
        build=transformer.build, hyperparameters=transformer.TransformerHyperparameters, reads=("sequences",)
    ),
    "wide_deep": Architecture(
        build=wide_deep.build, hyperparameters=wide_deep.WideDeepHyperparameters, warm_start=True
    ),
}


def find_architecture(name: str) -> Architecture:
    """Return the architecture of that name: ours, or a package's entry point in the group `trainer.architectures`.

    Raises:
        RequestError: There is none.
    """
    if name in ARCHITECTURES:
        return ARCHITECTURES[name]
    for entry in entry_points(group="trainer.architectures", name=name):
        found = entry.load()
        if not isinstance(found, Architecture):
            where = f"entry point {name} = {entry.value}"
            raise RequestError(where, f"is a {type(found).__name__}", "a trainer.models.registry.Architecture")
        return found
    raise RequestError(
        "training.model", f"unknown architecture {name!r}", f"one of: {', '.join(sorted(ARCHITECTURES))}"
    )


def read_hyperparameters(architecture: Architecture, values: Mapping[str, HyperparameterValue]) -> HyperparameterSet:
    """Check hyperparameters and fill in defaults.

    Args:
        values: By name; text is read as the parameter's type (`64,32` or `[64, 32]` for a list).

    Raises:
        RequestError: An unknown name, or a value that is no such type or out of its range.
    """
    return read_values(architecture.hyperparameters, values)

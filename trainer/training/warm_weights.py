"""A model's first weights from those of an earlier one: each where it means the same, in this model's units.

Comes in: two models of one architecture with what their weights mean (`warm_columns.Side`). Goes out: the later one's
variables, set, and for each how it was taken over or why it was left as the seed drew it. Before its first step the
later model then answers as the earlier one did, but for what only one of them reads and for lines between edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from trainer.contract.documents import Feature
from trainer.training.warm_columns import FRESH, Floats, Mask, Places, Side, earlier_ids, input_map

_KERNEL_RANK = 3


@dataclass(kw_only=True)
class Carried:
    """What came of each variable, by its name.

    Attributes:
        taken: How it was taken over.
        anew: Why it, or a part of it, is as the seed drew it.
    """

    taken: dict[str, str] = field(default_factory=dict)
    anew: dict[str, str] = field(default_factory=dict)


def carry_weights(before: Side, after: Side) -> Carried:
    """Set the later model's variables by the earlier one's."""
    carried = Carried()
    names = [_plain(variable.name) for variable in after.model.trainable_variables]
    if before.name != after.name:
        reason = f"the champion is a {before.name}"
    elif unknown := not_carried(after.features.values()):
        reason = f"it reads {unknown}, and only numbers and categories are carried over"
    elif before.objective.labels != after.objective.labels:
        reason = "the champion was trained for another label"
    else:
        _Carrying(before, after, carried).carry()
        return carried
    carried.anew = dict.fromkeys(names, reason)
    return carried


def not_carried(features: Iterable[Feature]) -> str | None:
    """Return the first feature whose weights are not known to be carried over; None: there is none."""
    return next((item.name for item in features if item.kind not in ("numeric", "categorical")), None)


def _plain(name: str) -> str:
    return name.removesuffix(":0")


class _Carrying:
    """Two models of the same architecture and label.

    Args:
        carried: Is filled.
    """

    def __init__(self, before: Side, after: Side, carried: Carried) -> None:
        self._before, self._after, self._carried = before, after, carried
        self._was = {_plain(item.name): item.numpy().astype(np.float64) for item in before.model.variables}
        self._variables = {_plain(item.name): item for item in after.model.trainable_variables}
        self._map = input_map(before, after)
        self._factors, self._terms = after.objective.unit_change(before.objective)

    def carry(self) -> None:
        """Set all variables."""
        for category in self._after.preprocessing.shape.categories:
            self._rows(category.name, "embed", None)
            self._rows(category.name, "wide", self._factors)
        shift = self._wide_numbers()
        self._crosses()
        if self._first_layer() and self._further_layers():
            self._last_layer(shift)

    def _rows(self, name: str, prefix: str, factors: Floats | None) -> None:
        """Set a table of a category, row by row; of another width the columns that both have."""
        variable = f"{prefix}_{name}/embeddings"
        if variable not in self._variables:
            return
        ids = earlier_ids(name, self._before, self._after)
        if isinstance(ids, str) or variable not in self._was:
            self._carried.anew[variable] = ids if isinstance(ids, str) else "the champion has none"
            return
        old, new = self._was[variable], self._variables[variable].numpy().astype(np.float64)
        found, width = ids != FRESH, min(old.shape[1], new.shape[1])
        rows = old[ids[found]][:, :width]
        new[np.ix_(found, np.arange(width))] = rows if factors is None else rows * factors
        self._set(variable, new, f"by value: {int(found.sum())} of {len(ids)} rows")
        if width < new.shape[1]:
            self._carried.anew[variable] = f"{new.shape[1] - width} of {new.shape[1]} columns: it was narrower"
        elif not found.all():
            self._carried.anew[variable] = f"{int((~found).sum())} rows: values were hashed otherwise"

    def _wide_numbers(self) -> Floats:
        """Set the linear model's weights of numbers; give what their new unit adds to each output. → [outputs]."""
        variable = "wide_numeric/kernel"
        none = np.zeros(len(self._factors))
        if variable not in self._variables:
            return none
        if variable not in self._was:
            self._carried.anew[variable] = "the champion read no numbers"
            return none
        (was, now), old = self._map.numeric, self._was[variable]
        kernel = self._variables[variable].numpy().astype(np.float64)
        known = self._map.known[:now]
        kernel[known] = (self._map.matrix[:was, :now].T @ old * self._factors)[known]
        self._set(variable, kernel, "in this run's units")
        self._name_unknown(variable, ~known)
        shift: Floats = (self._map.shift[:was] @ old) * self._factors
        return shift

    def _crosses(self) -> None:
        """Set the weights of pairs of categories, which are hashed by their ids."""
        before, after = self._before, self._after
        for left, right in combinations(after.preprocessing.shape.categories, 2):
            variable = f"cross_{left.name}_{right.name}/embeddings"
            if variable not in self._variables:
                continue
            if variable in self._was and self._was[variable].shape == tuple(self._variables[variable].shape):
                pairs = [(name, earlier_ids(name, before, after)) for name in (left.name, right.name)]
                sizes = {item.name: item.ids for item in before.preprocessing.shape.categories}
                if all(np.array_equal(ids, np.arange(sizes.get(name, 0))) for name, ids in pairs):
                    self._set(variable, self._was[variable] * self._factors, "as it was")
                    continue
            self._carried.anew[variable] = "its categories have other ids, or other buckets"

    def _first_layer(self) -> bool:
        """Set the first fully connected layer, whose inputs have other units; return whether what it gives is kept."""
        name, before, after = "hidden_0", self._before.hyperparameters, self._after.hyperparameters
        if self._is_other(0, before.hidden_units[:1] == after.hidden_units[:1]):
            return False
        if not self._map.known.any():
            self._leave(range(len(after.hidden_units)), "the champion read no feature as this model does")
            return False
        kernel = _stacked(self._was[f"{name}/kernel"])
        bias = _stacked(self._was[f"{name}/bias"]) + (self._map.shift @ kernel)[:, np.newaxis]
        fresh = _stacked(self._variables[f"{name}/kernel"].numpy().astype(np.float64))
        some = min(len(kernel), len(fresh))
        moved = np.einsum("ij,miu->mju", self._map.matrix, kernel[:some])
        fresh[:some, self._map.known] = moved[:, self._map.known]
        self._set(f"{name}/kernel", fresh, "in this run's units")
        self._set_members(f"{name}/bias", bias, "in this run's units")
        self._name_unknown(f"{name}/kernel", ~self._map.known)
        self._name_members(f"{name}/kernel", len(kernel), len(fresh))
        return True

    def _further_layers(self) -> bool:
        """Set the layers after the first as they were; return whether what the last of them gives is kept."""
        before, after = self._before.hyperparameters, self._after.hyperparameters
        for place in range(1, len(after.hidden_units)):
            if self._is_other(place, before.hidden_units[: place + 1] == after.hidden_units[: place + 1]):
                return False
            for part in ("kernel", "bias"):
                self._set_members(f"hidden_{place}/{part}", _stacked(self._was[f"hidden_{place}/{part}"]), "as it was")
        if len(before.hidden_units) != len(after.hidden_units):
            self._leave((), "the champion has more layers before it")
            return False
        return True

    def _last_layer(self, shift: Floats) -> None:
        """Set the last layer, whose outputs have other units."""
        name = self._last
        kernel, bias = (_stacked(self._was[f"{name}/{part}"]) for part in ("kernel", "bias"))
        self._set_members(f"{name}/kernel", kernel * self._factors, "in this run's units")
        self._set_members(f"{name}/bias", bias * self._factors + self._terms + shift, "in this run's units")

    @property
    def _last(self) -> str:
        return "logit" if "logit/kernel" in self._variables else "deep_logit"

    def _is_other(self, place: int, same_widths: bool) -> bool:
        """Leave a layer and those after it as they are drawn, where it is another."""
        before, after = self._before.hyperparameters, self._after.hyperparameters
        if same_widths and before.activation == after.activation:
            return False
        reason = "its width is another" if not same_widths else "its activation is another"
        self._leave(range(place, len(after.hidden_units)), f"{reason}, or that of a layer before it")
        return True

    def _leave(self, places: range | tuple[()], reason: str) -> None:
        layers = [*(f"hidden_{place}" for place in places), self._last]
        self._carried.anew |= {f"{layer}/{part}": reason for layer in layers for part in ("kernel", "bias")}

    def _set_members(self, variable: str, values: Floats, how: str) -> None:
        """Set what each member has of its own; of more members than before the first ones."""
        fresh = _stacked(self._variables[variable].numpy().astype(np.float64))
        some = min(len(values), len(fresh))
        fresh[:some] = values[:some]
        self._set(variable, fresh, how)
        self._name_members(variable, len(values), len(fresh))

    def _set(self, variable: str, values: Floats, how: str) -> None:
        target = self._variables[variable]
        target.assign(values.reshape(target.shape).astype(np.float32))
        self._carried.taken[variable] = how

    def _name_members(self, variable: str, had: int, has: int) -> None:
        if has > had:
            self._carried.anew[variable] = f"members {had + 1} to {has}: the champion has {had}"

    def _name_unknown(self, variable: str, unknown: Mask) -> None:
        """Say what a kernel reads that the earlier one did not."""
        names = _features_at(self._after, unknown)
        if names:
            self._carried.anew[variable] = f"what reads {', '.join(names)}: the champion did not read it so"


def _features_at(side: Side, unknown: Mask) -> list[str]:
    """Return the features that inputs of the first layer are of."""
    where, found = Places.of(side), set(np.flatnonzero(unknown).tolist())
    mine = {
        name: {place, *([where.missing[name]] if name in where.missing else []), *where.intervals[name]}
        for name, place in where.numbers.items()
    }
    mine |= {name: set(range(start, start + width)) for name, (start, width) in where.embedded.items()}
    return [name for name, its in mine.items() if its & found]


def _stacked(values: Floats) -> Floats:
    """Return what each member has. [n, units] or [units] of one network → [1, n, units] or [1, 1, units]."""
    return values if values.ndim == _KERNEL_RANK else values.reshape(1, -1, values.shape[-1])

"""What Airflow checks a plan by is what this trainer takes: the stored file, names, limits, column types."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest
import tf_keras

from tests.support.hyperparameter_rows import ROWS, Row
from tests.support.trainer_documents import make_feature, make_label
from trainer.contract.column_types import COLUMN_TYPES, READ_BY_TENSORFLOW_IO, READ_FROM_TABLE, ROLE_TYPES
from trainer.contract.documents import Column
from trainer.errors import RequestError, TrainerError
from trainer.evaluation.scoring import Columns
from trainer.features.preprocessing import FeatureColumns
from trainer.features.values import parse_feature
from trainer.input.io_columns import IoColumns
from trainer.input.tables import scalar_columns
from trainer.models.hyperparameters import ACTIVATIONS, limits_of
from trainer.models.registry import ARCHITECTURES, find_architecture, read_hyperparameters
from trainer.objective.labels import label_type, weight_type
from trainer.tools.capabilities import render_capabilities

CONTRACTS = Path(__file__).resolve().parents[3] / "plugins" / "retraining" / "package_data" / "contracts"


def test_the_stored_file_is_this_trainers() -> None:
    """Written again by `make contracts`."""
    assert (CONTRACTS / "capabilities.json").read_text(encoding="utf-8") == render_capabilities()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_number_has_a_greatest_value_and_every_default_is_within(name: str) -> None:
    for field in dataclasses.fields(ARCHITECTURES[name].hyperparameters):
        limits = limits_of(field)
        if not isinstance(field.default, bool | str):
            assert limits is not None
            assert limits.maximum is not None or limits.below is not None
            assert not limits.allow(float("inf"))
            assert not limits.allow(float("nan"))
        assert limits is None or limits.allow(field.default)


def test_activations_are_those_of_keras() -> None:
    """All functions of the module but those that look functions up."""
    found = {name for name, value in vars(tf_keras.activations).items() if callable(value)}
    assert set(ACTIVATIONS) == found - {"get", "serialize", "deserialize"}


_SIZE = {"height": 8, "width": 8, "channels": 1}
_WITH_OPTIONS = {"image": ("image", _SIZE), "image_address": ("image", {**_SIZE, "objects": "gs://photos/cats/"})}
_WITH_OPTIONS |= {"time": ("time", {"parts": ("hour",)}), "bag": ("bag", {"of": "words"})}


def taken(role: str, type_: str) -> bool:
    """Whether what reads a column in this role takes the type."""
    column = Column(name="x", type=type_, mode="NULLABLE")
    manifest = SimpleNamespace(
        columns=(column, Column(name="y", type="INTEGER", mode="NULLABLE")), images=(), table="t"
    )
    try:
        if role in ("binary", "multiclass", "regression"):
            label_type(make_label(name="x", kind=role, **({"classes": 3} if role == "multiclass" else {})), manifest)
        elif role == "weight":
            weight_type("x", manifest)
        elif role == "slice":
            Columns(manifest, make_label(name="y", kind="binary")).require_slices(["x"])
        elif role == "table":
            scalar_columns({"x": parse_feature(type_)}, manifest)
        elif role == "tensorflow_io":
            IoColumns({"x": parse_feature(type_)}, manifest)
        else:
            kind, options = _WITH_OPTIONS.get(role, (role, {}))
            image = (SimpleNamespace(name="x"),)
            FeatureColumns([make_feature(name="x", kind=kind, **options)], manifest.columns, image)
    except TrainerError:
        return False
    return True


@pytest.mark.parametrize("role", [*ROLE_TYPES, "table", "tensorflow_io"])
def test_a_role_takes_the_types_of_the_table_and_no_other(role: str) -> None:
    """The readers themselves are asked, with every type that an export can hold."""
    from_table = {"table": READ_FROM_TABLE, "tensorflow_io": READ_BY_TENSORFLOW_IO}
    wanted = from_table.get(role) or ROLE_TYPES[role]
    assert {type_ for type_ in COLUMN_TYPES if taken(role, type_)} == set(wanted)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.architecture}-{row.name}-{row.value}")
def test_hyperparameters_are_taken_and_refused_as_airflow_does(row: Row) -> None:
    """`tests/core/catalog/test_capabilities.py` runs the same rows."""
    architecture, given = find_architecture(row.architecture), {row.name: row.value}
    if row.taken:
        read_hyperparameters(architecture, given)
    else:
        with pytest.raises(RequestError, match=row.name):
            read_hyperparameters(architecture, given)

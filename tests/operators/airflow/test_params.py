"""The trigger form: an address is no free Param, because what is loaded from there is code."""

from __future__ import annotations

from typing import Any

import pytest

from retraining.core.catalog.capabilities import addresses, load_capabilities
from retraining.core.errors import PlanError
from retraining.core.planning.params import overrides, require_known
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.operators.airflow.params import retrain_params
from tests.support.airflow_release import ParamValidationError

SPEC = load_spec(include_path() / "models" / "flight_delays.yaml")


def make_spec(model: str, **hyperparameters: Any) -> ModelSpec:
    """The flights with another architecture; whether it can read them does not matter to the form."""
    training = SPEC.training.model_copy(update={"model": model, "hyperparameters": hyperparameters})
    return SPEC.model_copy(update={"training": training, "tuning": None})


SPECS = {
    "module": make_spec("module", module="gs://b/image", text_module="gs://b/text", dropout=0.1),
    "transfer": make_spec("transfer", weights="gs://b/densenet.h5", dropout=0.1),
    "of an own image": make_spec("own", encoder="gs://b/encoder", dropout=0.1),
}


@pytest.mark.parametrize("name", SPECS)
def test_addresses_are_no_params_and_the_rest_is(name: str) -> None:
    """The form does not have them, so an untouched one keeps the file's."""
    spec = SPECS[name]
    fixed = addresses(spec, load_capabilities())
    form = retrain_params(spec)
    assert fixed == set(spec.training.hyperparameters) - {"dropout"}
    assert not fixed & set(form)
    assert "dropout" in form
    assert overrides(spec, {key: param.value for key, param in form.items()}) == {}


@pytest.mark.parametrize("name", SPECS)
def test_an_address_that_is_given_all_the_same_is_refused_by_name(name: str) -> None:
    """In the run's conf, past the form; without it the run goes on."""
    spec = SPECS[name]
    fixed = addresses(spec, load_capabilities())
    form = retrain_params(spec)
    for given in sorted(fixed):
        with pytest.raises(PlanError, match=r"': an address.*Trigger again"):
            require_known({"dropout": 0.2, given: "gs://evil/model"}, form, fixed)
        assert overrides(spec, {given: "gs://evil/model"}) == {}
    require_known({"dropout": 0.2}, form, fixed)


def test_a_text_that_is_a_choice_stays_a_param_and_takes_no_address() -> None:
    """Neither in the form nor past it."""
    spec = make_spec("wide_deep", activation="relu")
    form = retrain_params(spec)
    assert form["activation"].value == "relu"
    assert overrides(spec, {"activation": "elu"}) == {"training.hyperparameters.activation": "elu"}
    with pytest.raises(ParamValidationError, match="does not match"):
        form["activation"].resolve("gs://evil/model")
    with pytest.raises(PlanError, match="Param 'activation': an address"):
        overrides(spec, {"activation": "gs://evil/model"})

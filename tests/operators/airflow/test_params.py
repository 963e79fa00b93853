"""The trigger form: an address is no free Param, because what is loaded from there is code."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, Param

from retraining.core.catalog.capabilities import addresses, load_capabilities
from retraining.core.errors import PlanError
from retraining.core.planning.params import overrides, require_known
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.operators.airflow.params import give_params, retrain_params
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


@pytest.mark.parametrize(
    ("param", "said"),
    [
        (Param(5, type="integer", maximum=3), "5 is greater than the maximum of 3"),
        (Param("x", type="string", pattern="[0-9]+"), "does not match"),
        (Param(type="string"), "is not of type 'string'"),
        (Param("noon", type="string", format="date"), "is not a 'date'"),
    ],
    ids=["limit", "pattern", "no value", "format"],
)
def test_a_form_whose_own_values_it_does_not_take_is_refused_by_name(param: Param, said: str) -> None:
    """When its DAG is made: nobody could trigger it untouched, and no clock could."""
    dag = DAG("formed")
    with pytest.raises(ValueError, match="DAG formed, Param number: ") as caught:
        give_params(dag, {"fine": Param(1, type="integer"), "number": param})
    assert said in str(caught.value)
    assert not dag.params


def test_a_form_is_the_dags() -> None:
    """As Airflow gives it to who triggers, and to tasks."""
    dag = DAG("formed")
    give_params(dag, {"number": Param(1, type="integer", maximum=3)})
    assert dag.params.dump() == {"number": 1}
    dag.params.update({"number": 3})
    assert dag.params["number"] == 3
    with pytest.raises(ParamValidationError):
        dag.params["number"] = 4

"""What an organisation wants of everything that is made, added to requests where they are sent."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1
from google.protobuf import json_format

from retraining.core import settings
from retraining.core.errors import SettingsError
from retraining.core.placement import Placement, label_problem
from tests.support.refusals import refuses
from tests.support.small_model import ENVIRON

KEY = "projects/keys/locations/us-central1/keyRings/ring/cryptoKeys/key"
NETWORK = "projects/123/global/networks/net"
ATTACHMENT = "projects/p/regions/us-central1/networkAttachments/jobs"
POOLS = [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1}]
JOBS: dict[str, dict[str, Any]] = {
    "CustomJob": {"display_name": "train", "job_spec": {"worker_pool_specs": POOLS}},
    "HyperparameterTuningJob": {"display_name": "tune", "trial_job_spec": {"worker_pool_specs": POOLS}},
    "BatchPredictionJob": {"display_name": "score", "model": "m"},
}


@pytest.mark.parametrize("kind", JOBS)
def test_without_settings_a_job_is_as_it_was(kind: str) -> None:
    assert Placement().placed_job(JOBS[kind]) == JOBS[kind]


@pytest.mark.parametrize(
    ("placement", "networking"),
    [
        (Placement(encryption_key=KEY, network=NETWORK), {"network": NETWORK}),
        (
            Placement(encryption_key=KEY, network=NETWORK, reserved_ranges=("a", "b")),
            {"network": NETWORK, "reserved_ip_ranges": ["a", "b"]},
        ),
        (
            Placement(encryption_key=KEY, network_attachment=ATTACHMENT),
            {"psc_interface_config": {"network_attachment": ATTACHMENT}},
        ),
    ],
    ids=["peered", "ranges", "private service connect"],
)
@pytest.mark.parametrize("kind", JOBS)
def test_a_job_has_the_key_and_its_machines_the_network(kind: str, placement: Placement, networking: Any) -> None:
    """As Google's own message takes it; a batch prediction has machines of the service's, in no network of ours."""
    placed = placement.placed_job(JOBS[kind])
    message = getattr(aiplatform_v1, kind)()
    json_format.ParseDict(placed, type(message).pb(message))
    assert message.encryption_spec.kms_key_name == KEY
    specs = [placed[name] for name in ("job_spec", "trial_job_spec") if name in placed]
    assert all(spec == {"worker_pool_specs": POOLS, **networking} for spec in specs)
    assert bool(specs) == (kind != "BatchPredictionJob")


def test_an_endpoint_answers_in_the_network_that_is_named_and_both_projects_may_ask() -> None:
    """As Google's own message takes it; one allowlist for all endpoints, of which a project has ten at most."""
    network = "projects/the-network-project/global/networks/main"
    made = aiplatform_v1.Endpoint(**Placement(endpoint_network=network).private_connection("my-project"))
    connection = made.private_service_connect_config
    assert connection.enable_private_service_connect
    assert list(connection.project_allowlist) == ["my-project", "the-network-project"]
    (automation,) = connection.psc_automation_configs
    assert (automation.project_id, automation.network) == ("the-network-project", network)
    same = Placement(endpoint_network=network).private_connection("the-network-project")
    assert same["private_service_connect_config"]["project_allowlist"] == ["the-network-project"]
    assert Placement().private_connection("my-project") == {}


def test_an_endpoint_of_somebody_elses_making_is_one_models_alone() -> None:
    """Two models on one would answer each other's requests; a model that is named twice has none of both."""
    found = settings.load({**ENVIRON, "RETRAINING_ENDPOINT_IDS": "late=flights-prod, fraud=1234567890123"}).placement
    assert [found.endpoint_of(model) for model in ("late", "fraud", "other")] == ["flights-prod", "1234567890123", None]
    for ids, name in (("late=a,fraud=a", "names a more"), ("late=a,late=b", "names late more")):
        with refuses(SettingsError, found=name):
            settings.load({**ENVIRON, "RETRAINING_ENDPOINT_IDS": ids})
    assert settings.load({**ENVIRON, "RETRAINING_ENDPOINT_IDS": "late=fraud,fraud=late"})
    with refuses(SettingsError, found="RETRAINING_ENDPOINT_IDS"):
        settings.load({**ENVIRON, "RETRAINING_ENDPOINT_IDS": "late"})


def test_a_pool_of_machines_is_in_the_network_of_the_jobs_on_it() -> None:
    placed = Placement(encryption_key=KEY, network=NETWORK).placed_pool({"display_name": "nightly"})
    message = aiplatform_v1.PersistentResource()
    json_format.ParseDict(placed, aiplatform_v1.PersistentResource.pb(message))
    assert (message.network, message.encryption_spec.kms_key_name) == (NETWORK, KEY)


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        (
            {"ENCRYPTION_KEY": KEY.replace("us-central1", "europe-west4")},
            "lies in europe-west4; expected a key",
        ),
        ({"ENCRYPTION_KEY": f"{KEY}/cryptoKeyVersions/1"}, "expected something like"),
        ({"NETWORK": "projects/my-project/global/networks/net"}, "expected something like"),
        ({"NETWORK_ATTACHMENT": ATTACHMENT.replace("us-central1", "us-east1")}, "lies in us-east1; expected one in"),
        ({"NETWORK": NETWORK, "NETWORK_ATTACHMENT": ATTACHMENT}, "are both set; expected one of them"),
        ({"RESERVED_RANGES": "a"}, "without RETRAINING_NETWORK"),
        ({"LABELS": "retraining-model=other"}, "begin with retraining- are the software's own: retraining-model"),
        ({"LABELS": ",".join(f"k{number}=v" for number in range(21))}, "21 labels; at most 20"),
        ({"LABELS": "Team=growth"}, "expected something like"),
        ({"RESERVATION": "my-slots"}, "expected something like"),
    ],
)
def test_what_cannot_be_is_named_when_the_settings_are_read(environ: dict[str, str], found: str) -> None:
    with refuses(SettingsError, found=found):
        settings.load({**ENVIRON, **{f"RETRAINING_{name}": value for name, value in environ.items()}})


def test_the_settings_give_all_of_it() -> None:
    environ = {
        "ENCRYPTION_KEY": KEY,
        "NETWORK": NETWORK,
        "RESERVED_RANGES": "a, b",
        "LABELS": "team=growth, cost_center=4711, empty=",
        "QUERY_PROJECT": "my-queries",
        "RESERVATION": "projects/my-slots/locations/US/reservations/night",
    }
    found = settings.load({**ENVIRON, **{f"RETRAINING_{name}": value for name, value in environ.items()}}).placement
    assert found == Placement(
        encryption_key=KEY,
        network=NETWORK,
        reserved_ranges=("a", "b"),
        labels={"team": "growth", "cost_center": "4711", "empty": ""},
        query_project="my-queries",
        reservation="projects/my-slots/locations/US/reservations/night",
    )
    assert settings.load(ENVIRON).placement == Placement()


def test_a_models_labels_are_held_to_the_same() -> None:
    assert label_problem({"team": "growth"}) is None
    assert "software's own" in (label_problem({"retraining-run": "x"}) or "")

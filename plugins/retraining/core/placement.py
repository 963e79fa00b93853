"""What an organisation wants of everything that is made in its project: a key, a network, labels, and who pays.

In: the settings, a request in proto-JSON. Out: the request as it is sent. It is added where a resource is created, not
where a run is planned: neither a run's key nor a job's identity depends on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from retraining.core.untyped import ApiJson, ProtoJson

LABEL_KEY = r"[a-z][a-z0-9_-]{0,62}"
LABEL_VALUE = r"[a-z0-9_-]{0,63}"
# https://cloud.google.com/resource-manager/docs/labels-overview#requirements, without letters beyond ASCII
OWN_LABELS = "retraining-"
"""What the labels begin with by which resources are found again."""
MAX_LABELS = 20
"""Of the settings, and of a model: a resource takes 64, a few of them ours."""
_PARTS_OF_KEY = re.compile(r"projects/[^/]+/locations/(?P<region>[^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
_PARTS_OF_NETWORK = re.compile(r"projects/(?P<project>[^/]+)/global/networks/[^/]+")
_PARTS_OF_ATTACHMENT = re.compile(r"projects/[^/]+/regions/(?P<region>[^/]+)/networkAttachments/[^/]+")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The task that asks.

    Attributes:
        labels: Of its model's file, for all that it makes.
        names: Labels of its model and itself, for statements, which say nothing else of them.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


NOBODY = Caller()
"""Whoever asks without a task: a person at a terminal, a page."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """What every request carries.

    Attributes:
        encryption_key: Of Cloud KMS; None: Google's keys.
        network: That jobs and pools of machines are peered with, by its project's number; None: the internet.
        reserved_ranges: Of that network, which the machines take their addresses from; empty: any.
        network_attachment: Of Private Service Connect, by which jobs and pools reach a network instead.
        endpoint_network: In which endpoints answer, by Private Service Connect; None: at public addresses.
        endpoint_ids: Models, and the endpoints that somebody else makes for them; others have their model's name.
        labels: Beside those by which resources are found again.
        query_project: That statements on BigQuery run in, and which pays for them; None: the project.
        reservation: Of BigQuery, which statements take their slots from; None: as the project has it.
    """

    encryption_key: str | None = None
    network: str | None = None
    reserved_ranges: tuple[str, ...] = ()
    network_attachment: str | None = None
    endpoint_network: str | None = None
    endpoint_ids: tuple[tuple[str, str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    query_project: str | None = None
    reservation: str | None = None

    @property
    def encryption(self) -> ProtoJson:
        """The field of a Vertex AI resource that names the key; nothing where there is none."""
        return {"encryption_spec": {"kms_key_name": self.encryption_key}} if self.encryption_key else {}

    @property
    def networking(self) -> ProtoJson:
        """The fields of a `CustomJobSpec` or a `PersistentResource` that name the network; none where there is none."""
        if self.network_attachment:
            return {"psc_interface_config": {"network_attachment": self.network_attachment}}
        ranges: ProtoJson = {"reserved_ip_ranges": list(self.reserved_ranges)} if self.reserved_ranges else {}
        return {"network": self.network, **ranges} if self.network else {}

    def endpoint_of(self, model: str) -> str | None:
        """Return the id of the endpoint that somebody else makes for a model; None: nobody does."""
        return dict(self.endpoint_ids).get(model)

    def private_connection(self, project: str) -> ProtoJson:
        """Return the field of an `Endpoint` that lets it answer in a network alone; nothing where there is none.

        Vertex AI makes the address there by itself, where a service connection policy lets it. The allowlist is of the
        network's project and the endpoint's, and the same for all endpoints: a project may have ten different ones.
        https://cloud.google.com/vertex-ai/docs/predictions/private-service-connect

        Args:
            project: Of the endpoint.
        """
        if not self.endpoint_network:
            return {}
        owner = _PARTS_OF_NETWORK.fullmatch(self.endpoint_network)
        if owner is None:
            raise ValueError(f"endpoint_network {self.endpoint_network!r}")
        return {
            "private_service_connect_config": {
                "enable_private_service_connect": True,
                "project_allowlist": sorted({project, owner["project"]}),
                "psc_automation_configs": [{"project_id": owner["project"], "network": self.endpoint_network}],
            }
        }

    def placed_job(self, job: Mapping[str, ProtoJson]) -> ProtoJson:
        """Return a job as it is sent.

        Args:
            job: `CustomJob`, `HyperparameterTuningJob` or `BatchPredictionJob` in proto-JSON with snake_case names.
        """
        specs = {name: {**job[name], **self.networking} for name in ("job_spec", "trial_job_spec") if name in job}
        return {**job, **self.encryption, **specs}

    def placed_pool(self, resource: Mapping[str, ProtoJson]) -> ProtoJson:
        """Return a `PersistentResource` in proto-JSON as it is sent: jobs on it are in its network."""
        return {**resource, **self.encryption, **self.networking}

    def statement(self, labels: Mapping[str, str]) -> ApiJson:
        """Return the fields of BigQuery's `JobConfiguration` that say for whom and from what a statement is paid.

        Args:
            labels: Of the environment and the task.
        """
        return {"labels": dict(labels), **({"reservation": self.reservation} if self.reservation else {})}


def read_labels(text: str) -> tuple[tuple[str, str], ...]:
    """Return keys and values from `key=value` with commas between them."""
    pairs = (each.strip().partition("=") for each in text.split(",") if each.strip())
    return tuple((key, value) for key, _, value in pairs)


def label_problem(labels: Mapping[str, str]) -> str | None:
    """Return what is wrong with somebody's labels; None: nothing."""
    own = sorted(key for key in labels if key.startswith(OWN_LABELS))
    if own:
        return f"labels that begin with {OWN_LABELS} are the software's own: {', '.join(own)}"
    if len(labels) > MAX_LABELS:
        return f"{len(labels)} labels; at most {MAX_LABELS}"
    return None


def placement_problems(placement: Placement, region: str) -> list[str]:
    """Return what in a placement cannot be, each with what would be.

    Args:
        placement: Its values look right one by one.
        region: Of Vertex AI, the bucket and the dataset.
    """
    problems = []
    key = _PARTS_OF_KEY.fullmatch(placement.encryption_key or "")
    if key and key["region"] != region:
        problems.append(
            f"RETRAINING_ENCRYPTION_KEY lies in {key['region']}; expected a key ring in {region}: Vertex AI takes keys "
            "of its own region alone"
        )
    attachment = _PARTS_OF_ATTACHMENT.fullmatch(placement.network_attachment or "")
    if attachment and attachment["region"] != region:
        lies = attachment["region"]
        problems.append(f"RETRAINING_NETWORK_ATTACHMENT lies in {lies}; expected one in {region}, with the jobs")
    if placement.network and placement.network_attachment:
        problems.append(
            "RETRAINING_NETWORK and RETRAINING_NETWORK_ATTACHMENT are both set; expected one of them: a job reaches a "
            "network by peering or by Private Service Connect"
        )
    if placement.reserved_ranges and not placement.network:
        problems.append(
            "RETRAINING_RESERVED_RANGES is set without RETRAINING_NETWORK; expected the network they are of"
        )
    counts = [Counter(part) for part in zip(*placement.endpoint_ids, strict=True)]
    if twice := [name for counted in counts for name, times in counted.items() if times > 1]:
        problems.append(
            f"RETRAINING_ENDPOINT_IDS names {', '.join(twice)} more than once; expected one endpoint for a model, and "
            "one model for an endpoint, which shares requests among all that is deployed to it"
        )
    if wrong := label_problem(placement.labels):
        problems.append(f"RETRAINING_LABELS: {wrong}")
    return problems

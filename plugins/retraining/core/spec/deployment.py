"""The section `deployment` of a model's YAML: where the champion serves."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StringConstraints, model_validator

from retraining.core.settings import IMAGE_PATTERN
from retraining.core.spec.cluster import Accelerator, MachineType
from retraining.core.spec.explanations import Explanations
from retraining.core.spec.features import is_none
from retraining.core.spec.section import Section

Route = Annotated[str, StringConstraints(pattern=r"^/\S*$", max_length=1000)]
"""A path on the container."""
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
ApprovalMode = Literal["first", "always", "never", "on_warning"]
"""When a person is asked: while the model has no champion; each time; never; when data or comparison carry warnings."""
SharedMachines = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""Of Vertex AI: https://cloud.google.com/vertex-ai/docs/predictions/model-co-hosting"""
SignatureDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
MODEL_DIGEST_VARIABLE = "MODEL_DIGEST"
"""Environment variable of a serving container: the SHA-256 that the model's files had when they were registered."""
PREBUILT = re.compile(r"(?:[a-z]+-docker\.pkg\.dev/vertex-ai|gcr\.io/cloud-aiplatform)/prediction/([^:@]+)")


class Container(Section):
    """A container that serves the model, by Vertex AI's contract for custom containers.

    It listens on `AIP_HTTP_PORT`, which is `port`, answers `health_route` with 200 once it can be asked, and
    `predict_route` with a prediction for each instance. In `args` and `command` `$(AIP_STORAGE_URI)` and the like are
    filled in. A pre-built container has routes of its own.
    """

    image: Annotated[str, StringConstraints(max_length=500, pattern=f"^{IMAGE_PATTERN}$")]
    """With its registry, by digest or tag, in the Artifact Registry of the region."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8080
    """What it listens on: `AIP_HTTP_PORT`."""
    predict_route: Route | None = None
    """Path that is asked, with `/` first; required but of a pre-built container."""
    health_route: Route | None = None
    """Path that answers 200 once it can be asked; required but of a pre-built container."""
    command: tuple[str, ...] = ()
    """In place of the image's entry point."""
    args: tuple[str, ...] = ()
    """Its arguments; `$(AIP_HTTP_PORT)`, `$(AIP_STORAGE_URI)` and the like are filled in."""
    environment: dict[VariableName, str] = Field(default_factory=dict)
    """Its variables; not those that begin with `AIP_`, which Vertex AI sets."""

    @staticmethod
    def is_prebuilt(image: str) -> bool:
        """Return whether an image is a pre-built container of Vertex AI."""
        return PREBUILT.match(image) is not None

    @model_validator(mode="after")
    def _keeps_the_contract(self) -> Self:
        missing = [name for name in ("predict_route", "health_route") if getattr(self, name) is None]
        if missing and not self.is_prebuilt(self.image):
            raise ValueError(f"{self.image} has no {' and no '.join(missing)}: name the paths that it answers")
        if reserved := [name for name in self.environment if name.startswith("AIP_")]:
            raise ValueError(f"environment sets {', '.join(reserved)}: Vertex AI sets what begins with AIP_ itself")
        if MODEL_DIGEST_VARIABLE in self.environment:
            raise ValueError(f"environment sets {MODEL_DIGEST_VARIABLE}: registering sets it to the model's digest")
        return self


class Canary(Section):
    """The steps of traffic of a new version, and what must hold at each before the next."""

    percent: tuple[Annotated[int, Field(ge=1, le=100)], ...] = (1, 10, 50, 100)
    """Shares of the new version; they rise and end with 100."""
    bake_minutes: Annotated[int, Field(ge=1, le=720)] = 15
    """Minutes that each share but the last is looked at."""
    max_error_rate: Annotated[float | None, Field(ge=0, le=1, exclude_if=is_none)] = None
    """Of plans of earlier releases; a file that has it is refused: `max_error_increase` is the margin."""
    max_error_increase: Annotated[float, Field(gt=0, le=0.5)] = 0.002
    """How much more often it may err than the version before in the same minutes: 0.002 is two more in a thousand
    requests."""
    max_latency_ratio: Annotated[float, Field(ge=1, le=100)] = 1.2
    """How many times as long its slowest answers may take as those of the version before in the same minutes."""
    max_answer_shift: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Jensen-Shannon divergence of its answers from those to its test split, and from those of the version before."""
    min_requests: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """With fewer at a step it lasts up to four times as long. Answers are not judged by fewer."""
    on_low_traffic: Literal["continue", "stop"] = "stop"
    """What then, and where the last step before all has [no verdict](deployment.md#how-much-traffic-a-verdict-takes)
    after four times `bake_minutes`: `stop` gives the traffic back, `continue` goes on without having judged."""

    @model_validator(mode="after")
    def _rises_to_all(self) -> Self:
        steps = list(self.percent)
        if not steps or steps[-1] != 100 or steps != sorted(set(steps)):
            raise ValueError(f"canary.percent must rise and end with 100, got {steps}")
        return self


class Shadow(Section):
    """Requests of the log that are sent once more, to a version that no customer asks yet; each once, at its pace."""

    hours: Annotated[int, Field(ge=1, le=168)] = 24
    """Of the log, up to now."""
    max_requests: Annotated[int, Field(ge=20, le=5_000)] = 1_000
    """The newest of them."""
    max_minutes: Annotated[int, Field(ge=1, le=240)] = 15
    """That they are sent in: where they came in longer, the gaps between them are shortened alike."""


OF_MACHINES = ("machine", "accelerator", "min_replicas", "max_replicas", "autoscale_cpu_percent")
"""Keys of machines of its own, which a model on shared ones may not have."""
OF_ENDPOINTS = (
    "shared_machines",
    "machine",
    "accelerator",
    "min_replicas",
    "max_replicas",
    "autoscale_cpu_percent",
    "dedicated_endpoint",
    "key_input",
    "keep_previous_hours",
    "canary",
    "staging",
    "shadow",
    "explanations",
)
"""Keys that a model without an endpoint may not have: nobody would read them."""


class Deployment(Section):
    """Where the champion serves, and in what."""

    endpoint: Annotated[bool, Field(exclude_if=lambda value: value)] = True
    """`false`, or `deployment: null`: [no endpoint is made](deployment.md#models-without-an-endpoint). The champion
    scores tables by the model's DAG `score__…` alone, and its monitor watches what that was sent."""
    machine: MachineType = "n1-standard-2"
    """Of the endpoint."""
    accelerator: Accelerator | None = None
    """GPUs of each machine of the endpoint. They need a `deployment.container` for GPUs, a machine that takes them and
    a region that has them."""
    min_replicas: Annotated[int, Field(ge=1, le=1000)] = 1
    """Replicas that are always on."""
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = 1
    """Replicas under load."""
    autoscale_cpu_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Load of the processors that replicas come and go for between the two; `null`: Vertex AI's own, 60."""
    shared_machines: Annotated[SharedMachines | None, Field(exclude_if=is_none)] = None
    """Id of [machines that models share](deployment.md#machines-that-models-share): a deployment resource pool of the
    project and region. `null`: machines of its own, as the keys above say."""
    dedicated_endpoint: bool = False
    """Whether the endpoint has [an address of its own](deployment.md#options-of-the-endpoint); cannot be changed once
    it is made."""
    request_log_sampling: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the requests that are [logged](deployment.md#options-of-the-endpoint) with their answers; without an
    endpoint that of the rows of each scoring, of which at most 100,000 are."""
    key_input: bool = False
    """Whether the model takes [the example's `data.key`](deployment.md#the-key-of-a-request) as one more input and
    gives it back. It stands beside the answer, so that later labels find it."""
    canary_percent: tuple[Annotated[int, Field(ge=1, le=100)], ...] = (100,)
    """Of plans of earlier releases; a file that has it is refused: `canary` has the steps."""
    keep_previous_hours: Annotated[int, Field(ge=0, le=720)] = 24
    """Hours that [the version before](deployment.md#the-version-before) stays deployed without traffic, for a quick way
    back. `0`: it is undeployed at once."""
    canary: Canary | None = None
    """[Steps of traffic](deployment.md#the-ramp), and what must hold at each; `null`: 1 % until the smoke test has
    passed, then all."""
    staging: bool = False
    """Whether a version is first tried on [an endpoint `<model>-staging`](deployment.md#an-endpoint-to-try-on). It
    costs nothing between two tries."""
    shadow: Annotated[Shadow | None, Field(exclude_if=is_none)] = None
    """[Requests of the last day](deployment.md#shadow-traffic) sent to the version on that endpoint, before any
    customer asks it; needs `staging`."""
    approval: ApprovalMode | StrictBool = "never"
    """When [a person is asked](deployment.md#asking-a-person) before a version is deployed; `first`: while the model
    has no champion. `true` and `false` of earlier files are `always` and `never`."""
    accept_signature: SignatureDigest | None = None
    """Digest of the one [change of inputs and outputs](deployment.md#a-changed-signature) that may become champion. The
    refusal prints it."""
    explanations: Annotated[Explanations | None, Field(exclude_if=is_none)] = None
    """Whether the endpoint can be asked [what each feature adds to an answer](deployment.md#explanations); `null`:
    no."""
    container: Container | None = None
    """What serves the model, in place of `RETRAINING_SERVING_IMAGE` ([below](#a-container-of-your-own))."""

    @property
    def asks(self) -> ApprovalMode:
        """When a person is asked; the yes and no of earlier releases as what they mean."""
        if isinstance(self.approval, bool):
            return "always" if self.approval else "never"
        return self.approval

    @model_validator(mode="after")
    def _is_of_an_endpoint(self) -> Self:
        fields = type(self).model_fields
        vain = [name for name in OF_ENDPOINTS if getattr(self, name) != fields[name].get_default()]
        if vain and not self.endpoint:
            raise ValueError(
                f"{', '.join(vain)} {'is' if len(vain) == 1 else 'are'} of an endpoint, and endpoint is false: remove "
                f"{'it' if len(vain) == 1 else 'them'}, or let the model have one"
            )
        return self

    @model_validator(mode="after")
    def _shares_as_it_can(self) -> Self:
        if self.shared_machines is None:
            return self
        fields = type(self).model_fields
        if own := [name for name in OF_MACHINES if getattr(self, name) != fields[name].get_default()]:
            raise ValueError(
                f"{', '.join(own)} and shared_machines: the machines of {self.shared_machines} are its maker's: "
                "remove one of them"
            )
        if self.explanations is not None:
            raise ValueError(
                "explanations and shared_machines: Vertex AI explains no answers there. Remove one of them"
            )
        if self.container is not None and not Container.is_prebuilt(self.container.image):
            raise ValueError(
                f"shared_machines serve Vertex AI's pre-built containers alone, and {self.container.image} is none: "
                "remove one of them"
            )
        return self

    @model_validator(mode="after")
    def _can_be_explained(self) -> Self:
        if self.explanations is None:
            return self
        if self.dedicated_endpoint:
            raise ValueError(
                "explanations are of shared endpoints, and dedicated_endpoint is true: Vertex AI explains no answers "
                "of a dedicated one. Remove one of them"
            )
        if self.container is not None and Container.is_prebuilt(self.container.image):
            raise ValueError(
                f"explanations need a container that is asked by the names of features, and {self.container.image} is "
                "pre-built, which Vertex AI explains by tensors: remove container, so that TensorFlow Serving serves, "
                "or explanations"
            )
        return self

    @model_validator(mode="after")
    def _fits_its_replicas(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas {self.max_replicas} is below min_replicas {self.min_replicas}")
        if self.autoscale_cpu_percent is not None and self.max_replicas == self.min_replicas:
            raise ValueError(
                f"autoscale_cpu_percent has no effect on always {self.min_replicas} replicas: raise max_replicas, or "
                "remove it"
            )
        if self.shadow is not None and not self.staging:
            raise ValueError("shadow sends requests to the staging endpoint: set staging: true, or remove shadow")
        served_by = self.container.image if self.container else "the container of RETRAINING_SERVING_IMAGE"
        if self.accelerator is not None and (self.container is None or re.search(r"-cpu\.", served_by)):
            raise ValueError(
                f"accelerator would be paid for and not used by {served_by}, which is for CPUs: describe one for GPUs "
                "in container, or remove accelerator"
            )
        return self

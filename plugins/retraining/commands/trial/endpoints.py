"""An endpoint for everybody: what is copied when a model is deployed, how it is explained and scaled.

One or two of the cheapest machines, from the deployment to the cleaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retraining.commands.trial.deployments import ANSWER_S, SHARED_WITHIN, deploy, deployed_id, find_endpoint
from retraining.commands.trial.jobs import TIMEOUT, job_request, machine_that_runs, wait_for_job
from retraining.commands.trial.probes import MODEL, Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.commands.trial.registry import finish_upload, start_upload, upload_of
from retraining.core.jobs.job import SUCCEEDED
from retraining.core.untyped import JsonObject, ProtoJson
from retraining.hooks.endpoints import CPU_METRIC, EndpointOptions
from retraining.hooks.predictions import Unanswered

MACHINE = "e2-standard-2"
MOST = 2
"""Replicas: an endpoint that nobody else asks has one."""
PERCENT = 60
INSTANCE = {"x": 3.0, "z": 1.0}
UPLOADED, CHANGED = 7, 10
"""What the two models answer to that: 2 x + z, and 3 x + z."""
PATHS = 4
CLOSE = 0.001
"""By which the part of an input may differ: both add up, so no order of them gives another one."""
NUMBER = 1
"""Of the version that is deployed here."""


@dataclass(frozen=True, kw_only=True)
class EndpointProbes:
    """Rows END-11, END-12, END-14, END-18, END-19, GCS-8 and REG-10.

    Attributes:
        trial: The trial.
    """

    trial: Trial

    def probes(self) -> Sequence[Probe]:
        """Return them; the first makes the models, and deploys one."""
        is_private = self.trial.cloud.settings.endpoint_network is not None
        explained = Probe(
            id="END-12",
            asked="an answer is explained by sampled Shapley",
            supposed={"outputs": 1, "baseline": 0, "of x": True, "of z": True},
            ask=self.explain,
        )
        return (
            Probe(
                id="END-14",
                asked=f"a model is deployed with 1 to {MOST} replicas, for a load of {PERCENT} %",
                supposed={"replicas": f"1 to {MOST}", "metric": CPU_METRIC, "target": PERCENT},
                ask=self.scale,
            ),
            Probe(
                id="END-11",
                asked="where TensorFlow Serving has loaded the model from",
                supposed={"files": "a copy"},
                ask=self.read_place,
            ),
            Probe(
                id="GCS-8",
                asked="a model's files change after its upload, and after its deployment",
                supposed={"served": "the files of the deployment", "changed since": "not served"},
                ask=self.change_files,
            ),
            *(() if is_private else (explained,)),  # Vertex AI explains on shared endpoints alone
            *self._once_more(),
        )

    def _once_more(self) -> Sequence[Probe]:
        return (
            Probe(
                id="END-18",
                asked="a missing number is sent",
                supposed={"answer": "1", "the model saw that it was missing": True},
                ask=self.ask_without_number,
            ),
            Probe(
                id="END-19",
                asked="an endpoint is created by an id that is taken",
                supposed={"refused": "AlreadyExists"},
                ask=lambda: {"refused": self.trial.calls.endpoints.create_refused(MODEL)},
            ),
            Probe(
                id="REG-10",
                asked="a model is uploaded as a new one, by an id that is taken",
                supposed={"refused": "AlreadyExists"},
                ask=self.upload_anew,
            ),
        )

    def scale(self) -> Mapping[str, Fact]:
        """Have the models made, upload one, put the other in its place, and deploy it."""
        trial = self.trial
        make_models(trial)
        trial.cloud.model_files.copy_missing(trial.model_uri, self._served_uri)
        explanation = explanation_spec()
        finish_upload(trial, start_upload(trial, NUMBER, artifact_uri=self._served_uri, explanation=explanation))
        self._replace_files(changed_uri(trial))
        trial.cloud.endpoints.ensure(MODEL, trial.table("log"), {}, EndpointOptions(sampling=1.0))
        replicas = {"min_replicas": 1, "max_replicas": MOST, "autoscale_cpu_percent": PERCENT}
        deploy(trial, NUMBER, {"machine_type": MACHINE, **replicas})
        found = trial.calls.endpoints.machines_of(find_endpoint(trial), deployed_id(trial, NUMBER))
        if found is None:
            raise LookupError("the model that was deployed is not there")
        least, most = found.replicas
        return {
            "replicas": f"{least} to {most}",
            "metric": " ".join(found.targets),
            "target": found.targets.get(CPU_METRIC),
        }

    def read_place(self) -> Mapping[str, Fact]:
        """Give it all traffic, and ask it."""
        trial = self.trial
        trial.cloud.endpoints.set_traffic(find_endpoint(trial), {deployed_id(trial, NUMBER): 100})
        place = trial.wait("first answer", lambda: ask(trial), SHARED_WITHIN).get("place")
        if not isinstance(place, str) or not place:
            raise LookupError(f"the model does not say where it is: {place!r}")
        return {"files": "those that were uploaded" if place.startswith(self._served_uri) else "a copy"}

    def change_files(self) -> Mapping[str, Fact]:
        """Ask which model is served, put back the one that was uploaded, and ask again."""
        trial = self.trial
        before = trial.wait("answer", lambda: ask(trial), SHARED_WITHIN)["y"]
        self._replace_files(trial.model_uri)
        after = trial.wait("answer after a change", lambda: ask(trial), SHARED_WITHIN)["y"]
        served = {CHANGED: "the files of the deployment", UPLOADED: "the files of the upload"}
        return {
            "served": served.get(round(float(before)), "others"),
            "changed since": "not served" if after == before else "served",
        }

    def explain(self) -> Mapping[str, Fact]:
        """Ask what each input adds to the answer."""
        trial = self.trial
        (found,) = trial.cloud.endpoints.explain(find_endpoint(trial), [INSTANCE], deployed_id(trial, NUMBER))
        told = found[0]
        parts = {"x": told.answer - INSTANCE["z"], "z": INSTANCE["z"]}
        return {
            "outputs": len(found),
            "baseline": round(told.baseline),
            **{f"of {name}": abs(told.features.get(name, 0.0) - part) < CLOSE for name, part in parts.items()},
        }

    def ask_without_number(self) -> Mapping[str, Fact]:
        """Send NaN, for which the model answers as for 0."""
        trial = self.trial
        instance = {**INSTANCE, "x": math.nan}
        found = trial.cloud.endpoints.predict_once(find_endpoint(trial), [instance], ANSWER_S)
        if isinstance(found, Unanswered):
            return {"answer": found.kind, "the model saw that it was missing": False}
        told = found.predictions[0]
        return {"answer": f"{told['y']:g}", "the model saw that it was missing": told["missing"] == 1}

    def upload_anew(self) -> Mapping[str, Fact]:
        """Upload the model as if there were none."""
        upload = upload_of(self.trial, NUMBER, artifact_uri=self._served_uri)
        return {"refused": self.trial.calls.models.upload_refused(MODEL, upload)}

    @property
    def _served_uri(self) -> str:
        return self.trial.result_uri("served")

    def _replace_files(self, source_uri: str) -> None:
        """Write each file of the model that is served anew, as another model has it."""
        artifacts = self.trial.cloud.artifacts
        for uri in artifacts.list_uris(source_uri):
            data = artifacts.read_object(uri)
            if data is not None:
                name = uri.removeprefix(source_uri)
                artifacts.overwrite(f"{self._served_uri}{name}", data, "application/octet-stream")


def make_models(trial: Trial) -> None:
    """Have a job store both models: 2 x + z, and 3 x + z.

    Raises:
        LookupError: It failed.
    """
    folders = [f"{trial.model_uri}/1", f"{changed_uri(trial)}/1"]
    request = job_request(trial, "trial", [machine_that_runs(trial, "trial_models.py.j2", folders)], TIMEOUT)
    made = trial.cloud.jobs.create(request)
    if wait_for_job(trial, made.name, TIMEOUT).state != SUCCEEDED:
        raise LookupError("the job that makes the models failed")


def changed_uri(trial: Trial) -> str:
    """Return where its job leaves the other model."""
    return trial.result_uri("changed")


def ask(trial: Trial) -> JsonObject | None:
    """Ask the trial's endpoint once; None: there is no answer."""
    found = trial.cloud.endpoints.predict_once(find_endpoint(trial), [INSTANCE], ANSWER_S)
    return None if isinstance(found, Unanswered) else found.predictions[0]


def explanation_spec() -> ProtoJson:
    """Return how the answer `y` is explained, beside an answer to zeros."""
    return {
        "parameters": {"sampled_shapley_attribution": {"path_count": PATHS}},
        "metadata": {"inputs": {name: {"input_baselines": [0.0]} for name in INSTANCE}, "outputs": {"y": {}}},
    }

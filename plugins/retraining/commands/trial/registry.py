"""The registry: two versions of the job's model, their aliases, labels and evaluations. Free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from retraining.commands.trial.probes import MODEL, Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.core.documents.document import Sha256
from retraining.core.naming.serving import container_spec, tensorflow_serving
from retraining.core.naming.vertex import DEFAULT, RUN_LABEL
from retraining.core.promotion.versions import Version
from retraining.core.spec.deployment import Container
from retraining.core.untyped import ProtoJson
from retraining.hooks.operations import Operation
from retraining.hooks.registry import Upload

UPLOADED_WITHIN = timedelta(minutes=15)
ALIAS = "trial"
SLICES = 50
SCHEMA = "gs://google-cloud-aiplatform/schema/modelevaluation/regression_metrics_1.0.0.yaml"
METRICS = {"rootMeanSquaredError": 0.5, "meanAbsoluteError": 0.25}
NO_DIGEST: Sha256 = "0" * 64
"""TensorFlow Serving proves none."""


def run_key(trial: Trial, number: int) -> str:
    """Return what stands for a run in the labels of a version."""
    return f"trial-{trial.number}-{number}"


@dataclass(frozen=True, kw_only=True)
class RegistryProbes:
    """Rows of the registry."""

    trial: Trial

    def probes(self) -> Sequence[Probe]:
        """Return them; the first makes one version, the third another."""
        return (
            Probe(
                id="REG-5",
                asked="an upload, among the model's operations",
                supposed={"under way, or a version": True},
                ask=self.upload,
            ),
            Probe(
                id="REG-4",
                asked="versions by a label, as soon as the upload is done",
                supposed={"of the run": 1, "of another run": 0},
                ask=self.find_by_label,
            ),
            Probe(
                id="REG-3",
                asked="the alias of a first version, and after a second came",
                supposed={"default": "the first", "versions with it": 1},
                ask=self.upload_another,
            ),
            Probe(
                id="REG-1",
                asked="versions by alias",
                supposed={"default": "the first", "an alias of nobody": None},
                ask=self.find_by_alias,
            ),
            Probe(
                id="REG-2",
                asked="an alias moves, and is taken away",
                supposed={"moved": "the second alone", "taken away": "nobody"},
                ask=self.move_alias,
            ),
            Probe(
                id="REG-6",
                asked=f"an evaluation and {SLICES} slices are imported",
                supposed={"found by its name": True, "slices": SLICES},
                ask=self.import_evaluation,
            ),
        )

    def upload(self) -> Mapping[str, Fact]:
        """Upload the first version; look at once at what is under way."""
        operation = start_upload(self.trial, 1)
        listed = [each.name for each in self.trial.cloud.registry.running_operations(MODEL)]
        seen = operation.name in listed or bool(self.trial.cloud.registry.versions_of_run(MODEL, self._key(1)))
        finish_upload(self.trial, operation)
        return {"under way, or a version": seen}

    def find_by_label(self) -> Mapping[str, Fact]:
        """Look for the first version by its run."""
        registry = self.trial.cloud.registry
        return {
            "of the run": len(registry.versions_of_run(MODEL, self._key(1))),
            "of another run": len(registry.versions_of_run(MODEL, self._key(0))),
        }

    def upload_another(self) -> Mapping[str, Fact]:
        """Upload the second version, and look who has the alias of the first one."""
        finish_upload(self.trial, start_upload(self.trial, 2))
        holders = [each for each in self._versions() if DEFAULT in each.aliases]
        return {"default": ", ".join(self._place(each) for each in holders), "versions with it": len(holders)}

    def find_by_alias(self) -> Mapping[str, Fact]:
        """Ask for versions by alias."""
        registry = self.trial.cloud.registry
        default, nobody = registry.find_by_alias(MODEL, DEFAULT), registry.find_by_alias(MODEL, "nobody")
        return {
            "default": None if default is None else self._place(default),
            "an alias of nobody": None if nobody is None else self._place(nobody),
        }

    def move_alias(self) -> Mapping[str, Fact]:
        """Give an alias to the first version, then to the second, then to none."""
        registry = self.trial.cloud.registry
        first, second = self._of_run(1), self._of_run(2)
        registry.merge_aliases(first, [ALIAS])
        registry.merge_aliases(second, [ALIAS])
        moved = self._holders()
        registry.merge_aliases(self._of_run(2), [f"-{ALIAS}"])
        return {"moved": moved, "taken away": self._holders()}

    def import_evaluation(self) -> Mapping[str, Fact]:
        """Import an evaluation and as many slices as a batch may have."""
        registry, version, name = self.trial.cloud.registry, self._of_run(1), self._key(1)
        evaluation: ProtoJson = {
            "display_name": name,
            "metrics_schema_uri": SCHEMA,
            "metrics": METRICS,
            "slice_dimensions": ["slice"],
        }
        made = registry.import_evaluation(version, evaluation)
        registry.import_slices(made, [_slice(number) for number in range(SLICES)])
        return {
            "found by its name": registry.find_evaluation(version, name) == made,
            "slices": len(registry.imported_slices(made)),
        }

    def _holders(self) -> str:
        found = [self._place(each) for each in self._versions() if ALIAS in each.aliases]
        return f"{' and '.join(found)}{' alone' if len(found) == 1 else ''}" or "nobody"

    def _place(self, version: Version) -> str:
        numbers = {self._key(1): "the first", self._key(2): "the second"}
        return numbers.get(version.labels.get(RUN_LABEL, ""), "another one")

    def _of_run(self, number: int) -> Version:
        found = self.trial.cloud.registry.find_by_run(MODEL, self._key(number))
        if found is None:
            raise LookupError(f"version {number} of the trial is not there")
        return found

    def _versions(self) -> list[Version]:
        return self.trial.cloud.registry.list_versions(MODEL)

    def _key(self, number: int) -> str:
        return run_key(self.trial, number)


def start_upload(
    trial: Trial,
    number: int,
    *,
    artifact_uri: str = "",
    container: Container | None = None,
    explanation: ProtoJson | None = None,
) -> Operation:
    """Begin to upload a version of a number; the arguments are those of `upload_of`."""
    upload = upload_of(trial, number, artifact_uri=artifact_uri, container=container, explanation=explanation)
    return trial.cloud.registry.start_upload(MODEL, upload)


def upload_of(
    trial: Trial,
    number: int,
    *,
    artifact_uri: str = "",
    container: Container | None = None,
    explanation: ProtoJson | None = None,
) -> Upload:
    """Return what becomes a version of a number.

    Args:
        trial: Whose it is.
        number: In its label.
        artifact_uri: Of the model; "": the job's.
        container: What serves it; None: TensorFlow Serving.
        explanation: How its answers are explained, as `aiplatform_v1.ExplanationSpec`; None: they are not.
    """
    serving = container or tensorflow_serving(trial.cloud.settings.serving_image, MODEL)
    return Upload(
        display_name=MODEL,
        description="Of a trial of the retraining system; it may be deleted",
        artifact_uri=artifact_uri or trial.model_uri,
        container_spec=container_spec(serving, NO_DIGEST),
        labels={RUN_LABEL: run_key(trial, number)},
        explanation_spec=explanation,
    )


def finish_upload(trial: Trial, operation: Operation) -> None:
    """Wait until an upload is done."""

    def look() -> Operation | None:
        found = trial.cloud.registry.operation(operation.name)
        return found if found is not None and found.done else None

    done = trial.wait("upload", look, UPLOADED_WITHIN)
    if done.error:
        raise RuntimeError(done.error)


def _slice(number: int) -> ProtoJson:
    value = f"part={number}"
    return {
        "slice_": {
            "dimension": "slice",
            "value": value,
            "slice_spec": {"configs": {"part": {"value": {"string_value": str(number)}}}},
        },
        "metrics_schema_uri": SCHEMA,
        "metrics": METRICS,
    }

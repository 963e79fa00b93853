"""Experiments: a made-up run in Vertex AI Experiments and in a TensorBoard, as the tracker shows real ones. Free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from retraining.commands.trial.cleaning import delete_experiment
from retraining.commands.trial.probes import BOARD, MODEL, Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.core.report.tracking.tracked_run import Status, TrackedRun
from retraining.core.report.tracking.vertex import experiment_id, run_id
from retraining.hooks.experiments import Experiments
from retraining.hooks.trial_experiments import read_by_sdk

LOSS = "epoch/loss"


@dataclass(frozen=True, kw_only=True)
class ExperimentProbes:
    """Rows of experiments."""

    trial: Trial

    def probes(self) -> Sequence[Probe]:
        """Return them; the first makes the run, the last but one its TensorBoard."""
        return (*self._of_contexts(), *self._of_epochs())

    def _of_contexts(self) -> Sequence[Probe]:
        return (
            Probe(
                id="EXP-5",
                asked="the first run of an experiment, in the region's store of metadata",
                supposed={"there": True},
                ask=self.track,
            ),
            Probe(
                id="EXP-2",
                asked="a second run of its id",
                supposed={"refused": "AlreadyExists"},
                ask=self.create_again,
            ),
            Probe(
                id="EXP-3",
                asked="its metadata anew, and once more by an older state",
                supposed={"keys": "a", "the older one is refused": True},
                ask=self.replace,
            ),
            Probe(
                id="EXP-4",
                asked="it becomes a child again, and is listed by its parent",
                supposed={"listed": 1, "runs of the model": 1},
                ask=self.adopt_again,
            ),
            Probe(
                id="EXP-1",
                asked="it is read by Google's SDK",
                supposed={"metrics": "auc=0.7", "parameters": "training.epochs=3", "state": "COMPLETE"},
                ask=self.read,
            ),
        )

    def _of_epochs(self) -> Sequence[Probe]:
        return (
            Probe(
                id="EXP-6",
                asked="its epochs in a TensorBoard, and once more with fewer",
                supposed={"last steps": f"{LOSS}=2", "a second series of a name": "AlreadyExists"},
                ask=self.draw,
            ),
            Probe(
                id="EXP-7",
                asked="its epochs are read by Google's SDK",
                supposed={LOSS: "1=0.75 2=0.5"},
                ask=self.read_epochs,
            ),
            Probe(
                id="EXP-8",
                asked="experiment and TensorBoard are deleted, and once more",
                supposed={"first": "1 runs of an experiment and 1 TensorBoards gone", "left": 0, "again": True},
                ask=self.delete,
            ),
        )

    def track(self) -> Mapping[str, Fact]:
        """Show the run, as the task does."""
        tracked = self._experiments().track(self._run())
        return {"there": self.trial.calls.experiments.metadata_of(tracked) is not None}

    def create_again(self) -> Mapping[str, Fact]:
        """Create what is there."""
        return {"refused": self.trial.calls.experiments.create_again(self._id)}

    def replace(self) -> Mapping[str, Fact]:
        """Give the context one key in the place of all."""
        experiments = self.trial.calls.experiments
        refused = experiments.replace_metadata(self._id, {"a": 1})
        left = experiments.metadata_of(self._id) or {}
        return {
            "keys": " ".join(sorted(left)),
            "the older one is refused": refused in ("Aborted", "FailedPrecondition"),
        }

    def adopt_again(self) -> Mapping[str, Fact]:
        """Make it a child twice; ask what `maintain` asks."""
        listed = self.trial.calls.experiments.adopt_again(MODEL, self._id)
        return {"listed": listed, "runs of the model": len(self._experiments().digests(MODEL))}

    def read(self) -> Mapping[str, Fact]:
        """Show the run whole again, and read it."""
        self._experiments().track(self._run())
        found = read_by_sdk(self.trial.calls.session, self._experiment, self._run().run_key)
        return {
            "metrics": _told(found.metrics),
            "parameters": _told(found.parameters),
            "state": found.state,
        }

    def draw(self) -> Mapping[str, Fact]:
        """Draw three epochs, then two others in their place."""
        boards = self.trial.calls.boards
        board = boards.create_board(BOARD)
        whole = replace(self._run(), curves={LOSS: (1.0, 0.5, 0.25), "epoch/gone": (1.0,)})
        for run in (whole, self._run()):
            self._experiments(board).track(run)
        drawn = f"{board}/experiments/{self._experiment}/runs/{self._run().run_key}"
        steps = " ".join(f"{name}={step}" for name, step in sorted(boards.last_steps(drawn).items()))
        return {"last steps": steps, "a second series of a name": boards.create_again(drawn, LOSS)}

    def read_epochs(self) -> Mapping[str, Fact]:
        """Read the curves."""
        found = read_by_sdk(self.trial.calls.session, self._experiment, self._run().run_key)
        return {
            name: " ".join(f"{step:g}={value:g}" for step, value in sorted(points.items()))
            for name, points in sorted(found.curves.items())
        }

    def delete(self) -> Mapping[str, Fact]:
        """Take all away as in the end, twice."""
        first, again = delete_experiment(self.trial), delete_experiment(self.trial)
        return {"first": first, "left": len(self._experiments().digests(MODEL)), "again": again.startswith("0 ")}

    def _run(self) -> TrackedRun:
        return TrackedRun(
            model=MODEL,
            run_key=f"trial-{self.trial.number}",
            as_of=datetime(2000, 1, 1, tzinfo=UTC),
            status=Status.FINISHED,
            parameters={"training.epochs": 3},
            metrics={"auc": 0.7},
            curves={LOSS: (0.75, 0.5)},
        )

    def _experiments(self, board: str | None = None) -> Experiments:
        return Experiments(self.trial.calls.session, board)

    @property
    def _experiment(self) -> str:
        return experiment_id(self.trial.calls.session.environment.label, MODEL)

    @property
    def _id(self) -> str:
        return run_id(self._experiment, self._run().run_key)


def _told(values: Mapping[str, float | int | str]) -> str:
    shown = ((name, value if isinstance(value, str) else f"{value:g}") for name, value in sorted(values.items()))
    return " ".join(f"{name}={value}" for name, value in shown)

"""What is done between calls, and when."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trainer.cluster.preemption import Interruption
from trainer.cluster.strategy import Strategy
from trainer.contract.documents import Checkpoint
from trainer.errors import Preempted
from trainer.training.batches import Steps
from trainer.training.checkpoints import TrainingState
from trainer.training.step_control import Course, StepEnd

STEPS = Steps(rows=10_000, rows_per_step=10, per_epoch=1000, epochs=1)


class Served:
    """A training with parameter servers whose steps take no time; knows what was waited for and saved."""

    def __init__(self, **rhythm: float | None) -> None:
        self.saved: list[int] = []
        self.waits = self.done = 0
        self.now = 0.0
        self.interruption = Interruption()
        state = TrainingState(request_sha256="x", strategy="parameter_server", steps_per_epoch=1000)
        course = Course(
            state=state,
            checkpoints=SimpleNamespace(save_state=lambda saved: self.saved.append(saved.step), is_finite=lambda: True),
            strategy=Strategy(name="parameter_server", scope=None),
            steps=STEPS,
            rhythm=Checkpoint(**{"every_steps": None, "every_seconds": None, **rhythm}),
            interruption=self.interruption,
            watch=SimpleNamespace(first_bad_step=lambda: 0),
        )
        self.end = StepEnd(course, lambda: self.now)
        mean = SimpleNamespace(variables=[])
        self.model = SimpleNamespace(
            steps_per_execution=0,
            compiled_loss=SimpleNamespace(_total_loss_mean=mean),
            _cluster_coordinator=SimpleNamespace(join=self._join),
        )
        self.end.set_model(self.model)
        self.end.on_epoch_begin(0)

    def _join(self) -> None:
        self.waits += 1

    def call(self, seconds: float = 0.0) -> None:
        """Schedule one call."""
        self.done += self.model.steps_per_execution
        self.now += seconds
        self.end.on_train_batch_end(self.done - 1)


@pytest.mark.parametrize("every", [5, 12])
def test_parameter_servers_save_every_so_many_steps(every: int) -> None:
    served = Served(every_steps=every)
    for _ in range(10):
        served.call()
    assert served.saved
    assert served.saved == [every * number for number in range(1, served.done // every + 1)]


def test_parameter_servers_save_every_so_many_seconds() -> None:
    served = Served(every_seconds=30.0)
    for _ in range(6):
        served.call(seconds=12.0)
    assert len(served.saved) == 2


def test_parameter_servers_hear_sigterm_after_the_next_call() -> None:
    served = Served()
    served.call()
    served.interruption.asked = True
    with pytest.raises(Preempted):
        served.call()
    assert served.saved == [served.done]


def test_without_a_reason_the_chief_waits_for_its_workers_only_now_and_then() -> None:
    served = Served()
    for _ in range(24):
        served.call()
    assert (served.waits, served.saved) == (3, [])

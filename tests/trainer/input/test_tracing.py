"""`tracing.py`: no function of a pipeline is rewritten by AutoGraph."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorflow.python.autograph.impl import api


def test_a_training_has_nothing_of_its_own_rewritten_but_the_loop_over_steps(
    exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert, rewritten = api._convert_actual, []

    def note(entity, context):
        rewritten.append(f"{entity.__module__}.{entity.__name__}")
        return convert(entity, context)

    monkeypatch.setattr(api, "_convert_actual", note)
    exported.train(exported.train_request_in(tmp_path, training={"epochs": 1, "loop": "custom"}))
    assert {name for name in rewritten if name.startswith("trainer.")} == {"trainer.training.steps._take_some"}

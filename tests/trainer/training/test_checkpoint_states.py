"""A checkpoint's `state.json`, whatever became of it: it is read as it was written, or the one before is taken."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from pathlib import Path

import pytest

from tests.support.mutations import BITS, mutate_text, mutate_value
from trainer.storage import Storage
from trainer.training.checkpoints import Checkpoints, TrainingState

SEED, MUTATIONS = 20131120, 1500
START = TrainingState(request_sha256="a" * 64, steps_per_epoch=4)


def state(step: int) -> TrainingState:
    """The state after a step, with numbers that JSON has not."""
    return dataclasses.replace(
        START,
        step=step,
        epochs_run=step // 4,
        history={"loss": [0.5, math.nan], "val_loss": [math.inf, 0.25]},
        best_value=math.inf if step == 4 else 0.25,
        running=[1.5, 4.0],
    )


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    """Two checkpoints, of steps 4 and 8."""
    found = Checkpoints(str(tmp_path / "checkpoints"), Storage())
    for step in (4, 8):
        folder = tmp_path / f"made-{step}"
        folder.mkdir()
        (folder / "weights.index").write_bytes(b"index %d" % step)
        found.store_step(step, folder, dataclasses.asdict(state(step)), set())
    return found


def newest(checkpoints: Checkpoints, path: Path) -> TrainingState | None:
    """What a restarted training begins with."""
    path.mkdir(exist_ok=True)
    for item in path.iterdir():
        item.unlink()
    return checkpoints.newest(START, path)


def test_numbers_that_json_has_not_come_back(checkpoints: Checkpoints, tmp_path: Path) -> None:
    """NaN and infinite, in a file that is JSON."""
    text = Path(checkpoints.folder(4), "state.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)
    found = newest(checkpoints, tmp_path / "got")
    assert repr(found) == repr(state(8))
    Path(checkpoints.folder(8), "state.json").unlink()
    assert repr(newest(checkpoints, tmp_path / "got")) == repr(state(4))


def test_a_checkpoint_of_an_earlier_release_is_gone_on_with(checkpoints: Checkpoints, tmp_path: Path) -> None:
    """It has no digest of its own, and Python's names of numbers."""
    path = Path(checkpoints.folder(8), "state.json")
    files = json.loads(path.read_text())["files"]
    path.write_text(json.dumps({"state": dataclasses.asdict(state(8)), "files": files}, sort_keys=True))
    assert "NaN" in path.read_text()
    assert repr(newest(checkpoints, tmp_path / "got")) == repr(state(8))


@pytest.mark.parametrize("earlier", [False, True], ids=["this_release", "earlier_release"])
def test_no_mutation_ends_the_training(checkpoints: Checkpoints, tmp_path: Path, earlier: bool) -> None:
    """Each is passed over for the checkpoint before, or is the same state; of this release nothing else is taken."""
    path, rng, passed = Path(checkpoints.folder(8), "state.json"), random.Random(SEED), 0
    if earlier:
        files = json.loads(path.read_text())["files"]
        path.write_text(json.dumps({"state": dataclasses.asdict(state(8)), "files": files}, sort_keys=True))
    whole = path.read_text()
    for number in range(MUTATIONS):
        text = json.dumps(mutate_value(json.loads(whole), rng)) if number % 2 else mutate_text(whole, BITS, rng)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        found = newest(checkpoints, tmp_path / "got")
        assert found is not None, f"mutation {number} of seed {SEED}: {text[:2000]}"
        assert found.step in (4, 8)
        passed += found.step == 4
        checkpoints.newest_state()
        checkpoints.describe_last(found)
        if found.step == 8 and not earlier:
            assert repr(found) == repr(state(8)), f"mutation {number} of seed {SEED}: {text[:2000]}"
    assert passed > MUTATIONS // 2

"""The way of a training request through the files, as ARCHITECTURE.md shows it.

What is counted: the calls that the files which arrange a training (`task.py`, `training/job.py`, `training/epochs.py`)
make into other files of the trainer, in their order, while one small request is trained. Calls into the same file one
after the other are one step. A step to a file that was entered before is a return to it. Callbacks that TensorFlow
calls, and what the called files call themselves, are not part of the walk.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import FrameType

import pytest

import trainer
from trainer.task import main

FOLDER = f"{Path(trainer.__file__).parent}/"
ARCHITECTURE = Path(trainer.__file__).parents[1] / "ARCHITECTURE.md"
ARRANGING = {"task.py", "training/job.py", "training/epochs.py"}
MOST_RETURNS = 12


def walked(run: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the steps of a call: from which arranging file to which other one."""
    calls: list[tuple[str, str]] = []
    generators: list[FrameType] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or (place := _file(frame)) is None or frame in generators:
            return
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            generators.append(frame)  # that it goes on is no call
        caller = frame.f_back
        while caller and (caller.f_code.co_filename == "<string>" or caller.f_globals["__name__"] == "contextlib"):
            caller = caller.f_back  # what dataclasses and context managers put between
        if caller and caller.f_code.co_name != "<lambda>" and frame.f_code.co_name != "<module>":
            origin = _file(caller)
            if origin in ARRANGING and origin != place:
                calls.append((origin, place))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return [next(steps) for _, steps in groupby(calls, key=lambda call: call[1])]


def _file(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    return name.removeprefix(FOLDER) if name.startswith(FOLDER) else None


@pytest.fixture(scope="module")
def steps(exported, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """The walk of one training."""
    folder = tmp_path_factory.mktemp("walk")
    uris = {f"{name}_uri": str(folder / name) for name in ("model", "report", "checkpoint", "tensorboard")}
    request = exported.train_json(**uris, training={"epochs": 1})
    arguments = ["train", "--request", exported.write("walk.json", request)]
    codes: list[int] = []
    found = walked(lambda: codes.append(main(arguments)))
    assert codes == [0]
    return found


def test_a_request_comes_back_to_few_files_that_it_has_left(steps: list[tuple[str, str]]) -> None:
    places = [place for _, place in steps]
    returns = [place for index, place in enumerate(places) if place in places[:index]]
    assert len(returns) <= MOST_RETURNS, returns


def test_the_walk_is_the_one_that_is_drawn(steps: list[tuple[str, str]]) -> None:
    """Each row of the table is a step: which file arranges, and where it goes."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    section = text[text.index("## A training, file by file") :].split("\n## ")[0]
    assert re.findall(r"^\| `([\w/.]+)` \| `([\w/.]+)` \|", section, flags=re.MULTILINE) == steps

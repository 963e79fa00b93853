"""Bayesian optimization by Open Source Vizier, in a process of its own: `designer_process`, in its own environment.

Comes in: a space, a spec, and all trials. Goes out: assignments. The process is started with the first question and
ends by itself when it is asked nothing for a while, so that a local cloud without studies never pays for it. It keeps
nothing: each question brings the whole study, so it may die at any time.

Vizier's designer knows flat spaces only: it gets a parameter that a trial does not have at its default, or in the
middle of its range, and what it suggests for one whose condition does not hold is dropped.
"""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from google.cloud.aiplatform_v1.types import StudySpec, Trial

from localcloud.vertex.jobs.tuning.search.measurements import State, final_values
from localcloud.vertex.jobs.tuning.search.space import Assignment, Parameter, Space, Value, values_of
from localcloud.vertex.processes.guardian import Guardian
from localcloud.vertex.processes.images import NEIGHBOURS_PATH
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition
from localcloud.vertex.wire.methods import raw

PYTHON_VARIABLE = "LOCALCLOUD_TUNING_PYTHON"
_PYTHON = NEIGHBOURS_PATH / "tuning/bin/python"
_MIDDLE = 0.5


class Designer:
    """Asks the process, one question at a time.

    Args:
        folder: Keeps what the process compiled, so that its next start is quicker.
        guardian: Ends it when the server dies.
    """

    def __init__(self, folder: Path, guardian: Guardian) -> None:
        self._folder = folder
        self._guardian = guardian
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    @staticmethod
    def check_ready() -> None:
        """Look for its environment.

        Raises:
            FailedPrecondition: It was not made yet.
        """
        python = _python()
        if not python.exists():
            raise FailedPrecondition(
                f"The default algorithm is Open Source Vizier, which runs in {python}, and that does not exist. Make it"
                " with `make tuning-env`, or from tuning-requirements.txt and name its Python in"
                f" {PYTHON_VARIABLE}, or ask for GRID_SEARCH or RANDOM_SEARCH."
            )

    def suggest(
        self, space: Space, spec: StudySpec, trials: Sequence[Trial], *, seed: int, count: int
    ) -> list[Assignment]:
        """Return the next assignments; one that the process cannot give is drawn at random.

        Raises:
            ApiError: There is no environment for it, or it failed twice; the message has its output.
        """
        self.check_ready()
        answer = self._ask({**_question(space, spec, trials), "seed": seed, "count": count})
        chance = random.Random(seed)

        def choose(suggestion: Mapping[str, Value] | None, parameter: Parameter) -> Value:
            return (
                parameter.at(chance.random())
                if suggestion is None
                else _own_value(parameter, suggestion[parameter.key])
            )

        return [space.walk(functools.partial(choose, suggestion)) for suggestion in answer["suggestions"]]

    def close(self) -> None:
        """End the process; a question under way fails, and later ones too."""
        self._closed = True
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        with self._lock:  # a question under way has failed by now
            process.communicate()  # waits, and closes the pipes

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            for _ in range(2):  # it may just have gone for want of questions
                answer = self._ask_once(json.dumps(question))
                if answer is not None:
                    break
        if answer is None:
            raise ApiError(
                "The process that suggests trials ended. See the log of the local Vertex AI.", code="INTERNAL"
            )
        if "error" in answer:
            raise ApiError(f"Open Source Vizier could not suggest trials: {answer['error']}", code="INTERNAL")
        return answer

    def _ask_once(self, question: str) -> dict[str, Any] | None:
        """Return the answer, or None when the process is gone."""
        if self._closed:
            return None
        if self._process is not None and self._process.poll() is not None:
            self._guardian.release(self._process.pid)
            self._process.communicate()  # closes the pipes
            self._process = None
        process = self._process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise TypeError("the process was started without pipes")
        try:
            process.stdin.write(question + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        if not line:
            process.wait()
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> subprocess.Popen[str]:
        self._folder.mkdir(parents=True, exist_ok=True)
        env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self._folder),
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(self._folder / "compiled"),
            "PYTHONWARNINGS": "ignore",
        }
        process = subprocess.Popen(
            [str(_python()), str(Path(__file__).with_name("designer_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
            cwd=self._folder,
            start_new_session=True,
        )
        self._guardian.watch(process.pid)
        return process


def _python() -> Path:
    return Path(os.environ.get(PYTHON_VARIABLE) or _PYTHON)


def _question(space: Space, spec: StudySpec, trials: Sequence[Trial]) -> dict[str, Any]:
    known = [trial for trial in trials if trial.parameters]
    return {
        "parameters": [
            {
                "key": parameter.key,
                "kind": parameter.kind,
                "scale": parameter.scale,
                "low": parameter.low,
                "high": parameter.high,
                "values": list(parameter.values),
                "default": parameter.default,
            }
            for parameter in space.all_parameters()
        ],
        "metrics": [metric.metric_id for metric in spec.metrics],
        "completed": [_completed(space, spec, t) for t in known if t.state in (State.SUCCEEDED, State.INFEASIBLE)],
        "active": [_described(space, t) for t in known if t.state in (State.REQUESTED, State.ACTIVE, State.STOPPING)],
    }


def _described(space: Space, trial: Trial) -> dict[str, Any]:
    own = values_of(trial)
    values = {parameter.key: _position_of(parameter, own) for parameter in space.all_parameters()}
    return {"id": int(trial.id), "values": values, "began": raw(trial).start_time.ToNanoseconds() / 1e9}


def _completed(space: Space, spec: StudySpec, trial: Trial) -> dict[str, Any]:
    # Turned so that more is better; None tells that it could not be measured.
    ended = raw(trial).end_time.ToNanoseconds() / 1e9
    return {**_described(space, trial), "ended": ended, "scores": final_values(spec, trial)}


def _position_of(parameter: Parameter, own: Mapping[str, Value]) -> Value:
    value = parameter.own_value(own.get(parameter.name))
    if value is None:
        value = parameter.own_value(parameter.default)
    return parameter.at(_MIDDLE) if value is None else value


def _own_value(parameter: Parameter, value: Value) -> Value:
    """Return the parameter's value nearest to a suggested one: Vizier computes in single precision."""
    if isinstance(value, str):
        return value
    if parameter.values:
        return min(parameter.values, key=lambda own: abs(float(own) - value))
    number = min(max(value, parameter.low), parameter.high)
    return round(number) if parameter.kind == "integer" else number

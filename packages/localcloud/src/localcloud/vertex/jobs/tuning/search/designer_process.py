"""The process that suggests: Open Source Vizier's default designer (GP-UCB-PE). Stand-alone.

Comes in (standard input): one study a line, as JSON (`bayesian._question`), with `seed` and `count`. Goes out (standard
output): `{"suggestions": [{key: value} or null]}` or `{"error": text}`, a line each. All scores are such that more is
better. It ends when its input does, or when nothing came for `IDLE_S`.
"""

from __future__ import annotations

import datetime
import functools
import gc
import json
import os
import select
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

IDLE_S = 300.0
SHAPES_KEPT = 8
_MIN_COMPILE_S = 0.2  # of what is kept for the next start


def main() -> None:
    """Answer until nobody asks any more."""
    answers = _own_output()
    while select.select([sys.stdin], [], [], IDLE_S)[0]:
        line = sys.stdin.readline()
        if not line:
            return
        try:
            answer: dict[str, Any] = {"suggestions": suggest(json.loads(line))}
        except Exception as error:  # noqa: BLE001 - the caller learns it; the next question may be a better one
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def suggest(question: Mapping[str, Any]) -> list[dict[str, float | str] | None]:
    """Return the next values of every parameter, conditions left aside; None where that came to no number, twice."""
    suggestions = _suggest(question, question["seed"])
    return _suggest(question, question["seed"] + 1) if None in suggestions else suggestions


def _suggest(question: Mapping[str, Any], seed: int) -> list[dict[str, float | str] | None]:
    import jax
    from vizier import algorithms
    from vizier._src.algorithms.designers import gp_ucb_pe
    from vizier.pyvizier.converters import padding

    jax.config.update("jax_persistent_cache_min_compile_time_secs", _MIN_COMPILE_S)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    problem = _problem(question)
    # Padded sizes are compiled once for ten trials, not for each; Vizier cannot pad a study of several metrics.
    single = len(question["metrics"]) == 1
    designer = gp_ucb_pe.VizierGPUCBPEBandit(
        problem,
        acquisition_optimizer_factory=functools.partial(_optimizer, _shape(question["parameters"])),
        rng=jax.random.PRNGKey(seed),
        padding_schedule=padding.PaddingSchedule(
            num_trials=padding.PaddingType.MULTIPLES_OF_10 if single else padding.PaddingType.NONE
        ),
    )
    completed = [_completed(trial, question["metrics"]) for trial in question["completed"]]
    active = [_trial(trial) for trial in question["active"]]
    designer.update(algorithms.CompletedTrials(completed), algorithms.ActiveTrials(active))
    keys = [parameter["key"] for parameter in question["parameters"]]
    points = [each.parameters for each in designer.suggest(question["count"])]
    # Where the Gaussian process is too ill-conditioned a value is not a number, and Vizier leaves it out.
    return [{key: each[key].value for key in keys} if all(key in each for key in keys) else None for each in points]


Shape = tuple[int, ...]

_optimizers: dict[Shape, Any] = {}


def _shape(parameters: Sequence[Mapping[str, Any]]) -> Shape:
    """Return what the optimizer sees of a space: everything in [0, 1], or so many categories."""
    return tuple(len(each["values"]) if each["kind"] == "categorical" else 0 for each in parameters)


def _optimizer(space: Shape, converter: Any) -> Any:  # noqa: ANN401 - Vizier publishes no types here
    """Return the optimizer of spaces of one shape, always the same one.

    Vizier makes another for each suggestion, which is equal but not the same to JAX: it is traced and kept in memory
    each time (2 s and 50 MB a suggestion). Of more shapes than `SHAPES_KEPT` all are forgotten.
    """
    import jax
    from vizier._src.algorithms.designers import gp_ucb_pe

    if space not in _optimizers:
        if len(_optimizers) == SHAPES_KEPT:
            _optimizers.clear()
            jax.clear_caches()
            gc.collect()
        _optimizers[space] = gp_ucb_pe.VizierGPUCBPEBandit.default_acquisition_optimizer_factory(converter)
    return _optimizers[space]


def _problem(question: Mapping[str, Any]) -> Any:  # noqa: ANN401 - Vizier publishes no types here
    from vizier import pyvizier as vz

    problem = vz.ProblemStatement()
    root = problem.search_space.root
    scales = {"linear": vz.ScaleType.LINEAR, "log": vz.ScaleType.LOG, "reverse_log": vz.ScaleType.REVERSE_LOG}
    for parameter in question["parameters"]:
        key, default = parameter["key"], parameter["default"]
        low, high, values, scale = (parameter[name] for name in ("low", "high", "values", "scale"))
        if parameter["kind"] == "double":
            root.add_float_param(key, low, high, scale_type=scales[scale], default_value=default)
        elif parameter["kind"] == "integer":
            root.add_int_param(key, int(low), int(high), scale_type=scales[scale], default_value=default)
        elif parameter["kind"] == "discrete":
            root.add_discrete_param(key, values, scale_type=scales[scale], auto_cast=False)
        else:
            root.add_categorical_param(key, values, default_value=default)
    for metric in question["metrics"]:
        problem.metric_information.append(vz.MetricInformation(name=metric, goal=vz.ObjectiveMetricGoal.MAXIMIZE))
    return problem


def _trial(described: Mapping[str, Any]) -> Any:  # noqa: ANN401
    from vizier import pyvizier as vz

    began = datetime.datetime.fromtimestamp(described["began"], datetime.UTC)
    return vz.Trial(id=described["id"], parameters=described["values"], creation_time=began)


def _completed(described: Mapping[str, Any], metrics: list[str]) -> Any:  # noqa: ANN401
    from vizier import pyvizier as vz

    trial, scores = _trial(described), described["scores"]
    if scores is None:
        trial.complete(vz.Measurement(), infeasibility_reason="it could not be measured")
    else:
        trial.complete(vz.Measurement(metrics=dict(zip(metrics, scores, strict=True))))
    trial.completion_time = datetime.datetime.fromtimestamp(described["ended"], datetime.UTC)
    return trial


def _own_output() -> TextIO:
    """Keep standard output for answers alone: whatever a library prints goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


if __name__ == "__main__":
    main()

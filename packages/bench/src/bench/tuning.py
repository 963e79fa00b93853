"""`make bench-tuning`: how many trials a study needs that remembers earlier ones, beside one that starts from nothing.

In: the surfaces of `tuning_surfaces`. Out: a table, and `build/bench/tuning.json`. Both studies are the product's own:
the same choice of what is repeated and where to search on (`retraining.core.tuning`), the same study spec, the same
designer (Open Source Vizier in `.venv/tuning`), three trials at a time, the next one as soon as one ends. A trial is
a look at a surface, and takes four to six minutes of the study's clock.

    cold     a study of the whole space
    warm N   the study of the third week, after two of N trials each, a week apart

Counted are trials in the order of their ends, repeated ones too, until one's true score is within 1 % of the best
known; more than 45 are 46.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.cloud.aiplatform_v1.types import Measurement, StudySpec
from google.cloud.aiplatform_v1.types import Trial as VertexTrial
from google.protobuf import json_format

from bench.checkout import REPOSITORY_PATH
from bench.tuning_surfaces import DRIFT, THIS_WEEK, Surface, surfaces
from localcloud.vertex.jobs.tuning.search.algorithms import Problem, suggest
from localcloud.vertex.jobs.tuning.search.bayesian import Designer
from localcloud.vertex.jobs.tuning.search.space import Assignment, write_parameters
from localcloud.vertex.processes.guardian import Guardian
from retraining.core.documents import Trial, Tuning
from retraining.core.spec.tuning import Tuning as TuningSpec
from retraining.core.spec.tuning import TuningParameter
from retraining.core.tuning import requests, warm_start

LIMIT = 0.5
WITHIN = 0.01
EARLIER_STUDIES = 2
MOST_TRIALS = 45
EARLIER_TRIALS = {"warm 12": 12, "warm 45": MOST_TRIALS}
"""Of each earlier study: as many as `tuning.max_trials` has by default, and as many as a cold start may need."""

_SORTS = ("cold", *EARLIER_TRIALS)
_MINUTES = (4.0, 6.0)
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "tuning.json"
_MONDAY = datetime.datetime(2013, 11, 18, 3, tzinfo=datetime.UTC)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all seeds that are not measured yet, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.tuning", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="searches of each sort (default: 5)")
    parser.add_argument("--again", action="store_true", help="forget what an earlier call measured")
    options = parser.parse_args(arguments)
    known: dict[str, Any] = {} if options.again or not _OUT_PATH.exists() else json.loads(_OUT_PATH.read_text())
    trials: dict[str, dict[str, dict[str, int]]] = known.get("trials", {})
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-tuning-") as folder:
        guardian = Guardian()
        search = Search(Designer(_OUT_PATH.parent / "tuning-designer", guardian))
        try:
            for seed in range(1, options.seeds + 1):
                for surface in surfaces(seed):
                    measure(search, surface, seed, trials)
        finally:
            search.designer.close()
            guardian.close()
    del folder
    print(render(summarise_trials(trials)))
    return 0


def measure(search: Search, surface: Surface, seed: int, trials: dict[str, dict[str, dict[str, int]]]) -> None:
    """Count all sorts of a seed, and write them down together: their noise is one stream, so a seed is never split."""
    seeds = trials.setdefault(surface.name, {})
    if str(seed) in seeds:
        return
    counts = {}
    for sort in _SORTS:
        earlier = EARLIER_TRIALS.get(sort)
        counts[sort] = search.cold(surface, seed) if earlier is None else search.warm(surface, seed, earlier)
        print(f"{surface.name}, seed {seed}: {sort}: {counts[sort]}", flush=True)
    seeds[str(seed)] = counts
    _OUT_PATH.write_text(json.dumps(summarise_trials(trials), indent=2) + "\n")


class Search:
    """Studies on surfaces."""

    def __init__(self, designer: Designer) -> None:
        self.designer = designer

    def cold(self, surface: Surface, seed: int) -> int:
        """Count the trials of a study that knows nothing."""
        spec = TuningSpec.model_validate(surface.section)
        return _count(surface, self._searched(surface, spec, THIS_WEEK, spec.parameters, f"cold {seed}"))

    def warm(self, surface: Surface, seed: int, earlier_trials: int) -> int:
        """Count those of one that remembers: first the repeated, then the searched."""
        spec = TuningSpec.model_validate({**surface.section, "max_trials": earlier_trials})
        studies: list[Tuning] = []
        for week in range(-EARLIER_STUDIES, THIS_WEEK):
            trials = self._study(surface, spec, week, studies, seed)
            studies.append(_document(spec, week, [next(trials) for _ in range(spec.max_trials)]))
        return _count(surface, self._study(surface, spec, THIS_WEEK, studies, seed))

    def _study(
        self, surface: Surface, spec: TuningSpec, week: int, studies: Sequence[Tuning], seed: int
    ) -> Iterator[Trial]:
        """Yield a week's trials, endlessly."""
        recalled = [
            _trial(f"recall-{number}", "recall", each.hyperparameters, surface.seen(week, each.hyperparameters))
            for number, each in enumerate(warm_start.repeated_trials(spec, studies), start=1)
        ]
        yield from recalled
        space = warm_start.narrowed_space(spec, recalled, warm_start.range_shares(spec, studies))
        yield from self._searched(surface, spec, week, space, f"warm {seed} {week}")

    def _searched(
        self, surface: Surface, spec: TuningSpec, week: int, space: Sequence[TuningParameter], name: str
    ) -> Iterator[Trial]:
        study = StudySpec()
        json_format.ParseDict(requests.study_spec(spec, space), StudySpec.pb(study))
        minutes = random.Random(name)
        clock, trials, running = _MONDAY, list[VertexTrial](), list[tuple[datetime.datetime, int, Assignment]]()
        while True:
            problem = Problem(display_name=f"{surface.name} {name}", spec=study, trials=trials)
            for values in suggest(problem, spec.parallel_trials - len(running), self.designer):
                trial = VertexTrial(id=str(len(trials) + 1), state=VertexTrial.State.ACTIVE, start_time=clock)
                write_parameters(trial, values)
                end = clock + datetime.timedelta(minutes=minutes.uniform(*_MINUTES))
                running.append((end, len(trials), values))
                trials.append(trial)
            running.sort(key=lambda each: each[:2])
            clock, place, values = running.pop(0)
            score, trial = surface.seen(week, values), trials[place]
            trial.state, trial.end_time = VertexTrial.State.SUCCEEDED, clock
            trial.final_measurement = Measurement(metrics=[{"metric_id": spec.metric, "value": score}])
            yield _trial(f"search-{trial.id}", "search", values, score)


def _count(surface: Surface, trials: Iterator[Trial]) -> int:
    """Count trials until one is good enough."""
    for number in range(1, MOST_TRIALS + 1):
        score = surface.true(THIS_WEEK, next(trials).hyperparameters)
        short = surface.best - score if surface.goal == "maximize" else score - surface.best
        if short <= WITHIN * abs(surface.best):
            return number
    return MOST_TRIALS + 1


def _trial(trial_id: str, phase: Any, values: Mapping[str, Any], score: float) -> Trial:  # noqa: ANN401 - a literal
    return Trial(
        trial_id=trial_id,
        phase=phase,
        state="SUCCEEDED",
        hyperparameters=dict(values),
        value=score,
        curve=(),
        seconds=None,
        message="",
    )


def _document(spec: TuningSpec, week: int, trials: Sequence[Trial]) -> Tuning:
    as_of = _MONDAY + datetime.timedelta(weeks=week)
    return Tuning(
        model="bench",
        run_key=f"{as_of:%Y%m%dt%H%M%Sz}-000000000000",
        as_of=as_of,
        metric=spec.metric,
        goal=spec.goal,
        hyperparameters={},
        source="study",
        message="of the benchmark",
        space=spec.parameters,
        searched=spec.parameters,
        trials=tuple(trials),
        best=None,
        jobs=(),
        seconds=0.0,
    )


def summarise_trials(trials: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, Any]:
    """Return medians and their ratio beside what was counted."""
    rows = []
    for name, known in trials.items():
        if not known:
            continue
        medians = {sort: statistics.median(counts[sort] for counts in known.values()) for sort in _SORTS}
        ratios = {sort: round(medians[sort] / medians["cold"], 3) for sort in EARLIER_TRIALS}
        rows.append({"surface": name, "seeds": len(known), "trials": medians, "ratios": ratios})
    settings = {"within": WITHIN, "earlier_studies": EARLIER_STUDIES, "drift": DRIFT, "limit": LIMIT}
    return {**settings, "rows": rows, "trials": trials}


def render(result: Mapping[str, Any]) -> str:
    """Return the table of docs/tuning.md."""
    head = "".join(f" {sort} | ratio |" for sort in EARLIER_TRIALS)
    lines = [f"| surface | cold |{head}", "|---" * (2 + 2 * len(EARLIER_TRIALS)) + "|"]
    for row in result["rows"]:
        seeds = result["trials"][row["surface"]].values()
        cells = {
            sort: f"{row['trials'][sort]:g} ({', '.join(str(counts[sort]) for counts in seeds)})" for sort in _SORTS
        }
        warm = "".join(f" {cells[sort]} | {row['ratios'][sort]:.2f} |" for sort in EARLIER_TRIALS)
        lines.append(f"| {row['surface']} | {cells['cold']} |{warm}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

"""`make bench-models`: the trainer's defaults beside scikit-learn's and LightGBM's, on public tables.

In: nothing but this machine, and `models.jsonl`, the trainings that were measured before. Out: a table,
`build/bench/models.json`, and more lines in that file. For each set and seed the same split: `wide_deep` as `make
new-model` writes it, the same without its ensemble (`single`), and the other architectures of `OURS`, each by its
recipe, trained by the trainer's own code (`models_ours`); and logistic regression or ridge, a network of two layers,
and two kinds of boosted trees, all at their defaults (`models_contender`). Each of five seeds tests another fifth of
the rows. A ratio is the mean loss over the seeds to the least of the others' means: log loss of classes, root mean
square error of numbers. What was measured by the same code is not trained again.

The sets in `models_sets.HELD_OUT` were not looked at while the recipe was made.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.checkout import PACKAGES_PATH, REPOSITORY_PATH
from bench.input import machine
from bench.models_lines import Line, Lines, digest_code
from bench.models_ours import Examples
from bench.models_scores import measure
from bench.models_sets import HELD_OUT, SETS
from bench.tables import MEMORY_PATH
from retraining.core.jobs.recipe import recipe_of

DEFAULT, SINGLE = "wide_deep", "single"
OURS = (DEFAULT, "boosted_trees", "random_forest", "linear")
OTHERS = ("linear", "network", "trees", "lightgbm")
PREFIX = "ours/"
"""Of our models' names: the others have a linear one too."""
LINES_PATH = Path(__file__).with_name("models.jsonl")
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "models.json"
_VERSIONS = """
import importlib.metadata, json
print(json.dumps({name: importlib.metadata.version(name) for name in ("scikit-learn", "lightgbm")}))
"""
_BENCH = "packages/bench/src/bench"
_SHARED_CODE = [f"{_BENCH}/models_{name}.py" for name in ("data", "scores", "sets")]
_OUR_CODE = [
    *_SHARED_CODE,
    f"{_BENCH}/models_ours.py",
    f"{_BENCH}/input_files.py",
    "plugins/retraining/core/jobs/recipe.py",
    *(f"trainer/{folder}" for folder in ("features", "input", "models", "objective", "saved_model", "training")),
]
_THEIR_CODE = [*_SHARED_CODE, f"{_BENCH}/models_contender.py"]


@dataclass(frozen=True, kw_only=True)
class Code:
    """The digests of what trains our models, and of what trains the others."""

    ours: str
    theirs: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what has not been trained, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.models", description=__doc__)
    parser.add_argument("python", help="of the contenders' environment")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each model (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all")
    parser.add_argument("--models", nargs="+", choices=OURS, default=list(OURS), help="of ours (default: all)")
    options = parser.parse_args(arguments)
    theirs = json.loads(_run(options.python, "-c", _VERSIONS))
    ours = {name: version(name) for name in ("tensorflow-cpu", "ydf")}
    code = Code(
        ours=digest_code(REPOSITORY_PATH, _OUR_CODE, ours), theirs=digest_code(REPOSITORY_PATH, _THEIR_CODE, theirs)
    )
    lines = Lines(LINES_PATH)
    models = [*options.models, SINGLE] if DEFAULT in options.models else options.models
    seeds = range(1, options.seeds + 1)
    for seed in seeds:
        for name in options.sets:
            _train_missing(options.python, lines, name, seed, models, code)
    made = [line for line in lines if line["seed"] in seeds and line["code"] in (code.ours, code.theirs)]
    rows = [summarise(name, made) for name in options.sets]
    print(render(rows, totals=True))
    _write({"seeds": options.seeds, "versions": {**theirs, **ours}, "sets": rows, "trainings": made})
    print(f"bench-models: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def _write(result: Mapping[str, Any]) -> None:
    measured = {"measured": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": machine()}
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps({**measured, **result}, indent=2) + "\n")


def _train_missing(python: str, lines: Lines, name: str, seed: int, models: Sequence[str], code: Code) -> None:
    """Train what no line of this code says, and write its lines."""
    missing = [model for model in models if not lines.has(name, PREFIX + model, seed, code.ours)]
    others = [model for model in OTHERS if not lines.has(name, model, seed, code.theirs)]
    if not missing and not others:
        return
    with tempfile.TemporaryDirectory(prefix="bench-models-", dir=MEMORY_PATH) as folder:
        _run(python, "-m", "bench.models_data", folder, str(seed), name)
        if others:
            for line in _run(python, "-m", "bench.models_contender", folder, str(seed), name).splitlines():
                lines.add({**json.loads(line), "code": code.theirs})
        for made in train_ours(Path(folder), name, seed, missing):
            lines.add({**made, "code": code.ours})
            print(f"{name}, seed {seed}: {made['model']} {made['loss']:.4g} in {made['seconds']:.0f} s", flush=True)


def train_ours(folder_path: Path, name: str, seed: int, models: Sequence[str] = OURS) -> Iterator[Line]:
    """Yield what the trainer's defaults reach with a seed."""
    examples_path = folder_path / f"{name}-examples"
    examples = Examples.write(folder_path / f"{name}.{seed}.parquet", SETS[name], examples_path)
    labels = examples.test["label"].to_numpy()
    rows = len(examples.train)
    for model in models:
        if model == SINGLE:
            alone = {**recipe_of(DEFAULT, rows).hyperparameters, "members": 1}
            done = examples.train_default(seed, DEFAULT, SINGLE, hyperparameters=alone)
        else:
            done = examples.train_default(seed, model)
        loss, score = measure(SETS[name], labels, done.answers)
        yield {
            "name": name,
            "model": PREFIX + model,
            "seed": seed,
            "seconds": done.seconds,
            "loss": loss,
            "score": score,
            "steps": done.report.steps,
            "best_epoch": done.report.best_epoch,
            "epochs_run": done.report.epochs_run,
            "rows": rows,
        }
    shutil.rmtree(examples_path)


def summarise(name: str, lines: Sequence[Line]) -> dict[str, Any]:
    """Return a set's row: means over the seeds by model, and ours' ratios to the best of the others.

    `ensemble_ratio` is the default's loss to that of one of its networks; None where that was not trained.
    """
    models: dict[str, dict[str, float]] = {}
    for model in sorted({line["model"] for line in lines if line["name"] == name}, key=_place):
        mine = [line for line in lines if line["name"] == name and line["model"] == model]
        models[model] = {
            number: statistics.fmean(line[number] for line in mine) for number in ("loss", "score", "seconds")
        }
    ours = [model for model in models if model.startswith(PREFIX) and model != PREFIX + SINGLE]
    best = min((model for model in models if model in OTHERS), key=lambda model: models[model]["loss"])
    default = [line for line in lines if line["name"] == name and line["model"] == ours[0]]
    best_by_seed = {line["seed"]: line["loss"] for line in lines if line["name"] == name and line["model"] == best}
    single = models.get(PREFIX + SINGLE) if ours[0] == PREFIX + DEFAULT else None
    return {
        "name": name,
        "family": SETS[name].family,
        "rows": default[0]["rows"],
        "models": models,
        "best": best,
        "ratio": models[ours[0]]["loss"] / models[best]["loss"],
        "worst_ratio": max(line["loss"] / best_by_seed[line["seed"]] for line in default),
        "ratios": {model.removeprefix(PREFIX): models[model]["loss"] / models[best]["loss"] for model in ours},
        "ensemble_ratio": models[ours[0]]["loss"] / single["loss"] if single else None,
        "held_out": name in HELD_OUT,
    }


def _place(model: str) -> tuple[bool, int]:
    """Return where a model stands in a row: ours before the others, each as they are listed."""
    if model.startswith(PREFIX):
        return False, [*OURS, SINGLE].index(model.removeprefix(PREFIX))
    return True, OTHERS.index(model)


def render(rows: Sequence[Mapping[str, Any]], *, totals: bool = False) -> str:
    """Give rows of the table of docs/models.md; with totals, its head and the medians below it."""
    head = (
        "| set | family | rows | loss | score | best of the others | its loss | ratio | worst seed "
        "| best of ours | its ratio | to one network | seconds | its |"
    )
    lines = [head, "|---" * 14 + "|"] * totals
    for row in rows:
        models, ratios = row["models"], row["ratios"]
        first, best = models[PREFIX + next(iter(ratios))], models[row["best"]]
        name = f"*{row['name']}*" if row["held_out"] else row["name"]
        least = min(ratios, key=ratios.__getitem__)
        ensemble = "" if row["ensemble_ratio"] is None else f"{row['ensemble_ratio']:.2f}"
        lines.append(
            f"| {name} | {row['family']} | {row['rows']:,} | {first['loss']:.4g} | {first['score']:.3f} "
            f"| {row['best']} | {best['loss']:.4g} | {row['ratio']:.2f} | {row['worst_ratio']:.2f} "
            f"| {least} | {ratios[least]:.2f} | {ensemble} | {first['seconds']:.0f} | {best['seconds']:.1f} |"
        )
    if totals:
        lines += [_medians("all", rows), _medians("held out", [row for row in rows if row["held_out"]])]
        families = dict.fromkeys(row["family"] for row in rows)
        lines += [_medians(family, [row for row in rows if row["family"] == family]) for family in families]
    return "\n".join(line for line in lines if line)


def _medians(what: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a line of medians: of each of our models, and of the best of them on each set."""
    if not rows:
        return ""
    ratios = {model: [row["ratios"][model] for row in rows] for model in rows[0]["ratios"]}
    if len(ratios) > 1:
        ratios["the best of them"] = [min(row["ratios"].values()) for row in rows]
    if all(row["ensemble_ratio"] is not None for row in rows):
        ratios[f"{DEFAULT} to one of its networks"] = [row["ensemble_ratio"] for row in rows]
    shown = "; ".join(
        f"{model} {statistics.median(some):.3f}, highest {max(some):.2f}" for model, some in ratios.items()
    )
    return f"median ratios of {len(rows)} sets, {what}: {shown}"


def _run(python: str, *arguments: str) -> str:
    environ = {**os.environ, "PYTHONPATH": PACKAGES_PATH}
    done = subprocess.run([python, *arguments], stdout=subprocess.PIPE, text=True, check=True, env=environ)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())

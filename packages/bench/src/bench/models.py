"""`make bench-models`: the trainer's defaults beside scikit-learn's and LightGBM's, on public tables.

In: nothing but this machine. Out: a table, and `build/bench/models.json`. For each set the same split: `wide_deep` as
`make new-model` writes it, and the other architectures of `OURS`, each by its recipe, trained by the trainer's own code
(`models_ours`); and logistic regression or ridge, a network of two layers, and two kinds of boosted trees, all at their
defaults (`models_contender`). A ratio is the mean loss over the seeds to the least of the others' means: log loss of
classes, root mean square error of numbers.

The sets in `models_sets.HELD_OUT` were not looked at while the recipe was made.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.checkout import PACKAGES_PATH, REPOSITORY_PATH
from bench.input import machine
from bench.models_ours import Examples
from bench.models_scores import measure
from bench.models_sets import HELD_OUT, SETS
from bench.tables import MEMORY_PATH

DEFAULT = "wide_deep"
OURS = (DEFAULT, "boosted_trees", "random_forest", "linear")
PREFIX = "ours/"
"""Of our models' names: the others have a linear one too."""
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "models.json"
_VERSIONS = """
import importlib.metadata, json
print(json.dumps({name: importlib.metadata.version(name) for name in ("scikit-learn", "lightgbm")}))
"""

Line = Mapping[str, Any]
"""A training: name, model, seed, seconds, loss, score."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train everything, print the table, write the JSON after each set."""
    parser = argparse.ArgumentParser(prog="bench.models", description=__doc__)
    parser.add_argument("python", help="of the contenders' environment")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each model (default: %(default)s)")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS), help="default: all")
    parser.add_argument("--models", nargs="*", choices=OURS, default=list(OURS), help="of ours (default: all)")
    options = parser.parse_args(arguments)
    versions = json.loads(_run(options.python, "-c", _VERSIONS))
    lines: list[Line] = []
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-models-", dir=MEMORY_PATH) as folder:
        _run(options.python, "-m", "bench.models_data", folder, *options.sets)
        for name in options.sets:
            lines += _compete(options.python, Path(folder), options.seeds, name)
            lines += train_ours(Path(folder), name, options.seeds, options.models)
            rows.append(summarise(name, lines))
            print(render(rows[-1:]), flush=True)
            _write({"seeds": options.seeds, "versions": versions, "sets": rows, "trainings": lines})
    print(render(rows, totals=True))
    print(f"bench-models: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def _write(result: Mapping[str, Any]) -> None:
    measured = {"measured": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": machine()}
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps({**measured, **result}, indent=2) + "\n")


def train_ours(folder_path: Path, name: str, seeds: int, models: Sequence[str] = OURS) -> Iterator[Line]:
    """Yield what the trainer's defaults reach with each seed."""
    examples_path = folder_path / f"{name}-examples"
    examples = Examples.write(folder_path / f"{name}.parquet", SETS[name], examples_path)
    labels = examples.test["label"].to_numpy()
    for model, seed in itertools.product(models, range(1, seeds + 1)):
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
            "rows": len(examples.train),
        }
    shutil.rmtree(examples_path)


def summarise(name: str, lines: Sequence[Line]) -> dict[str, Any]:
    """Return a set's row: means over the seeds by model, and ours' ratios to the best of the others."""
    models: dict[str, dict[str, float]] = {}
    for model in dict.fromkeys(line["model"] for line in lines if line["name"] == name):
        mine = [line for line in lines if line["name"] == name and line["model"] == model]
        models[model] = {
            number: statistics.fmean(line[number] for line in mine) for number in ("loss", "score", "seconds")
        }
    ours = [model for model in models if model.startswith(PREFIX)]
    best = min(models.keys() - set(ours), key=lambda model: models[model]["loss"])
    default = [line for line in lines if line["name"] == name and line["model"] == ours[0]]
    return {
        "name": name,
        "family": SETS[name].family,
        "rows": default[0]["rows"],
        "models": models,
        "best": best,
        "ratio": models[ours[0]]["loss"] / models[best]["loss"],
        "worst_ratio": max(line["loss"] for line in default) / models[best]["loss"],
        "ratios": {model.removeprefix(PREFIX): models[model]["loss"] / models[best]["loss"] for model in ours},
        "held_out": name in HELD_OUT,
    }


def render(rows: Sequence[Mapping[str, Any]], *, totals: bool = False) -> str:
    """Give rows of the table of docs/models.md; with totals, its head and the medians below it."""
    head = (
        "| set | family | rows | loss | score | best of the others | its loss | ratio | worst seed "
        "| best of ours | its ratio | seconds | its |"
    )
    lines = [head, "|---" * 13 + "|"] * totals
    for row in rows:
        models, ratios = row["models"], row["ratios"]
        first, best = models[PREFIX + next(iter(ratios))], models[row["best"]]
        name = f"*{row['name']}*" if row["held_out"] else row["name"]
        least = min(ratios, key=ratios.__getitem__)
        lines.append(
            f"| {name} | {row['family']} | {row['rows']:,} | {first['loss']:.4g} | {first['score']:.3f} "
            f"| {row['best']} | {best['loss']:.4g} | {row['ratio']:.2f} | {row['worst_ratio']:.2f} "
            f"| {least} | {ratios[least]:.2f} | {first['seconds']:.0f} | {best['seconds']:.1f} |"
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
    shown = "; ".join(
        f"{model} {statistics.median(some):.3f}, highest {max(some):.2f}" for model, some in ratios.items()
    )
    return f"median ratios of {len(rows)} sets, {what}: {shown}"


def _compete(python: str, folder_path: Path, seeds: int, name: str) -> Iterator[Line]:
    done = _run(python, "-m", "bench.models_contender", str(folder_path), str(seeds), name)
    for line in done.splitlines():
        yield json.loads(line)


def _run(python: str, *arguments: str) -> str:
    environ = {**os.environ, "PYTHONPATH": PACKAGES_PATH}
    done = subprocess.run([python, *arguments], stdout=subprocess.PIPE, text=True, check=True, env=environ)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())

"""The training of trees, top to bottom: examples as columns, iterations, the best forest, stored model, report.

Comes in: a training job and a source of examples, as `trainer.training.job` has them. Goes out: what that gives. An
epoch is an iteration here: a tree for each logit, or for all of them, grown on all examples. Yggdrasil grows some at a
time, and the folder from which it goes on is the checkpoint; SIGTERM may end the process at any time. After each
iteration the validation split is measured: boosted trees end at the best one, and of a random forest all stay.
"""

from __future__ import annotations

import dataclasses
import io
import logging
import math
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.cluster.replica import Replica
from trainer.cluster.strategy import choose_strategy
from trainer.contract.documents import Report, TrainRequest
from trainer.errors import DataError, Diverged, RequestError
from trainer.input.source import Source
from trainer.models.trees import Forest, Walk, forest_model, joined, linked
from trainer.objective.outputs import Objective
from trainer.training.batches import Steps
from trainer.training.checkpoints import Checkpoints, TrainingState
from trainer.training.epochs import Fit
from trainer.training.examples import CheckedSplit, Examples, open_examples
from trainer.training.recipe import Recipe
from trainer.training.result import store_model, write_report
from trainer.training.tensorboard import TensorBoard
from trainer.training.training_job import TrainingJob
from trainer.training.trial import Trial
from trainer.training.yggdrasil import MOST_IDS, Columns, Grower, grower_type, require_yggdrasil

LOGGER = logging.getLogger(__name__)
_FOREST, _FOLDER = "forest.npz", "yggdrasil.tar"
_LEAST_ITERATIONS, _MOST_ITERATIONS, _CELLS_AT_ONCE = 10, 50, 200_000_000
"""Iterations grown at a time: as many as there are cells to read in so many, within the limits."""
_BYTES_PER_CELL = 16  # the matrix, Yggdrasil's columns, and their order
_WALKED_ROWS, _WALKED_CELLS = 65536, 1 << 20
"""Rows, and rows times trees, that are walked through at a time: each question costs some operations, however many."""


def train_trees(job: TrainingJob, source: Source, recipe: Recipe) -> Report | None:
    """Grow trees, store the best forest, and write the report.

    Args:
        job: What to train.
        source: Opens the splits train and validation.

    Returns:
        The report; None from a trial.

    Raises:
        RequestError: Something is asked that trees have not.
        DataError: The examples are not as the documents say, or there is nothing to learn.
        Diverged: The loss is not a number.
    """
    request = job.request
    _require_growable(job)
    grower_type(recipe.hyperparameters).require_label(request.label)
    strategy = choose_strategy(Replica(), "one_device")
    examples = open_examples(job, source, recipe, strategy, kept=False)
    _require_room(job, examples)
    columns = {name: read_columns(split, examples) for name, split in examples.splits.items()}
    job.clock.lap("read")
    growth = Growth.begin(job, recipe, columns)
    resumed = growth.restore()
    trial = Trial.of(request, job.storage)
    with tempfile.TemporaryDirectory(prefix="trees-") as folder:
        growth.grow_all(Path(folder), trial)
    state = growth.state
    if trial:
        trial.finish(vars(recipe.hyperparameters), state.history, f"{state.epochs_run} trees, best {state.best_epoch}")
        return None
    trained_s = job.clock.lap("train")
    model = forest_model(examples.preprocessing.shape, growth.forest.first(state.best_epoch))
    steps = Steps(
        rows=examples.train_rows, rows_per_step=examples.train_rows, per_epoch=1, epochs=request.training.epochs
    )
    fit = Fit(job=job, model=model, rate=None, examples=examples, steps=steps, strategy=strategy)
    stored = store_model(fit, recipe)
    return write_report(fit, recipe, stored, state, resumed, trained_s) if stored else None


def read_columns(split: CheckedSplit, examples: Examples) -> Columns:
    """Read a split into memory, and check it.

    Raises:
        DataError: It is not as the manifest says, or a label is wrong.
    """
    shape = examples.preprocessing.shape
    matrix = np.empty((split.split.rows, shape.numbers + len(shape.categories)), np.float32)
    targets: list[npt.NDArray[np.float64]] = []
    done = 0
    for inputs, values in split.blocks():
        block = joined(inputs).numpy()[: len(matrix) - done]
        matrix[done : done + len(block)] = block
        done += len(block)
        targets.append(values.astype(np.float64))
    weighting = split.objective.weighting
    all_targets = np.concatenate(targets) if targets else np.zeros((0, 2) if weighting else 0)
    return Columns(
        matrix=matrix,
        ids=tuple(category.ids for category in shape.categories),
        targets=all_targets[:, 0] if weighting else all_targets,
        weights=all_targets[:, 1] if weighting else None,
    )


@dataclass(kw_only=True)
class Growth:
    """A forest while it grows.

    Attributes:
        job: The training.
        recipe: Of the forest.
        columns: Of the splits train and validation.
        state: Of the training.
        forest: The trees until now.
        answers: Their sums, by split. float32 [n, outputs]
    """

    job: TrainingJob
    recipe: Recipe
    columns: dict[str, Columns]
    state: TrainingState
    forest: Forest
    answers: dict[str, npt.NDArray[np.float32]] = field(default_factory=dict)

    @classmethod
    def begin(cls, job: TrainingJob, recipe: Recipe, columns: dict[str, Columns]) -> Growth:
        """Return a forest without trees.

        Raises:
            DataError: All training labels are the same.
        """
        if job.request.label.kind != "regression" and len(np.unique(columns["train"].targets)) < 2:
            raise DataError(
                f"split train, label {job.request.label.name!r}",
                f"all {columns['train'].rows} examples are {columns['train'].targets[0]:g}",
                "two classes at least",
                "Widen data.window_days, or look at the query",
            )
        state = TrainingState.of(job.request, strategy="one_device", replicas=1, steps_per_epoch=1)
        forest = Forest.empty(recipe.objective.outputs)
        growth = cls(job=job, recipe=recipe, columns=columns, state=state, forest=forest)
        for name, split in columns.items():
            growth.answers[name] = np.zeros((split.rows, recipe.objective.outputs), np.float32)
        return growth

    @property
    def objective(self) -> Objective:
        """What is learnt."""
        return self.recipe.objective

    @property
    def at_once(self) -> int:
        """Iterations that are grown at a time, whatever machine grows them."""
        cells = self.columns["train"].matrix.size * self.objective.outputs
        return min(_MOST_ITERATIONS, max(_LEAST_ITERATIONS, _CELLS_AT_ONCE // max(cells, 1)))

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to grow."""
        training = self.job.request.training
        return self.state.is_over(training.epochs, training.early_stopping_patience)

    def restore(self) -> TrainingState | None:
        """Go on from the newest checkpoint, if there is one; gives a copy of its state."""
        with tempfile.TemporaryDirectory() as folder:
            found = self._checkpoints.newest(self.state, Path(folder))
            if found is None:
                return None
            self.forest = _read_forest(Path(folder) / _FOREST)
        self.state = found
        for name, split in self.columns.items():
            for answers in answers_of(self.forest, split.matrix):
                self.answers[name] += answers
        LOGGER.info("train: goes on after tree %s", found.step)
        return dataclasses.replace(found, history={name: list(values) for name, values in found.history.items()})

    def grow_all(self, folder_path: Path, trial: Trial | None) -> None:
        """Grow until nothing gets better, or there are as many trees as were asked for.

        Args:
            folder_path: Where Yggdrasil works.
            trial: That reports each iteration.

        Raises:
            Diverged: The loss is not a number.
        """
        if self.is_over:
            return
        if self.state.step:
            self._checkpoints.fetch(self.state.step, folder_path)
            with tarfile.open(folder_path / _FOLDER) as packed:
                packed.extractall(folder_path, filter="data")
        request, chosen = self.job.request, self.recipe.hyperparameters
        grower = grower_type(chosen)(self.columns["train"], request.label, chosen, request.seed, folder_path)
        attempt = f"from-epoch-{self.state.epochs_run + 1:05d}"
        options = request.training.callbacks.tensorboard
        board = TensorBoard(request.tensorboard_uri, self.job.storage, attempt, options)
        self.job.clock.part("columns")
        while not self.is_over:
            before = self.state.epochs_run
            self._grow_some(grower)
            self._save(folder_path)
            self._tell(before, board, trial)
        board.close()

    def _grow_some(self, grower: Grower[Any]) -> None:
        have, objective = self.forest.iterations, self.objective
        until = min(self.job.request.training.epochs, (have // self.at_once + 1) * self.at_once)
        later = grower.grow(have, until)
        later = dataclasses.replace(later, bias=(later.bias - np.array(objective.kind.base)).astype(np.float32))
        self.forest, kept = self.forest.then(later), grower.iterations_kept(self.columns["validation"].rows)
        by_split = {name: answers_of(later, split.matrix) for name, split in self.columns.items()}
        for _ in range(later.iterations):
            for name, answers in by_split.items():
                self.answers[name] += next(answers)
            self._note_iteration(kept)
            if self.is_over:
                break
        self.forest = self.forest.first(self.state.epochs_run)

    def _note_iteration(self, kept: float) -> None:
        """Measure both splits, and keep what came of it.

        Args:
            kept: Up to here the newest iteration is the best one, whatever the validation split says.

        Raises:
            Diverged: The loss is not a number.
        """
        state, objective = self.state, self.objective
        state.epochs_run += 1
        state.step = state.epochs_run
        numbers = {"loss": self._loss("train")}
        held_out = self.columns["validation"]
        if held_out.rows:
            scores = self._scores("validation")
            weights = held_out.weights
            targets = held_out.targets if weights is None else np.stack([held_out.targets, weights], axis=1)
            numbers |= objective.epoch_metrics(targets, scores, self.job.request.trial_metric)
        value = numbers.get("val_loss", numbers["loss"])
        if not math.isfinite(value) or not math.isfinite(numbers["loss"]):
            where = f"tree {state.step}"
            raise Diverged(where, f"loss is {value}", "a finite number", "Lower hyperparameters.learning_rate")
        for name, number in numbers.items():
            state.history.setdefault(name, []).append(float(number))
        if value < state.best_value or state.epochs_run <= kept:
            state.best_value, state.best_epoch, state.waited = value, state.epochs_run, 0
        else:
            state.waited += 1

    def _loss(self, name: str) -> float:
        split = self.columns[name]
        weights = np.ones(split.rows) if split.weights is None else split.weights
        return float(self.objective.kind.epoch_metrics(split.targets, self._scores(name), weights, ())["loss"] or 0.0)

    def _scores(self, name: str) -> npt.NDArray[np.float64]:
        logits = linked(self.forest.link, tf.constant(self.answers[name]), self.state.epochs_run) + self.forest.bias
        scores: npt.NDArray[np.float64] = self.objective.epoch_scores(logits).numpy().astype(np.float64)
        return scores

    @property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self.job.request.checkpoint_uri, self.job.storage)

    def _save(self, folder_path: Path) -> None:
        """Write the checkpoint of the iterations until now."""
        with tempfile.TemporaryDirectory() as folder:
            _write_forest(self.forest, Path(folder) / _FOREST)
            _keep_newest(folder_path)
            with tarfile.open(Path(folder) / _FOLDER, "w") as packed:
                for path in sorted(folder_path.iterdir()):
                    if path.is_dir():
                        packed.add(path, path.name)
            self._checkpoints.store_step(self.state.step, Path(folder), dataclasses.asdict(self.state), set())

    def _tell(self, before: int, board: TensorBoard, trial: Trial | None) -> None:
        """Log a line, and hand on each iteration's numbers to TensorBoard and to the study."""
        history, most = self.state.history, self.job.request.training.epochs
        for epoch in range(before, self.state.epochs_run):
            board.write_numbers(epoch, {name: values[epoch] for name, values in history.items()})
        board.upload()
        if trial:
            trial.measurements.report_all(history)
        numbers = " ".join(f"{name}={values[-1]:.4f}" for name, values in sorted(history.items()))
        LOGGER.info("tree %s/%s %s best %s", self.state.epochs_run, most, numbers, self.state.best_epoch)


def answers_of(forest: Forest, matrix: npt.NDArray[np.float32]) -> Iterator[npt.NDArray[np.float32]]:
    """Yield what each iteration adds to the logits. [n, columns] → [n, outputs] each."""
    walk, value = Walk.of(forest, lambda _, values: tf.constant(values)), forest.value
    rows, outputs = len(matrix), len(forest.bias)
    at_once = max(1, _WALKED_CELLS // max(1, rows * forest.roots.shape[1]))
    for first in range(0, forest.iterations, at_once):
        roots = forest.roots[first : first + at_once]
        answers = np.empty((len(roots), rows, outputs), np.float32)
        for start in range(0, rows, _WALKED_ROWS):
            block = tf.constant(matrix[start : start + _WALKED_ROWS])
            leaves = walk.leaves(block, tf.tile(roots.reshape(1, -1), [len(block), 1])).numpy()  # [B, trees]
            found = value[leaves].reshape(len(block), len(roots), outputs)
            answers[:, start : start + _WALKED_ROWS] = found.transpose(1, 0, 2)
        yield from answers


def _require_growable(job: TrainingJob) -> None:
    """Check that nothing is asked that only networks have.

    Raises:
        RequestError: Something is.
    """
    request, training = job.request, job.request.training
    require_yggdrasil()
    asked = {
        "auxiliary_labels": bool(request.auxiliary_labels),
        # ydf 0.16.1 begins with the greatest label in place of the weighted median.
        "weight, beside label.loss mae,": _is_weighted_median(request),
        "training.cluster, several machines": not job.replica.is_alone,
        "training.strategy": training.strategy not in ("auto", "one_device"),
        "training.loop": training.loop != "fit",
        "training.precision": training.precision != "float32",
        "training.clip_norm": training.clip_norm is not None,
        "training.warmup_fraction": training.warmup_fraction is not None,
        "training.export_lite": bool(training.export_lite),
        "training.callbacks.reduce_lr": training.callbacks.reduce_lr is not None,
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise RequestError(
                name,
                f"is given, and architecture {training.model!r} grows trees",
                "nothing of it",
                "Remove it, or choose another architecture",
            )


def _is_weighted_median(request: TrainRequest) -> bool:
    return request.weight is not None and request.label.kind == "regression" and request.label.loss == "mae"


def _require_room(job: TrainingJob, examples: Examples) -> None:
    """Check that the examples fit.

    Raises:
        RequestError: They do not, a category has too many ids, or a feature is a bag.
    """
    shape = examples.preprocessing.shape
    for bag in shape.bags:
        raise RequestError(
            f"feature {bag.name!r}",
            f"kind bag, and architecture {job.request.training.model!r} grows trees",
            "numbers and categories",
            "Remove it, or choose another architecture",
        )
    for category in shape.categories:
        if category.ids > MOST_IDS:
            raise RequestError(
                f"feature {category.name!r}",
                f"{category.ids} different ids, and architecture {job.request.training.model!r} grows trees",
                f"at most {MOST_IDS}",
                "Lower hash_buckets, or buckets of the cross",
            )
    columns = shape.numbers + len(shape.categories)
    rows = examples.train_rows + examples.validation_rows
    needed, there = rows * columns * _BYTES_PER_CELL, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise RequestError(
            "training.cluster",
            f"{there / 2**30:.1f} GB of memory, and {rows} rows of {columns} columns take {needed / 2**30:.1f} GB",
            "a machine that holds the examples: trees are grown from all of them at once",
            "Take a machine with more memory, or fewer rows",
        )


def _keep_newest(folder_path: Path) -> None:
    """Delete what Yggdrasil would only need to go on from earlier iterations."""
    numbered = {int(path.name.removeprefix("model_")): path for path in folder_path.glob("model_*")}
    for number, path in numbered.items():
        if number != max(numbered):
            shutil.rmtree(path)
            (folder_path / "snapshot" / f"snapshot_{number}").unlink(missing_ok=True)


def _write_forest(forest: Forest, path: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, **vars(forest))
    path.write_bytes(buffer.getvalue())


def _read_forest(path: Path) -> Forest:
    with np.load(path, allow_pickle=False) as stored:
        values: dict[str, Any] = {name: stored[name] for name in stored.files}
    return Forest(**{**values, "depth": int(values["depth"]), "link": str(values["link"])})

"""The training job, top to bottom: examples, model, epochs, stored model, report.

Comes in: a training job and a source of examples. Goes out: a SavedModel, checkpoints, TensorBoard logs, and
`report.json`, which is written last: a training whose report is there is finished and does not run again.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from trainer.cluster.preemption import wait_for_report
from trainer.cluster.replica import Replica
from trainer.cluster.strategy import Strategy, choose_strategy
from trainer.contract.documents import Report
from trainer.errors import Diverged
from trainer.input.source import Source
from trainer.objective.outputs import objective_of
from trainer.training.batches import plan_steps
from trainer.training.callbacks import EpochReport
from trainer.training.checkpoints import TrainingState, find_finished
from trainer.training.epochs import LEAST_STEPS, Fit
from trainer.training.examples import read_examples
from trainer.training.keras_internals import seed_layers
from trainer.training.model import make_model
from trainer.training.recipe import Recipe
from trainer.training.result import store_model, write_report
from trainer.training.steps import require_loop
from trainer.training.training_job import TrainingJob
from trainer.training.trees import train_trees
from trainer.training.trial import Trial
from trainer.training.warm_start import begin_with_champion


def train(job: TrainingJob, source: Source) -> Report | None:
    """Train, store the best model, and write the report; the chief alone does the last two.

    Args:
        job: What to train, and as which replica.
        source: Opens the splits train and validation.

    Returns:
        The report; None from replicas that are not the chief, when the chief has written it, and from a trial.

    Raises:
        Preempted: SIGTERM came; the state is saved.
        PeerLost: Another replica goes away; the state is saved.
        RequestError: An unknown architecture, hyperparameter or feature, or examples that are not as the documents say.
    """
    request, training = job.request, job.request.training
    recipe = Recipe.from_training(
        training, objective_of(request.label, request.auxiliary_labels, job.statistics, request.weight)
    )
    _make_repeatable(request.seed)
    if recipe.architecture.grows:
        return train_trees(job, source, recipe)
    finished = find_finished(request, job.storage)
    if finished and not job.replica.is_chief:
        wait_for_report(job.storage, request)
        return None
    strategy = _join_cluster(job, finished)
    examples = read_examples(job, source, recipe, strategy)
    steps = plan_steps(training, job.manifest.splits["train"], strategy, job.share)
    model, rate = make_model(recipe, examples.preprocessing.shape, steps, strategy)
    initial = begin_with_champion(job, recipe, model, examples.preprocessing)
    job.clock.part("model")
    fit = Fit(
        job=job,
        model=model,
        rate=rate,
        examples=examples,
        steps=steps,
        strategy=strategy,
        kept_steps=0 if initial and initial.taken else LEAST_STEPS,
    )
    if trial := Trial.of(request, job.storage):
        _report_trial(trial, fit, finished, vars(recipe.hyperparameters))
        return None
    state, resumed = fit.train_epochs(finished)
    trained_s = job.clock.lap("train")
    stored = store_model(fit, recipe)
    return write_report(fit, recipe, stored, state, resumed, trained_s, initial) if stored else None


def _join_cluster(job: TrainingJob, finished: TrainingState | None) -> Strategy:
    """Return the strategy; one device is enough where the training only has to be stored."""
    if finished:
        return choose_strategy(Replica(), "one_device")
    strategy = choose_strategy(job.replica, job.request.training.strategy)
    require_loop(job.request.training, strategy)
    return strategy


def _report_trial(trial: Trial, fit: Fit, finished: TrainingState | None, hyperparameters: dict[str, Any]) -> None:
    """Take a trial's epochs and report them, as the chief; its weights are not kept.

    One that diverges at once has nothing to report, and ends well: the service counts it as infeasible, not as failed.
    That holds in all replicas: one that failed would fail the job.

    Raises:
        Diverged: It had reported before, and must not be judged by that.
    """
    listener = EpochReport(trial.measurements, reports=fit.strategy.is_chief)
    history: dict[str, list[float]] = {}
    try:
        state, _ = dataclasses.replace(fit, listeners=(listener,)).train_epochs(finished)
    except Diverged as error:
        if listener.has_measured:
            raise
        message = str(error)
    else:
        history, message = state.history, f"{state.epochs_run} epochs, best {state.best_epoch}"
    if fit.strategy.is_chief:
        trial.finish(hyperparameters, history, message)
    else:
        wait_for_report(fit.job.storage, fit.job.request)


def _make_repeatable(seed: int) -> None:
    """Draw all that is random from one seed, and compute the same way each time."""
    seed_layers(seed)
    tf.config.experimental.enable_op_determinism()

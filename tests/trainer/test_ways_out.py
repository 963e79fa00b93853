"""What the messages of training and judging advise, done as they say: then it works.

Of the exporter's and the readers': export/test_ways_out.py, input/test_ways_out.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from tests.support.ways_out import ROOT, ways_out
from trainer.cluster.replica import Replica
from trainer.cluster.strategy import Strategy, choose_strategy
from trainer.contract.documents import (
    Column,
    Feature,
    Manifest,
    Training,
    WeightedLabel,
)
from trainer.contract.reading import parse_document
from trainer.contract.statistics import statistics_of
from trainer.errors import NEW_ATTEMPT, TrainerError
from trainer.evaluation.leakage import require_no_leakage
from trainer.features.preprocessing import FeatureColumns, Preprocessing
from trainer.models.pretrained import fetch_file
from trainer.models.registry import find_architecture, read_hyperparameters
from trainer.objective.labels import label_type, require_labels
from trainer.objective.outputs import objective_of
from trainer.task import main
from trainer.training.steps import require_loop
from trainer.training.trial import place

NUMBER = make_feature(name="distance", kind="numeric")
PHOTO = make_feature(name="photo", kind="image", height=4, width=4, channels=1)
STEPS = make_feature(name="steps", kind="sequence", of="numeric", length=3)
LABEL = make_label(name="late", kind="binary")
GATE = make_label(name="gate", kind="multiclass", classes=3)
THREE = objective_of(LABEL, [WeightedLabel(label=GATE, weight=1.0)])
COUNTED = make_statistics(
    distance=make_feature_statistics(kind="numeric", nulls=0),
    steps=make_feature_statistics(kind="sequence", nulls=0),
)


@dataclass(frozen=True)
class Case:
    """An input that is refused, words of the message's way out, and each input changed as it says.

    `do` gets an exported run too.
    """

    do: Callable[[Any, Any], object]
    wrong: Any
    words: str
    right: tuple[Any, ...]


def with_label(run: Any, given: tuple[str, str]) -> object:
    """A label by name, and the type of the column `late`."""
    schema = (Column(name="late", type=given[1], mode="NULLABLE"),)
    return label_type(dataclasses.replace(LABEL, name=given[0]), dataclasses.replace(run.manifest(), columns=schema))


def looped(_: Any, given: tuple[str, int, str]) -> object:
    """A loop, parts of a batch, a strategy."""
    training = Training(
        model="dense",
        epochs=1,
        batch_size=8,
        hyperparameters={},
        early_stopping_patience=0,
        loop=given[0],
        accumulate_steps=given[1],
    )
    return require_loop(training, Strategy(name=given[2], scope=None))


def fitting(_: Any, given: tuple[str, *tuple[Feature, ...]]) -> object:
    """An architecture by name, and features."""
    shape = Preprocessing(given[1:], COUNTED).shape
    return find_architecture(given[0]).require_inputs(given[0], shape)


def given_all(_: Any, hyperparameters: dict[str, str]) -> object:
    """Hyperparameters of `module`, which reads images."""
    module = find_architecture("module")
    return module.require_given(read_hyperparameters(module, hyperparameters), Preprocessing([PHOTO], COUNTED).shape)


def unseen(run: Any, splits: tuple[str, ...]) -> object:
    """A champion that was trained on files of some splits."""
    manifest = run.manifest()
    files = [dataclasses.asdict(file) for name in splits for file in manifest.splits[name].files[:1]]
    request = run.evaluate_request("/m", "/c", prove_unseen=files)
    return require_no_leakage(request, manifest.splits["test"], run.storage, compared=True)


CASES = {
    "reading.py, kind": Case(
        lambda run, name: parse_document(Manifest, (run.path / name).read_bytes(), name),
        "statistics.json",
        "Pass the right address",
        ("manifest.json",),
    ),
    "labels.py, type": Case(with_label, ("late", "STRING"), "CAST it in the query", (("late", "INTEGER"),)),
    "labels.py, name": Case(with_label, ("delayed", "INTEGER"), "Add it to the query", (("late", "INTEGER"),)),
    "labels.py, values": Case(
        lambda _, values: require_labels(LABEL, np.array(values)), [0, 1, 2], "Filter them in the query", ([0, 1],)
    ),
    "outputs.py, logits": Case(
        lambda _, logits: THREE.parts(np.zeros([2, logits])),
        1,
        "Let the architecture's build give as many logits as it is asked for, or remove auxiliary_labels",
        (4,),
    ),
    "outputs.py, values": Case(
        lambda _, values: THREE.require_labels(np.array([[0.0, value] for value in values]), ""),
        [0, 3],
        "Make them NULL in the query",
        ([0, np.nan],),
    ),
    "steps.py, servers": Case(
        looped,
        ("custom", 1, "parameter_server"),
        "Set training.loop to fit, or remove parameter_servers",
        (("fit", 1, "parameter_server"), ("custom", 1, "one_device")),
    ),
    "steps.py, parts": Case(
        looped, ("fit", 2, "one_device"), "Set training.loop to custom", (("custom", 2, "mirrored"),)
    ),
    "statistics.py": Case(
        lambda _, found: statistics_of(NUMBER, found),
        make_statistics(),
        "Delete statistics.json, then clear the run's check_data task and what follows it",
        (COUNTED,),
    ),
    "strategy.py": Case(
        lambda _, given: choose_strategy(*given),
        (Replica(), "multi_worker"),
        "Change training.cluster, or set training.strategy to auto",
        ((Replica(), "auto"),),
    ),
    "strategy.py, cluster": Case(
        lambda _, given: choose_strategy(*given),
        (Replica(count=2), "one_device"),
        "Change training.cluster, or set training.strategy to auto",
        ((Replica(), "one_device"),),
    ),
    "trial.py": Case(
        lambda run, environ: place(run.train_request(trial_metric="val_auc"), {}, environ),
        {},
        "Train without trial_metric, or set CLOUD_ML_TRIAL_ID=1 to try a trial by hand",
        ({"CLOUD_ML_TRIAL_ID": "1"},),
    ),
    "leakage.py": Case(
        unseen, ("train", "test"), "look in the query for an event time that changes", (("train", "validation"),)
    ),
    "preprocessing.py": Case(
        lambda run, name: FeatureColumns([make_feature(name=name, kind="numeric")], run.manifest().columns),
        "carrier",
        "Derive it in the query",
        ("distance",),
    ),
    "hyperparameters.py": Case(
        lambda _, name: read_hyperparameters(find_architecture("dense"), {name: 0.1}),
        "learning_rat",
        "Did you mean 'learning_rate'?",
        ("learning_rate",),
    ),
    "pretrained.py": Case(
        lambda run, name: fetch_file(str(run.path / name)),
        "manifest.jsn",
        "Correct the path in training.hyperparameters",
        ("manifest.json",),
    ),
    "registry.py, model": Case(
        fitting,
        ("dense", PHOTO),
        "Set training.model to cnn or module or transfer, or change the features",
        (("cnn", PHOTO), ("module", PHOTO), ("transfer", PHOTO), ("dense", NUMBER)),
    ),
    "registry.py, features": Case(fitting, ("cnn", PHOTO, STEPS), "Change the features", (("cnn", PHOTO),)),
    "registry.py, path": Case(given_all, {}, "Set training.hyperparameters.module", ({"module": "gs://b/module"},)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_way_out_is_one(exported, name: str) -> None:
    """Refused; and taken when it is changed as the message says."""
    case = CASES[name]
    with pytest.raises(TrainerError) as refused:
        case.do(exported, case.wrong)
    assert case.words in str(refused.value)
    for right in case.right:
        case.do(exported, right)


def test_the_command_line_is_corrected(run, capsys) -> None:
    """`--help` lists all; hyperparameters go to `train`, which goes on to the request."""

    def said(*arguments: str) -> str:
        assert main(arguments) == 2
        return capsys.readouterr().err

    assert "--help lists all" in said("train")
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "--request" in capsys.readouterr().out
    assert "Hyperparameters are of train" in said("evaluate", "--request", run.uri("none.json"), "--dropout=1")
    assert "none.json: there is no such document" in said("train", "--request", run.uri("none.json"), "--dropout=1")


BESIDE = {
    "backend.py, size": "Look who wrote it, delete it, and clear the task that should have written it",
    "checkpoints.py, any": "self.checkpoints.way_out",
    "reading.py, schemas": "Build the image or the source distribution again",
    "disk.py, folder": "Mend it and start again",
    "job.py, golden": ", then clear the run's export task and what follows it",
    "job.py, mismatch": NEW_ATTEMPT,
    "scoring.py, digest": f"{NEW_ATTEMPT}: it trains in a folder of its own",
    # training/test_job.py: a champion whose files are back
    "scoring.py, champion": "Bring a champion's files back as they were, or go back by the DAG rollback",
    "scoring.py, gone": "Clear the train task of its run",
    "step_control.py, diverged": "Lower learning_rate, set clip_norm, or look for infinite values in the features. ",
    "stored_module.py, tuned": "Set fine_tune_from to 1: never",
    "task.py, flag": "Hyperparameters are of train",
    "task.py, usage": "--help lists all",
    "leakage.py, file": "Restore the file, or take the alias champion from that version",
}
"""Words of the ways out that are followed in test_ways_out_of_files.py, or above."""

ELSEWHERE = {
    # training/test_trees.py follows each: what is refused is changed so, and trained to the end
    "trees.py, kinds": "Remove it, or choose another architecture",
    "trees.py, classes": "Widen data.window_days, or look at the query",
    "trees.py, ids": "Lower hash_buckets, or buckets of the cross",
    "yggdrasil.py, image": "Remove training.runtime.framework, or put ydf into the image",
    "trees.py, room": "Take a machine with more memory, or fewer rows",
    "trees.py, loss": "Lower hyperparameters.learning_rate",
    "yggdrasil.py, loss": "Change label.loss, or choose another architecture",
    "numbers.py, logarithm": "Remove the transform",  # features/test_numbers.py: without it, or moved up
    "results.py, trial": "Delete it",  # training/test_trial.py: then the trial runs
    "gcs.py, bucket": "Create it or mend the address",  # storage/test_gcs.py: a missing bucket
    "gcs.py, answer": "Start again",  # test_task.py, export/test_faults.py: the next try goes on
    # tools/test_tfrecords.py: what is refused and corrected
    "tfrecords.py, source": "Correct the address",
    "tfrecords.py, target": "Name another folder, or empty it",
    "tfrecords.py, gone": "Start again",
    "tfrecords.py, record": "Write that file anew, or name the others",
    "example_columns.py, mismatch": "Say in SCHEMA what every example has, as name:TYPE of one value",
    "example_columns.py, said": "Correct it",
    "example_columns.py, nothing": "Name other files",
    "example_columns.py, kinds": "Write them anew",
    "example_columns.py, names": "Name one of them in SCHEMA",
    "package.py, setuptools": "Run it in the trainer's environment",  # tools/test_package.py, which runs there
    "tfjs.py, environment": "Use make tfjs",  # tools/test_tfjs.py: in that environment it converts
    "model.py, lite": "Set training.export_lite: [float16] and train again",  # tools/test_tfjs.py: so it is converted
    # training/test_interruption.py: SIGTERM
    "step_control.py, preempted": "The state is saved; started again, it goes on there",
    # objective/test_regression.py: statistics of another label
    "regression.py, statistics": "Delete statistics.json, then clear the run's check_data task and what follows it",
    # evaluation/test_scores.py: every split has its scores
    "scores.py, contract": "delete the document beside it, clear the task",
    # test_packages.py: the same wheel in its place, with its digest, for any Python, with what it needs
    "packages/__init__.py, wheel": "Upload it, or correct the address",
    "packages/__init__.py, digest": "Someone replaced the file, or the digest is old: look which",
    "packages/__init__.py, python": "Upload one that does",
    "packages/__init__.py, index": "Put the wheel into a bucket instead",
    "packages/__init__.py, name": "Correct it, or put a wheel into a bucket",
    "packages/__init__.py, pip": "Install it in the image",
    "packages/__init__.py, import": "Packages are installed without what they depend on: name what is missing too",
    # storage/test_gcs.py: leads elsewhere
    "storage/__init__.py, name": "Delete the object: nothing of this system writes",
    # export/test_faults.py: a full disk
    "storage/__init__.py, room": "Make room and start again: what is finished is kept",
    # test_full_disks.py: small disks, then larger ones
    "full_disk.py, disk": "Give the machines a larger disk",
    # training/test_warm_start.py: its files are back, or the version is not named
    "warm_start.py, files": "Bring its files back as they were, or take the alias champion from it",
    "warm_start.py, architecture": "Remove training.initial",
    # models/test_pretrained.py: each backbone is told by its file, and stored whole with it
    "transfer.py, backbone": "Set the hyperparameter backbone to ",
    "transfer.py, weights": "Correct the hyperparameter weights",  # models/test_pretrained.py: weights, right and wrong
}


ROOMS = [
    path.name
    for path in (ROOT / "trainer").iterdir()
    if (path / "__init__.py").exists() and path.name not in ("bigquery", "export", "input")
]


def test_every_way_out_is_followed() -> None:
    """Here, or in the test that stands beside it."""
    followed = [(name.partition(",")[0], case.words) for name, case in CASES.items()]
    followed += [(name.partition(",")[0], words) for name, words in (BESIDE | ELSEWHERE).items()]
    for where, texts in ways_out("trainer/*.py", *(f"trainer/{room}/**/*.py" for room in ROOMS)):
        words = [words for file, words in followed if file == where.partition(":")[0]]
        assert any(text in one or one in text for text in texts for one in words), (where, texts)

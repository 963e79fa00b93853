"""`python -m trainer.task {export,train,evaluate} --request URI`: one command per job of a run.

    export                    rows of the run table → TFRecord shards and the manifest
    train                     shards → SavedModel and report; also --job-dir URI and --<hyperparameter>=VALUE,
                              of a trial --prior=NUMBER
    evaluate                  shards and models → evaluation

Exit codes: 0 done; 2 the request or the data is wrong, trying again cannot help; 143 the machine was taken away
(SIGTERM) and the training's state is saved; 1 anything else. The last line of standard error says what happened.
TensorFlow is imported late, while shards are already being fetched.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainer.cluster.preemption import end_with_the_job, start_again
from trainer.cluster.replica import Replica, find_replica, uses_servers
from trainer.cluster.sharding import training_share
from trainer.contract.documents import EvaluateRequest, ExportRequest, Manifest, Report, TrainRequest
from trainer.contract.reading import read
from trainer.contract.results import is_recorded
from trainer.errors import PeerLost, RequestError, TrainerError
from trainer.input import open_source, require_input
from trainer.storage import Storage, join
from trainer.telemetry.usage import describe_usage
from trainer.training.trial import PRIOR, Trial, place

STARTED = time.monotonic()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a job's log is read while it runs
    try:
        command, options, hyperparameters = _parse(sys.argv[1:] if arguments is None else arguments)
        _COMMANDS[command](options, hyperparameters)
    except PeerLost as error:
        return start_again(os.environ, error)
    except TrainerError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the edge of the process: whatever it is must be said in the last line
        traceback.print_exc()
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        return 1
    return 0


def _parse(arguments: Sequence[str]) -> tuple[str, argparse.Namespace, dict[str, str]]:
    parser = _Parser(
        prog="python -m trainer.task",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=sorted(_COMMANDS))
    parser.add_argument("--request", required=True, help="address of the request document: gs://… or a path")
    parser.add_argument(
        "--job-dir", "--job_dir", help="base of model/, checkpoints/ and logs/ instead of the request's addresses"
    )
    parser.add_argument("--prior", help="of a trial: number of the request's prior to take as hyperparameters")
    options, rest = parser.parse_known_args(list(arguments))
    if not options.request.startswith("gs://"):
        options.request = str(Path(options.request).absolute())
    hyperparameters = {} if options.prior is None else {PRIOR: options.prior}
    for argument in rest:
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or not equals:
            raise RequestError(f"flag {argument!r}", "cannot be read", "--<hyperparameter>=VALUE")
        hyperparameters[name.replace("-", "_")] = value
    if hyperparameters and options.command != "train":
        raise RequestError(
            f"flag --{next(iter(hyperparameters))}",
            f"is not one of {options.command}",
            "--request",
            "Hyperparameters are of train",
        )
    return options.command, options, hyperparameters


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # raises instead of exiting
        raise RequestError("command line", message, "export, train or evaluate, and --request URI", "--help lists all")


def _export(options: argparse.Namespace, _hyperparameters: Mapping[str, str]) -> None:
    from trainer.export.job import SpanExport
    from trainer.export.memory import bound_allocators
    from trainer.export.reading.reader import BigQueryReader

    bound_allocators()
    storage = Storage()
    request = read(ExportRequest, options.request, storage)
    if storage.exists(request.manifest_uri):
        print(f"export: {request.manifest_uri} is there already")
        return
    reader = BigQueryReader([column.name for column in request.columns])
    SpanExport(request, storage, reader, find_replica(os.environ), _say).run()
    _say(describe_usage("export"))


def _train(options: argparse.Namespace, hyperparameters: Mapping[str, str]) -> None:
    storage = Storage()
    request = _overridden(read(TrainRequest, options.request, storage), options.job_dir, hyperparameters)
    if _is_done(request, storage):
        return
    replica = find_replica(os.environ)
    if not replica.is_chief:
        end_with_the_job(storage, request, lambda: _say(describe_usage("train")))
    _before_tensorflow(also_errors=request.training.input == "bigquery")
    if uses_servers(replica, request.training.strategy) and not (replica.is_chief or replica.is_evaluator):
        from trainer.cluster.parameter_server import serve

        serve(_say)
        return
    report = _take_part(request, replica, storage)
    if report is not None:
        numbers = ", ".join(f"{name} {value:.4f}" for name, value in report.metrics.items() if value is not None)
        print(f"train: best epoch {report.best_epoch} of {report.epochs_run}: {numbers}")
        print(f"train: {report.seconds.total:.1f} s; model {report.model_uri}")
    if replica.is_chief:
        _say(describe_usage("train"))


def _take_part(request: TrainRequest, replica: Replica, storage: Storage) -> Report | None:
    """Do this replica's part; gives the report of what the chief trained."""
    from trainer.contract.documents import Statistics

    manifest = read(Manifest, request.manifest_uri, storage)
    statistics = read(Statistics, request.statistics_uri, storage)
    wanted = ("validation",) if replica.is_evaluator else ("train", "validation")
    splits = {name: manifest.splits[name] for name in wanted}
    require_input(request.training.input, manifest)
    share = training_share(request.training, manifest.splits["train"].rows, replica)
    in_place = {"train"} if uses_servers(replica, request.training.strategy) else ()
    with open_source(manifest, splits, storage, share, in_place=in_place) as source:
        if replica.is_evaluator:
            from trainer.training.evaluator import watch

            watch(request, manifest, statistics, source, storage, say=_say)
            return None
        from trainer.cluster.strategy import naming_lost_peers
        from trainer.training.job import train

        with naming_lost_peers(replica.is_alone):
            return train(
                request, manifest, statistics, source, storage, replica=replica, share=share, started=STARTED, say=_say
            )


def _is_done(request: TrainRequest, storage: Storage) -> bool:
    """Tell whether an earlier process came to the end."""
    trial = Trial.of(request, storage)
    done = trial.is_done() if trial else is_recorded(request, storage)
    if done:
        print(f"train: {request.report_uri} is there already")
    return done


def _evaluate(options: argparse.Namespace, _hyperparameters: Mapping[str, str]) -> None:
    storage = Storage()
    request = read(EvaluateRequest, options.request, storage)
    if storage.exists(request.evaluation_uri):
        print(f"evaluate: {request.evaluation_uri} is there already")
        return
    manifest = read(Manifest, request.manifest_uri, storage)
    wanted = {request.split, *(["golden"] if request.golden else [])}
    splits = {name: split for name, split in manifest.splits.items() if name in wanted}
    with open_source(manifest, splits, storage) as source:
        _before_tensorflow()
        from trainer.evaluation.job import evaluate

        evaluate(request, manifest, source, storage, _say)
    print(f"evaluate: wrote {request.evaluation_uri} in {time.monotonic() - STARTED:.1f} s")
    _say(describe_usage("evaluate"))


_COMMANDS: dict[str, Callable[[argparse.Namespace, Mapping[str, str]], None]] = {
    "export": _export,
    "train": _train,
    "evaluate": _evaluate,
}


def _overridden(request: TrainRequest, job_dir: str | None, hyperparameters: Mapping[str, str]) -> TrainRequest:
    """Lay the command line over the request."""
    if job_dir:
        base = job_dir if job_dir.startswith("gs://") else str(Path(job_dir).absolute())
        request = dataclasses.replace(
            request,
            model_uri=join(base, "model"),
            checkpoint_uri=join(base, "checkpoints"),
            tensorboard_uri=join(base, "logs"),
        )
    if request.trial_metric:
        request, hyperparameters = place(request, hyperparameters, os.environ)
    merged = {**request.training.hyperparameters, **hyperparameters}
    return dataclasses.replace(request, training=dataclasses.replace(request.training, hyperparameters=merged))


def _before_tensorflow(*, also_errors: bool = False) -> None:
    """Set what TensorFlow reads when it is imported.

    It is quiet: it warns at the end of every data set. Of tensorflow-io's data sets it says twice that they lack a
    method, as an error; what is raised stays. It takes `tf_keras` for its Keras, and does not import Keras 3 beside it:
    0.3 s.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3" if also_errors else "2")
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m trainer.task {export,train,score,evaluate,separate} --request URI`: one command per job of a run.

    export                    rows of the run table → TFRecord shards and the manifest
    train                     shards → SavedModel and report; also --job-dir URI and --<hyperparameter>=VALUE,
                              of a trial --prior=NUMBER
    score                     shards and models → scores per example
    evaluate                  shards, models or their scores → evaluation
    separate                  requests and training examples of a table → how well they can be told apart
    chain                     several of these, each when its request is there: see trainer.cluster.chain for its flags

Exit codes: 0 done; 2 the request or the data is wrong, or the disk is full: trying again cannot help; 143 the machine
was taken away (SIGTERM) and the training's state is saved; 1 anything else. The last line of standard error says what
happened; as every line it is JSON for Cloud Logging, or text on a terminal.
TensorFlow is imported late, while shards are already being fetched.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from trainer.cluster.chain import Chain, parse_chain
from trainer.cluster.preemption import end_with_the_job, start_again
from trainer.cluster.replica import find_replica, uses_servers
from trainer.contract.documents import (
    EvaluateRequest,
    ExportRequest,
    Manifest,
    ManifestSplit,
    MultivariateRequest,
    ScoreRequest,
    TrainRequest,
)
from trainer.contract.reading import read_document, read_request
from trainer.contract.results import JobRequest, is_done, require_own_result, result_uri
from trainer.errors import DiskFull, PeerLost, RequestError, TrainerError
from trainer.evaluation.splits import chosen_splits
from trainer.input import open_source
from trainer.packages import import_packages, install_packages
from trainer.storage import Storage, join_uri
from trainer.storage.full_disk import full_disk
from trainer.telemetry.logs import log_to_streams
from trainer.telemetry.tensorflow_import import import_tensorflow
from trainer.telemetry.usage import Clock, describe_usage
from trainer.training.training_job import TrainingJob
from trainer.training.trial import PRIOR, Trial, place

STARTED = time.monotonic()
LOGGER = logging.getLogger("trainer.task")  # also where this module is the program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with log_to_streams():
        try:
            if given[:1] == ["chain"]:
                return Chain(*parse_chain(given[1:]), Storage()).run()
            command, options, hyperparameters = _parse_arguments(given)
            _COMMANDS[command](options, hyperparameters)
        except PeerLost as error:
            return start_again(os.environ, error)
        except TrainerError as error:
            return _end(_mended_by_nothing(given, error) or error)
        except Exception as error:  # the edge of the process: whatever it is must stand in the log
            LOGGER.exception("%s: %s", type(error).__name__, " ".join(str(error).split()))
            return _end(full) if (full := _mended_by_nothing(given, error)) else 1
    return 0


def _mended_by_nothing(given: Sequence[str], error: Exception) -> DiskFull | None:
    """Return the full disk behind an error; None: there is none, or an export goes on at its first missing shard."""
    return None if given[:1] == ["export"] else full_disk(error)


def _end(error: TrainerError) -> int:
    LOGGER.error("%s: %s", type(error).__name__, error)
    return error.exit_code


def _parse_arguments(arguments: Sequence[str]) -> tuple[str, argparse.Namespace, dict[str, str]]:
    parser = _Parser(
        prog="python -m trainer.task",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=sorted(_COMMANDS))
    parser.add_argument("--request", required=True, help="address of the request document: gs://… or a path")
    parser.add_argument(
        "--job-dir",
        "--job_dir",
        help="base of model/, checkpoints/, logs/ and report.json instead of the request's addresses",
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
        raise RequestError(
            "command line", message, "export, train, score, evaluate or separate, and --request URI", "--help lists all"
        )


def _export(options: argparse.Namespace, _hyperparameters: Mapping[str, str]) -> None:
    from trainer.export.job import SpanExport
    from trainer.export.memory import bound_allocators
    from trainer.export.reading.reader import BigQueryReader

    bound_allocators()
    storage = Storage()
    request, digest = read_request(ExportRequest, options.request, storage)
    if _is_done("export", request, digest, storage):
        return
    reader = BigQueryReader([column.name for column in request.columns])
    SpanExport(request, storage, reader, find_replica(os.environ), request_digest=digest).write_spans()
    LOGGER.info(describe_usage("export"))


def _train(options: argparse.Namespace, hyperparameters: Mapping[str, str]) -> None:
    storage = Storage()
    asked, digest = read_request(TrainRequest, options.request, storage)
    request = _overridden(asked, options.job_dir, hyperparameters)
    as_asked = None if hyperparameters else digest  # of other hyperparameters it is no answer to the request
    if _is_done("train", request, as_asked, storage):
        if trial := Trial.of(request, storage):
            trial.report_again()
        return
    install_packages(request.training.packages, storage)
    replica = find_replica(os.environ)
    is_chief = replica.is_chief
    if not is_chief:
        end_with_the_job(storage, request, lambda: LOGGER.info(describe_usage("train")))
    if uses_servers(replica, request.training.strategy) and not (is_chief or replica.is_evaluator):
        import_tensorflow()
        import_packages(request.training.packages)
        from trainer.cluster.parameter_server import serve_variables

        serve_variables()
        return
    _take_part(TrainingJob.from_request(request, storage, replica, Clock(STARTED), as_asked))
    if is_chief:
        LOGGER.info(describe_usage("train"))


def _take_part(job: TrainingJob) -> None:
    """Do this replica's part of a training."""
    with job.open_source() as source:
        import_tensorflow()
        import_packages(job.request.training.packages)
        if job.replica.is_evaluator:
            from trainer.training.evaluator import evaluate_checkpoints

            evaluate_checkpoints(job, source)
            return
        from trainer.cluster.strategy import naming_lost_peers
        from trainer.training.job import train

        job.clock.part("imports")
        with naming_lost_peers(job.replica.is_alone):
            report = train(job, source)
    if report is not None:
        numbers = ", ".join(f"{name} {value:.4f}" for name, value in report.metrics.items() if value is not None)
        LOGGER.info("train: best epoch %s of %s: %s", report.best_epoch, report.epochs_run, numbers)
        LOGGER.info("train: %.1f s; model %s", report.seconds.total, report.model_uri)


def _evaluate(options: argparse.Namespace, _hyperparameters: Mapping[str, str]) -> None:
    storage = Storage()
    request, digest = read_request(EvaluateRequest, options.request, storage)
    if _is_done("evaluate", request, digest, storage):
        return
    install_packages(request.packages, storage)
    manifest = read_document(Manifest, request.manifest_uri, storage)
    with open_source(manifest, chosen_splits(request, manifest), storage) as source:
        import_tensorflow()
        import_packages(request.packages)
        from trainer.evaluation.job import evaluate

        evaluate(request, manifest, source, storage, digest)
    LOGGER.info("evaluate: wrote %s in %.1f s", request.evaluation_uri, time.monotonic() - STARTED)
    LOGGER.info(describe_usage("evaluate"))


def _score(options: argparse.Namespace, _hyperparameters: Mapping[str, str]) -> None:
    storage = Storage()
    request, digest = read_request(ScoreRequest, options.request, storage)
    if _is_done("score", request, digest, storage):
        return
    manifest = read_document(Manifest, request.manifest_uri, storage)
    splits: dict[str, ManifestSplit] = {
        name: manifest.splits[name] for name in request.splits if name in manifest.splits
    }
    with open_source(manifest, splits, storage) as source:
        import_tensorflow()
        from trainer.evaluation.score_job import score_models

        score_models(request, manifest, source, storage, digest)
    LOGGER.info(describe_usage("score"))


def _separate(options: argparse.Namespace, _hyperparameters: Mapping[str, str]) -> None:
    storage = Storage()
    request, digest = read_request(MultivariateRequest, options.request, storage)
    if _is_done("separate", request, digest, storage):
        return
    from trainer.traffic.job import separate_traffic

    separate_traffic(request, storage, request_digest=digest)
    LOGGER.info(describe_usage("separate"))


def _is_done(command: str, request: JobRequest, request_digest: str | None, storage: Storage) -> bool:
    """Return whether an earlier process came to the end; then the log says so.

    Raises:
        ContractError: What it left is not this request's.
    """
    done = is_done(request, storage)
    if done and request_digest:
        require_own_result(request, request_digest, storage)
    if done:
        LOGGER.info("%s: %s is there already", command, result_uri(request))
    return done


_COMMANDS: dict[str, Callable[[argparse.Namespace, Mapping[str, str]], None]] = {
    "export": _export,
    "train": _train,
    "score": _score,
    "evaluate": _evaluate,
    "separate": _separate,
}


def _overridden(request: TrainRequest, job_dir: str | None, hyperparameters: Mapping[str, str]) -> TrainRequest:
    """Lay the command line over the request."""
    if job_dir:
        base = job_dir if job_dir.startswith("gs://") else str(Path(job_dir).absolute())
        request = dataclasses.replace(
            request,
            model_uri=join_uri(base, "model"),
            checkpoint_uri=join_uri(base, "checkpoints"),
            tensorboard_uri=join_uri(base, "logs"),
            report_uri=join_uri(base, "report.json"),
        )
    if request.trial_metric:
        request, hyperparameters = place(request, hyperparameters, os.environ)
    merged = {**request.training.hyperparameters, **hyperparameters}
    return dataclasses.replace(request, training=dataclasses.replace(request.training, hyperparameters=merged))


def _end_process(code: int) -> NoReturn:
    """End, whatever threads of libraries still do: one of some hundred exports stood still in the interpreter's end.

    TensorFlow needs that end, as there replicas wait for each other.
    """
    if "tensorflow" in sys.modules:
        sys.exit(code)
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _end_process(main())

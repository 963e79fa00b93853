"""The command line: what it prints, where it writes, and its exit codes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.job_log import messages
from tests.trainer.conftest import MemoryReader
from trainer.cluster.replica import Replica
from trainer.contract.documents import ExportRequest
from trainer.contract.reading import read_request
from trainer.errors import StorageError
from trainer.export.job import SpanExport
from trainer.storage.full_disk import full_disk
from trainer.task import main

REPOSITORY_PATH = Path(__file__).resolve().parents[2]


def run_task(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainer.task", *arguments],
        cwd=REPOSITORY_PATH,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def sha256(path: str) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_the_process_ends_also_where_a_thread_of_a_library_does_not(tmp_path: Path) -> None:
    """Nobody pays for a machine whose work is done; the last line is written all the same."""
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,)).start()\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run_task("export", "--request", str(tmp_path / "none.json"), PYTHONPATH=path)
    assert done.returncode == 2
    assert "none.json" in done.stderr.splitlines()[-1]


def test_train_and_evaluate_from_the_command_line(exported, tmp_path: Path) -> None:
    request = exported.write("train_cli.json", exported.train_json(out="unused"))
    job = ("train", "--request", request, "--job-dir", str(tmp_path / "job"))
    trained = run_task(*job, "--learning_rate=0.02", "--hidden-units=8-4")
    assert (trained.returncode, trained.stderr) == (0, "")  # TensorFlow, oneDNN and absl say nothing either
    assert "epoch 3/3 loss=" in trained.stdout
    assert "s after the start (imports " in trained.stdout
    report = json.loads((tmp_path / "job/report.json").read_bytes())
    assert report["hyperparameters"]["learning_rate"] == 0.02
    assert report["hyperparameters"]["hidden_units"] == [8, 4]
    assert report["model_uri"] == str(tmp_path / "job/model")
    assert report["request_digest"] is None, "with other hyperparameters it is no answer to the request"
    assert {path.name for path in (tmp_path / "job").iterdir()} == {"model", "checkpoints", "logs", "report.json"}
    assert not Path(exported.uri("unused")).exists()
    assert messages(run_task(*job).stdout) == [f"train: {tmp_path}/job/report.json is there already"]

    wanted = exported.evaluate_json(str(tmp_path / "job/model"), None, evaluation_uri=str(tmp_path / "evaluation.json"))
    request = exported.write("evaluate_cli.json", {**wanted, "scores_uri": str(tmp_path / "scores")})
    evaluated = run_task("evaluate", "--request", request)
    assert (evaluated.returncode, evaluated.stderr) == (0, "")
    evaluation = json.loads((tmp_path / "evaluation.json").read_bytes())
    assert evaluation["rows"] == 400
    scores = json.loads((tmp_path / "scores" / "challenger" / "scores.json").read_bytes())
    assert evaluation["request_digest"] == scores["request_digest"] == sha256(request)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["train"], "--request", id="no-request"),
        pytest.param(["deploy", "--request", "x"], "invalid choice", id="no-such-command"),
        pytest.param(["train", "--request", "/nowhere.json"], "/nowhere.json: there is no such document", id="missing"),
        pytest.param(["export", "--request", "x", "--dropout=1"], "is not one of export", id="not-of-export"),
        pytest.param(["train", "--request", "x", "--dropout"], "'--dropout': cannot be read", id="no-value"),
    ],
)
def test_a_bad_command_line_ends_with_2_and_one_line(arguments: list[str], words: str, capsys) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err.splitlines()[-1]
    assert len(captured.err.splitlines()) == 1


def test_a_hyperparameter_that_does_not_exist_is_refused(exported, capsys) -> None:
    request = exported.write("unknown.json", exported.train_json(out="unknown"))
    assert main(["train", "--request", request, "--learning-rat=1"]) == 2
    assert "Did you mean 'learning_rate'" in capsys.readouterr().err.splitlines()[-1]


def test_a_shard_that_is_gone_ends_the_job_with_its_name(run, capsys) -> None:
    run.export()
    run.write_statistics()
    victim = run.manifest().splits["train"].files[0].uri
    Path(victim).unlink()
    assert main(["train", "--request", run.write("train.json", run.train_json())]) == 2
    assert f"{victim}: is missing" in capsys.readouterr().err.splitlines()[-1]


def test_a_statistics_document_that_is_missing_is_named(run, capsys) -> None:
    run.export()
    assert main(["train", "--request", run.write("train.json", run.train_json())]) == 2
    assert "statistics.json: there is no such document" in capsys.readouterr().err


def test_what_may_pass_by_itself_ends_with_1(run, capsys) -> None:
    run.export()
    run.write_statistics()
    (run.path / "blocked").write_text("a file where a folder must be")
    wanted = run.train_json(
        report_uri=str(run.path / "report.json"), checkpoint_uri=str(run.path / "blocked/checkpoints")
    )
    assert main(["train", "--request", run.write("train.json", wanted)]) == 1
    assert "blocked" in capsys.readouterr().err.splitlines()[-1]


def test_an_export_whose_manifest_is_there_does_nothing(run, capsys) -> None:
    run.export()
    assert main(["export", "--request", run.write("export.json", run.export_json())]) == 0
    assert "is there already" in capsys.readouterr().out


@pytest.mark.parametrize("of_this_request", [True, False])
def test_a_manifest_is_held_to_its_request(run, capsys, of_this_request: bool) -> None:
    request = run.write("export.json", run.export_json(digest_required=True))
    asked, digest = read_request(ExportRequest, request, run.storage)
    exporter = SpanExport(
        asked, run.storage, MemoryReader(run.rows), Replica(), request_digest=digest if of_this_request else "0" * 64
    )
    exporter.write_spans()
    assert (run.manifest().request_digest == sha256(request)) == of_this_request
    assert main(["export", "--request", request]) == (0 if of_this_request else 2)
    assert ("the result of another request" in capsys.readouterr().err) != of_this_request


@pytest.mark.parametrize(
    ("error", "is_full"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (RuntimeError("{{function_node}} /tmp/x.tempstate; No space left on device [Op:SaveV2]"), True),
        (OSError(errno.EACCES, "Permission denied"), False),
        (ValueError("no room"), False),
    ],
)
def test_a_full_disk_is_seen_behind_whatever_it_became(error: Exception, is_full: bool) -> None:
    """At any remove; TensorFlow has words for it, and no number."""
    became = StorageError("gs://b/o", "was not written")
    became.__cause__ = error
    assert (full_disk(error) is not None, full_disk(became) is not None) == (is_full, is_full)

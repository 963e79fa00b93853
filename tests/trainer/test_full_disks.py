"""Each job on a machine whose disk is full, at several moments: paid once, named, nothing half, and with room as ever.

An export, which goes on in its next process, is in `export/test_faults.py`.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_log import messages

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
PAGE = 4096
"""What such a disk is made of, bytes."""
PARTS = (0.0, 0.2, 0.5, 0.8, 1.0)
"""At which parts of what a job leaves the disk is full; at 1.0 a page before the end."""
SMALL_THEN_LARGE = """mount -t tmpfs -o size=$2 tmpfs "$1" || exit 99
export TMPDIR="$1"
folder="$1"
shift 2
"$@"
echo $? > "$folder.first"
find "$folder" -type f > "$folder.left"
mount -o remount,size=200m "$folder"
"$@"
code=$?
cp -r "$folder" "$folder.kept"
exit $code
"""


def on_a_small_disk(disk: Path, size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a job where a folder is a disk of so many bytes and holds the temporary files, and once more with room.

    What it leaves is in `<disk>.kept`, the exit code of the first one in `<disk>.first`, its files in `<disk>.left`.
    """
    disk.mkdir()
    apart = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SMALL_THEN_LARGE, "sh"]
    environment = {**os.environ, "CLOUD_ML_TRIAL_ID": "3", "CLOUD_ML_HP_METRIC_FILE": str(disk / "metric.log")}
    job = (sys.executable, "-m", "trainer.task", *arguments)
    try:
        ended = subprocess.run(
            [*apart, str(disk), str(size), *job],
            cwd=REPOSITORY_PATH,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    except FileNotFoundError:
        pytest.skip("no unshare on this machine")
    if ended.returncode == 99 or not Path(f"{disk}.first").exists():
        pytest.skip(f"no disk of one's own on this machine: {ended.stderr.strip()}")
    return ended


class Jobs:
    """The jobs that can be asked for, each with all that it writes on a disk.

    Args:
        exported: A run with shards.
        challenger: Address of a trained model.
    """

    def __init__(self, exported: Any, challenger: str) -> None:
        self.exported = exported
        self.challenger = challenger

    def train(self, disk: Path) -> tuple[list[str], str]:
        """A training; gives the arguments, and the path of its result on the disk."""
        request = self.exported.write("train_full.json", self.exported.train_json(out="unused"))
        return ["train", "--request", request, "--job-dir", str(disk / "job")], "job/report.json"

    def trial(self, disk: Path) -> tuple[list[str], str]:
        """One of a study."""
        asked = self.exported.train_json(out="unused", trial_metric="val_auc")
        request = self.exported.write("trial_full.json", asked)
        job = ["train", "--request", request, "--job-dir", str(disk / "job"), "--learning_rate=0.02"]
        return job, "job/report/3.json"

    def score(self, disk: Path) -> tuple[list[str], str]:
        """Scores of a split, in a job of their own."""
        common = ("schema_version", "model", "run_key", "label", "key")
        asked = {name: value for name, value in self.exported.evaluate_json("m", None).items() if name in common}
        model = {"model_uri": self.challenger, "scores_uri": str(disk / "scores.json")}
        asked |= {"kind": "score_request", "manifest_uri": self.exported.uri("manifest.json")}
        request = self.exported.write("score_full.json", asked | {"splits": ["test"], "models": [model]})
        return ["score", "--request", request], "scores.json"

    def evaluate(self, disk: Path) -> tuple[list[str], str]:
        """A comparison."""
        asked = self.exported.evaluate_json(self.challenger, None, evaluation_uri=str(disk / "evaluation.json"))
        asked["challenger"]["report_uri"] = str(Path(self.challenger).parent / "report.json")
        return ["evaluate", "--request", self.exported.write("evaluate_full.json", asked)], "evaluation.json"

    def chain(self, disk: Path) -> tuple[list[str], str]:
        """A training, and then the comparison of what it made."""
        outputs = {"model_uri": "model", "report_uri": "report.json", "checkpoint_uri": "checkpoints"}
        outputs |= {"tensorboard_uri": "logs"}
        places = {name: str(disk / path) for name, path in outputs.items()}
        train = self.exported.write("train_chained.json", self.exported.train_json(**places))
        asked = self.exported.evaluate_json(places["model_uri"], None, evaluation_uri=str(disk / "evaluation.json"))
        asked["challenger"]["report_uri"] = places["report_uri"]
        evaluate = self.exported.write("evaluate_chained.json", asked)
        return ["chain", f"--stage=train={train}", f"--stage=evaluate={evaluate}"], "evaluation.json"


JOBS: dict[str, Callable[[Jobs, Path], tuple[list[str], str]]] = {
    "train": Jobs.train,
    "trial": Jobs.trial,
    "score": Jobs.score,
    "evaluate": Jobs.evaluate,
    "chain": Jobs.chain,
}


@pytest.fixture(scope="module")
def jobs(exported: Any, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """They, with a model that was trained."""
    folder = tmp_path_factory.mktemp("challenger")
    return Jobs(exported, exported.train(exported.train_request_in(folder)).model_uri)


def numbers(document: Any) -> Any:
    """What a document says that is the same each time: no times, no addresses, not from where a training went on."""
    if isinstance(document, dict):
        passing = ("seconds", "examples_per_second", "serving", "usage", "resumed_from_step", "resumed_from_epoch")
        return {
            name: numbers(value)
            for name, value in document.items()
            if name not in passing and not name.endswith(("_uri", "uri", "_sha256", "digest"))
        }
    return [numbers(each) for each in document] if isinstance(document, list) else document


@pytest.fixture(scope="module")
def whole(jobs: Jobs, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[dict[str, Any], int]]:
    """Gives what a job comes to that has room, and how many pages it leaves."""

    @functools.cache
    def with_room(name: str) -> tuple[dict[str, Any], int]:
        disk = tmp_path_factory.mktemp(name) / "roomy"
        arguments, result = JOBS[name](jobs, disk)
        ended = on_a_small_disk(disk, 200 << 20, *arguments)
        assert (ended.returncode, Path(f"{disk}.first").read_text()) == (0, "0\n"), ended.stderr
        left = [path for path in Path(f"{disk}.kept").rglob("*") if path.is_file()]
        document = json.loads((Path(f"{disk}.kept") / result).read_text())
        return document, sum(-(-path.stat().st_size // PAGE) for path in left)

    return with_room


IN_EVERY_SUITE = {("train", 0.5), ("evaluate", 0.0)}
CELLS = [
    pytest.param(name, part, marks=() if (name, part) in IN_EVERY_SUITE else pytest.mark.long)
    for name in JOBS
    for part in PARTS
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("name", "part"), CELLS)
def test_a_full_disk_is_paid_once_and_named_and_with_room_all_is_as_ever(
    jobs: Jobs, whole: Callable[[str], tuple[dict[str, Any], int]], tmp_path: Path, name: str, part: float
) -> None:
    """Whenever it is full: the job ends as what no repetition mends, says what does, and leaves no result."""
    expected, pages = whole(name)
    disk = tmp_path / "disk"
    arguments, result = JOBS[name](jobs, disk)
    ended = on_a_small_disk(disk, max(1, min(round(part * pages), pages - 1)) * PAGE, *arguments)
    assert Path(f"{disk}.first").read_text() == "2\n", ended.stderr
    said = [line for line in messages(ended.stderr) if line.startswith("DiskFull: ")]
    assert f"disk of {disk}" in said[-1]
    assert "training.cluster.disk_gb" in said[-1]
    assert str(disk / result) not in Path(f"{disk}.left").read_text().splitlines()
    assert ended.returncode == 0, ended.stderr
    assert numbers(json.loads((Path(f"{disk}.kept") / result).read_text())) == numbers(expected)

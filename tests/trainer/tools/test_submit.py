"""The gcloud command: what is pasted is what was meant."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import pytest

from trainer.tools.submit import main, render_command

JOB = {
    "display_name": "flight_delays__train__20131120t030000z-0a1b2c3d4e5f",
    "labels": {"retraining-model": "flight_delays", "retraining_run": "x"},
    "job_spec": {
        "worker_pool_specs": [
            {
                "machine_spec": {"machine_type": "n1-standard-8"},
                "replica_count": 1,
                "disk_spec": {"boot_disk_size_gb": 100},
                "container_spec": {
                    "image_uri": "us-central1-docker.pkg.dev/p/r/trainer:1",
                    "command": ["python", "-m", "trainer.task"],
                    "args": ["train", "--request=gs://b/it's a $HOME `x`.json"],
                },
            }
        ],
        "scheduling": {"strategy": "SPOT", "timeout": "3600s"},
        "base_output_directory": {"output_uri_prefix": "gs://b/training"},
    },
}


def words_of(command: str) -> tuple[list[str], dict]:
    """Split as a shell does: the words before the here-string, and the JSON in it."""
    *words, arrow, content = shlex.split(command)
    assert arrow == "<<<"
    return words, json.loads(content)


def test_the_command_survives_the_shell() -> None:
    words, spec = words_of(render_command(JOB, region="us-central1", project="my-project"))
    assert words == [
        "gcloud", "ai", "custom-jobs", "create", "--region=us-central1", "--project=my-project",
        "--display-name=flight_delays__train__20131120t030000z-0a1b2c3d4e5f",
        "--labels=retraining-model=flight_delays,retraining_run=x", "--config=/dev/stdin",
    ]  # fmt: skip
    (pool,) = spec["workerPoolSpecs"]
    assert pool["containerSpec"]["args"] == JOB["job_spec"]["worker_pool_specs"][0]["container_spec"]["args"]
    assert pool["machineSpec"] == {"machineType": "n1-standard-8"}
    assert pool["diskSpec"] == {"bootDiskSizeGb": 100}
    assert spec["scheduling"] == {"strategy": "SPOT", "timeout": "3600s"}
    assert spec["baseOutputDirectory"] == {"outputUriPrefix": "gs://b/training"}


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_a_job_is_read_from_a_file_or_standard_input(source: str, tmp_path: Path, capsys, monkeypatch) -> None:
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(JOB)))
    path = str(tmp_path / "job.json") if source == "file" else "-"
    assert main(["--custom-job", path, "--region", "europe-west4"]) == 0
    words, _ = words_of(capsys.readouterr().out)
    assert "--region=europe-west4" in words
    assert not any(word.startswith("--project") for word in words)


def test_a_job_is_made_from_a_request(exported, capsys) -> None:
    request = exported.write("submitted.json", exported.train_json())
    assert (
        main(
            [
                "--request",
                request,
                "--image-uri",
                "trainer:1",
                "--region",
                "us-central1",
                "--machine-type",
                "n1-highmem-2",
            ]
        )
        == 0
    )
    words, spec = words_of(capsys.readouterr().out)
    assert "--display-name=parcels__train__20240110t030000z-0a1b2c3d4e5f" in words
    (pool,) = spec["workerPoolSpecs"]
    assert pool["containerSpec"] == {
        "imageUri": "trainer:1",
        "command": ["python", "-m", "trainer.task"],
        "args": ["train", f"--request={request}"],
    }
    assert pool["machineSpec"] == {"machineType": "n1-highmem-2"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--custom-job", "/nowhere.json"], "/nowhere.json: cannot be read", id="no-file"),
        pytest.param(["--request", "/nowhere.json", "--image-uri", "x"], "is no request", id="no-request"),
        pytest.param(["--request", "/nowhere.json"], "--image-uri", id="no-image"),
    ],
)
def test_bad_input_ends_with_2(arguments: list[str], words: str, capsys) -> None:
    assert main([*arguments, "--region", "us-central1"]) == 2
    assert words in capsys.readouterr().err


def test_a_job_without_a_name_is_refused(tmp_path: Path, capsys) -> None:
    (tmp_path / "job.json").write_text('{"job_spec": {}}')
    assert main(["--custom-job", str(tmp_path / "job.json"), "--region", "r"]) == 2
    assert "displayName" in capsys.readouterr().err

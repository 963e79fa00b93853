"""Trainers in containers of podman's: all are held to the contract, and one of another framework has a whole night."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from containers.engine import Engine
from containers.images import CHECKED_IMAGES, EXAMPLE_IMAGES, EXAMPLES_PATH
from demo.checkout import REPOSITORY_PATH

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]
NIGHT = "tests/operators/runs/test_examples.py::test_a_night_of_it_makes_a_champion[sklearn]"


def run_tests(engine: Engine, environment: str, tests: str, **variables: str) -> None:
    """Run tests in an environment of the repository, with podman's store here; no container may be left."""
    done = subprocess.run(
        [REPOSITORY_PATH / ".venv" / environment / "bin" / "python", "-m", "pytest", "-q", "-m", "", tests],
        cwd=REPOSITORY_PATH,
        env={**os.environ, **engine.environment(), **variables},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert engine.podman("ps", "--all", "--quiet") == ""


def prefixes(folders: list[str]) -> tuple[str, ...]:
    """How the local cloud names the containers of jobs or served models with these folders."""
    return tuple(f"localcloud-{folder}-" for folder in folders)


@pytest.mark.parametrize("image", CHECKED_IMAGES.values(), ids=CHECKED_IMAGES)
def test_an_image_keeps_the_contract(engine: Engine, image: str) -> None:
    """As `make check-trainer IMAGE=…` says."""
    run_tests(engine, "trainer", "tests/trainer/conformance", TRAINER_IMAGE=image)


def test_an_image_trains_scores_and_serves_a_night(engine: Engine, tmp_path: Path) -> None:
    """The local cloud's jobs and its endpoint are containers of the image that the example names."""
    spec = yaml.safe_load((EXAMPLES_PATH / "sklearn" / "models" / "late_sklearn.yaml").read_text(encoding="utf-8"))
    image = spec["training"]["runtime"]["image"]
    engine.podman("tag", EXAMPLE_IMAGES["sklearn"], image)
    table = {"images": [{"pattern": image, "use": use, "runtime": "container"} for use in ("training", "serving")]}
    (tmp_path / "vertex").mkdir()
    (tmp_path / "vertex" / "images.json").write_text(json.dumps(table))
    run_tests(engine, "airflow", NIGHT, LOCALCLOUD_STATE_FOR_TESTS=str(tmp_path))
    look = ("events", "--stream=false", "--filter", "event=start", "--format", "{{.Name}} {{.Image}}")
    started = [
        name for name, _, of in (line.partition(" ") for line in engine.podman(*look).splitlines()) if of == image
    ]
    jobs, served = ([path.name for path in (tmp_path / "vertex" / kind).iterdir()] for kind in ("jobs", "serving"))
    of_jobs, serving = ([name for name in started if name.startswith(prefixes(ids))] for ids in (jobs, served))
    assert len(of_jobs) == 2  # train, score
    assert serving

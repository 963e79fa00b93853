"""The images that the containers' test needs: the official ones where a registry answers, else stand-ins of Debian's.

Comes in: an `Engine`. Goes out: images in its store under the names that the Dockerfiles, docker-compose.yaml and jobs
have for them. How a stand-in differs from what it stands for: README.md.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from containers.engine import Engine, EngineError
from demo.checkout import CLOUD_CONFIG_PATH, REPOSITORY_PATH
from localcloud.environment.config import read_config
from localcloud.state import Settings

EXAMPLES_PATH = REPOSITORY_PATH / "examples"
# The one that the demonstration's jobs ask for.
TRAINER_IMAGE = read_config(CLOUD_CONFIG_PATH).client_variables(Settings())["RETRAINING_TRAINER_IMAGE"]
# By the example's folder. Names that no table of the local cloud knows: these are run by podman.
EXAMPLE_IMAGES = {framework: f"localhost/{framework}-trainer:1" for framework in ("sklearn", "xgboost")}
CHECKED_IMAGES = {"trainer": "localhost/trainer:1", **EXAMPLE_IMAGES}
# What podman-compose calls the images that it builds for the services of that project.
PROJECT = "retraining-check"
LOCALCLOUD_IMAGES = (f"localhost/{PROJECT}_localcloud", f"localhost/{PROJECT}_localcloud-seed")
DEBIAN_IMAGE = "localhost/debian:stand-in"
# Official name → the file of its stand-in. A later one may build on an earlier one.
STAND_INS = {
    "docker.io/library/python:3.11.15-slim-bookworm": "python.Containerfile",
    "docker.io/library/postgres:16.10-alpine": "postgres.Containerfile",
    "docker.io/apache/airflow:3.3.2-python3.11": "airflow.Containerfile",
}
_PACKAGES = "ca-certificates,curl,python3,python3-venv,python3-pip"


def get_base_images(engine: Engine) -> list[str]:
    """Fetch the official images, or build what stands in for them; return the names of those that are stand-ins.

    Raises:
        EngineError: Neither can be done; the message has the way out.
    """
    for name, containerfile in STAND_INS.items():
        if not engine.succeeds("image", "exists", name) and not engine.succeeds("pull", name, timeout_s=600):
            _build_stand_in(engine, name, containerfile)
    look = ("image", "inspect", "--format", '{{index .Labels "stand-in"}}')
    return [name for name in STAND_INS if engine.podman(*look, name).strip() == "yes"]


def build_own_images(engine: Engine) -> None:
    """Build the trainer's image, the local cloud's and those of the examples' frameworks, as a user does.

    Raises:
        EngineError: One does not build.
    """
    engine.build(REPOSITORY_PATH / "trainer" / "Dockerfile", TRAINER_IMAGE, CHECKED_IMAGES["trainer"])
    engine.build(REPOSITORY_PATH / "dev" / "compose" / "localcloud.Dockerfile", *LOCALCLOUD_IMAGES)
    for framework, name in EXAMPLE_IMAGES.items():
        dockerfile = EXAMPLES_PATH / "trainer_kit" / "Dockerfile"
        engine.build(dockerfile, name, context=EXAMPLES_PATH, arguments=[f"FRAMEWORK={framework}"])


def _build_stand_in(engine: Engine, name: str, containerfile: str) -> None:
    if not engine.succeeds("image", "exists", DEBIAN_IMAGE):
        _make_debian(engine)
    with tempfile.TemporaryDirectory(dir=engine.folder) as temporary:
        context = shutil.copytree(Path(__file__).parent, temporary, dirs_exist_ok=True)
        shutil.copy(REPOSITORY_PATH / "requirements.txt", Path(context) / "checkout-requirements.txt")
        engine.build(Path(context) / containerfile, name, context=Path(context))


def _make_debian(engine: Engine) -> None:
    """Make the base of the stand-ins: Debian 12 from its packages."""
    if shutil.which("debootstrap") is None:
        raise EngineError("no registry of images answers, and debootstrap is not here: install the package debootstrap")
    with tempfile.TemporaryDirectory(dir=engine.folder) as temporary:
        root = Path(temporary)
        bootstrap = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(root / "debian")]
        packed = [
            "tar",
            "-C",
            str(root / "debian"),
            "--exclude=./var/cache/apt/archives/*.deb",
            "-cf",
            str(root / "tar"),
            ".",
        ]
        for command in (bootstrap, packed):
            done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
            if done.returncode != 0:
                raise EngineError(f"{command[0]}: status {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        engine.podman("import", "--change", "LABEL stand-in=yes", root / "tar", DEBIAN_IMAGE, timeout_s=600)

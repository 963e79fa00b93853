"""What a replica runs: the container's command, or a Python package's module, in the environment of its image.

Comes in: a worker pool's spec, or that of a container that serves. Goes out: a command line and a whole environment.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from google.cloud.aiplatform_v1.types import (
    ContainerSpec,
    EnvVar,
    ModelContainerSpec,
    PythonPackageSpec,
    WorkerPoolSpec,
)

from localcloud.environment.variables import CLIENT_SITE_PATH
from localcloud.vertex.processes.containers import container_command
from localcloud.vertex.processes.images import Image, Images
from localcloud.vertex.processes.packages import install_packages
from localcloud.vertex.processes.replicas import expand_variables
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.wire.errors import FailedPrecondition

# What a container of the real service would not know of must not help here either.
_NOT_IN_CONTAINERS = ("AIRFLOW_", "CLOUDSDK_", "LOCALCLOUD_")
_MOUNT = re.compile(r"(^|[\s=:,'\"])/gcs(/|$)")
_NO_PIP = """#!/bin/sh
echo "pip: the local cloud does not install packages while a job runs: the environment that stands for its image is" \
  "shared. Give packages by python_package_spec.package_uris, or add them to that environment" >&2
exit 1
"""
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """How a replica is started and ended.

    Attributes:
        arguments: Program and arguments.
        env: Its whole environment.
        end: Program and arguments that end what is left when its process group was killed; empty: nothing is.
    """

    arguments: list[str]
    env: dict[str, str]
    end: list[str] = dataclasses.field(default_factory=list)


def replica_command(
    *, spec: WorkerPoolSpec, variables: Mapping[str, str], folder: Path, images: Images, buckets: Buckets
) -> Command:
    """Return how a pool's replicas are started and ended.

    Args:
        variables: What every replica gets: the way to the local cloud, and what the service tells it.
        folder: The job's folder; packages go below it.
        buckets: Where packages come from.

    Raises:
        FailedPrecondition: The image is not in the table, or a package does not install.
    """
    if spec.python_package_spec.python_module:
        return _package_command(spec.python_package_spec, variables, folder, images, buckets)
    return _container_command(spec.container_spec, variables, folder, images)


def _container_command(spec: ContainerSpec, variables: Mapping[str, str], folder: Path, images: Images) -> Command:
    image = _find_image(images, spec.image_uri)
    _refuse_mounts([*spec.command, *spec.args], spec.env)
    if image.runtime == "container":
        arguments, end = container_command(spec, _known_variables(variables), folder)
        return Command(arguments=arguments, env=dict(os.environ), end=end)
    env = _environment(image, variables, spec.env, folder, [], _own_programs(folder))
    return Command(arguments=_process_arguments(spec, image, env), env=env)


def _process_arguments(spec: ContainerSpec | ModelContainerSpec, image: Image, env: Mapping[str, str]) -> list[str]:
    """Return program and arguments: the spec's command, or the image's entry point, and the spec's arguments."""
    entrypoint = list(spec.command) or image.entrypoint
    if not entrypoint:
        raise FailedPrecondition(
            f"The container image {spec.image_uri!r} is started without a command: the local cloud does not"
            f" know its entry point."
            ' Set container_spec.command, for example ["python", "-m", "trainer.task"], or give the image an'
            ' "entrypoint" in the file of `up --config`.'
        )
    program, *arguments = (expand_variables(word, env) for word in (*entrypoint, *spec.args))
    return [shutil.which(program, path=env["PATH"]) or program, *arguments]


def _package_command(
    spec: PythonPackageSpec, variables: Mapping[str, str], folder: Path, images: Images, buckets: Buckets
) -> Command:
    image = _find_image(images, spec.executor_image_uri)
    if image.runtime == "container":
        raise FailedPrecondition(
            f"The image {spec.executor_image_uri!r} runs as a container, into which the local cloud installs no"
            " packages. Set container_spec, or let an environment stand for the image in the file of `up --config`"
            ' (no "runtime").'
        )
    packages = folder / "packages"
    if not packages.exists():
        install_packages(spec.package_uris, image, folder, buckets)
    env = _environment(image, variables, spec.env, folder, [packages], _own_programs(folder))
    _refuse_mounts(spec.args, spec.env)
    args = [expand_variables(word, env) for word in spec.args]
    return Command(arguments=[str(image.python), "-m", spec.python_module, *args], env=env)


def _refuse_mounts(arguments: Iterable[str], variables: Iterable[EnvVar]) -> None:
    """Refuse a job that names a mounted bucket: here its `/gcs` would be a folder of this machine.

    What a program makes up by itself is met by `client_site`.
    """
    texts = [("an argument", word) for word in arguments] + [
        (f"the variable {each.name}", each.value) for each in variables
    ]
    for where, text in texts:
        if _MOUNT.search(text):
            raise FailedPrecondition(
                f"{where[0].upper()}{where[1:]} of the job names {text!r}: the local cloud does not mount buckets below"
                " /gcs. Give the gs:// address, which TensorFlow and Google's clients open."
            )


def _own_programs(folder: Path) -> Path:
    """Make the folder of programs that are the job's and no other's: a `pip` that says what to do instead."""
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name in ("pip", "pip3"):
        (programs / name).write_text(_NO_PIP)
        (programs / name).chmod(0o755)
    return programs


def _find_image(images: Images, uri: str) -> Image:
    image = images.find_image(uri, "training")
    if image is None:
        raise FailedPrecondition(
            f"Failed to pull the container image {uri!r}: it is not in the local cloud's table."
            f" Expected one of {images.patterns('training')}; add an entry to the file of `up --config`."
        )
    if not image.python.exists():
        raise FailedPrecondition(
            f"The image {uri!r} stands for {image.python}, which does not exist. Make that environment"
            f" first, or name another in the file of `up --config`."
        )
    return image


def _known_variables(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not name.startswith(_NOT_IN_CONTAINERS) and value}


def _environment(
    image: Image,
    variables: Mapping[str, str],
    own: list[EnvVar],
    folder: Path,
    packages: list[Path],
    programs: Path | None = None,
) -> dict[str, str]:
    roots = [str(path) for path in (*packages, *image.import_roots, CLIENT_SITE_PATH)]
    env = {
        **_known_variables(variables),
        "PATH": os.pathsep.join((*([str(programs)] if programs else []), str(image.python.parent), _SYSTEM_PATH)),
        "PYTHONPATH": os.pathsep.join(roots),
        "PYTHONUNBUFFERED": "1",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    for variable in own:
        env[variable.name] = expand_variables(variable.value, env)
    return env


def serving_command(
    *, spec: ModelContainerSpec, image: Image, variables: Mapping[str, str], own: Mapping[str, str], folder: Path
) -> Command:
    """Return how a served model's process, or its container, is started and ended.

    Args:
        variables: What the service tells a container that serves: `AIP_*`, and the way to the local cloud.
        own: What only the local cloud's own servers read.
        folder: The process's home.

    Raises:
        FailedPrecondition: Neither the spec nor the table has a command; or podman does not have the image.
    """
    if image.runtime == "container":
        arguments, end = container_command(spec, _known_variables(variables), folder)
        return Command(arguments=arguments, env=dict(os.environ), end=end)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1", "OMP_NUM_THREADS": "1"}
    env = {**_environment(image, {**quiet, **variables}, list(spec.env), folder, []), **own}
    return Command(arguments=_process_arguments(spec, image, env), env=env)

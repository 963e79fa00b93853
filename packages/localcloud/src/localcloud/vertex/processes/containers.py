"""A replica or served model as a container of podman's, for images whose entry says `"runtime": "container"`.

Comes in: a container spec and the variables that it gets. Goes out: the command line that starts the container, and
the one that ends it: a killed `podman run` leaves its container behind.

The container is on this machine's network, so that the addresses of the local cloud and of the other replicas hold. The
files that its variables name (the authority, the account's key) are mounted where they are, as copies that any user of
an image may read: nobody else reaches the job's folder.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from google.cloud.aiplatform_v1.types import ContainerSpec, ModelContainerSpec

from localcloud.vertex.processes.replicas import expand_variables
from localcloud.vertex.wire.errors import FailedPrecondition

METRIC_VARIABLE = "CLOUD_ML_HP_METRIC_FILE"
_LOOK_TIMEOUT_S = 60


def container_command(
    spec: ContainerSpec | ModelContainerSpec, variables: Mapping[str, str], folder: Path
) -> tuple[list[str], list[str]]:
    """Return the command line that starts a container, and the one that ends it in whatever state it is.

    Args:
        spec: Image, command, arguments and variables of its own.
        variables: What the service tells it.
        folder: The job's, or the served model's; copies of mounted files go below it.

    Raises:
        FailedPrecondition: podman is not here, or does not have the image.
    """
    podman = _find_podman(spec.image_uri)
    own_path = _read_variables(podman, spec.image_uri).get("PYTHONPATH", "")
    env = dict(variables)
    mounts = _mounts(env, folder)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (env.get("PYTHONPATH"), own_path)))
    for variable in spec.env:
        env[variable.name] = expand_variables(variable.value, env)
    name = f"localcloud-{folder.name}-{secrets.token_hex(4)}"
    arguments = [podman, "run", "--rm", "--name", name, "--pull", "never", "--network", "host", "--http-proxy=false"]
    arguments += ["--security-opt", "label=disable"]  # SELinux would keep it from what is mounted
    arguments += [word for mount in mounts for word in ("--volume", mount)]
    arguments += [word for each in env.items() for word in ("--env", "=".join(each))]
    if spec.command:
        arguments += ["--entrypoint", json.dumps([expand_variables(word, env) for word in spec.command])]
    arguments += [spec.image_uri, *(expand_variables(word, env) for word in spec.args)]
    return arguments, [podman, "rm", "--force", "--ignore", "--time", "0", name]


def _find_podman(uri: str) -> str:
    podman = shutil.which("podman")
    if podman is None:
        raise FailedPrecondition(
            f"The image {uri!r} is to run as a container, and there is no podman on the local cloud's PATH. Install"
            ' podman, or let an environment stand for the image in the file of `up --config` (no "runtime").'
        )
    return podman


def _read_variables(podman: str, uri: str) -> dict[str, str]:
    """Return the variables that an image sets.

    Raises:
        FailedPrecondition: podman does not have it.
    """
    look = [podman, "image", "inspect", "--format", "{{json .Config.Env}}", uri]
    done = subprocess.run(look, capture_output=True, text=True, timeout=_LOOK_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise FailedPrecondition(
            f"Failed to pull the container image {uri!r}: podman does not have it, and the local cloud fetches none"
            f" ({done.stderr.strip()[-500:]}). Build it or fetch it first: podman build --tag {uri} …"
        )
    return dict(line.split("=", 1) for line in json.loads(done.stdout) or ())


def _mounts(variables: Mapping[str, str], folder: Path) -> list[str]:
    """Return the volumes of what the variables name on this machine: files as copies, folders themselves."""
    copies = folder / "mounted"
    copies.mkdir(parents=True, exist_ok=True)
    mounts = dict[str, None]()
    for name, value in variables.items():
        path = Path(value)
        if name.startswith("AIP_"):  # routes look like paths
            continue
        if name == METRIC_VARIABLE:  # reported into by the program, read from outside
            path.parent.chmod(0o777)
            mounts[f"{path.parent}:{path.parent}"] = None
        elif path.is_absolute() and path.is_dir():
            mounts[f"{path}:{path}:ro"] = None
        elif path.is_absolute() and path.is_file():
            shutil.copyfile(path, copies / path.name)
            (copies / path.name).chmod(0o644)
            mounts[f"{copies / path.name}:{path}:ro"] = None
    return list(mounts)

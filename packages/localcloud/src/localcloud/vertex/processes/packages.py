"""Python packages of a job: fetched from Cloud Storage, installed into the job's own folder.

Comes in: gs:// addresses of source distributions or wheels. Goes out: a folder for the PYTHONPATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from localcloud.vertex.processes.images import NEIGHBOURS_PATH, Image
from localcloud.vertex.resources.buckets import Buckets, path_below
from localcloud.vertex.resources.validation import split_gcs_uri
from localcloud.vertex.wire.errors import FailedPrecondition

_TIMEOUT_S = 300


def install_packages(uris: Sequence[str], image: Image, folder: Path, buckets: Buckets) -> Path:
    """Fetch and install packages; gives the folder they can be imported from.

    Dependencies are not installed: the image has TensorFlow and what else the trainer needs, and nothing here may reach
    out to a package index.

    Raises:
        FailedPrecondition: A package is not there, or does not install; the message ends with the installer's.
    """
    target = folder / "packages"
    files = []
    for uri in uris:
        bucket, path = split_gcs_uri(uri)
        files.append(path_below(folder / "downloads", path.rpartition("/")[2]))
        buckets.download(bucket, path, files[-1])
    done = subprocess.run(
        [*_installer(image), "--no-deps", "--no-build-isolation", "--target", str(target), *map(str, files)],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        env={**os.environ, "PATH": f"{image.python.parent}{os.pathsep}{os.environ.get('PATH', '')}"},
    )
    if done.returncode != 0:
        raise FailedPrecondition(f"The packages {list(uris)} do not install: {done.stderr.strip()[-2000:]}")
    return target


def _installer(image: Image) -> list[str]:
    uv = shutil.which("uv") or str(NEIGHBOURS_PATH / "uv/bin/uv")
    if Path(uv).exists():
        return [uv, "pip", "install", "--quiet", "--offline", "--no-config", "--python", str(image.python)]
    return [str(image.python), "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]

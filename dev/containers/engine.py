"""podman with a store of its own below build/, so that stand-ins under official names never meet a person's images.

Comes in: this machine's programs and pip's configuration. Goes out: `Engine`, which runs podman. What a build needs to
reach the package index that pip is told of here is mounted for the build alone and stays out of the image.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.checkout import REPOSITORY_PATH

NESTED_CONF_PATH = Path(__file__).with_name("nested.conf")
_HAS_SYSTEMD = Path("/run/systemd/system").exists()  # sd_booted(3)
PACKAGES = "podman netavark aardvark-dns catatonit" + ("" if _HAS_SYSTEMD else " runc")
_PIP_SETTINGS = frozenset({"cert", "extra-index-url", "find-links", "index-url", "no-index", "trusted-host"})


class EngineError(RuntimeError):
    """A program refused; the message ends with its own."""


def run_program(arguments: Sequence[str | Path], environment: Mapping[str, str], timeout_s: float) -> str:
    """Run a program and return what it prints.

    Raises:
        EngineError: It ended with another status than 0.
    """
    done = subprocess.run(
        arguments, env={**os.environ, **environment}, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode != 0:
        raise EngineError(
            f"{' '.join(map(str, arguments[:3]))} …: status {done.returncode}: {done.stderr.strip()[-2000:]}"
        )
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Engine:
    """podman, with a folder of its own.

    Attributes:
        folder: Holds its store and its configuration.
    """

    folder: Path = REPOSITORY_PATH / "build" / "containers"

    def environment(self) -> dict[str, str]:
        """Return the variables that lead podman, and whoever starts it, to the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        store_path = self.folder / "storage.conf"
        store_path.write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{self.folder}/store"\nrunroot = "{self.folder}/run"\n'
        )
        nested = {"CONTAINERS_CONF": str(NESTED_CONF_PATH), "BUILDAH_ISOLATION": "chroot"}
        return {"CONTAINERS_STORAGE_CONF": str(store_path), **({} if _HAS_SYSTEMD else nested)}

    def podman(self, *arguments: str | Path, timeout_s: float = 60) -> str:
        """Run podman and return what it prints.

        Raises:
            EngineError: It ended with another status than 0.
        """
        return run_program(["podman", *arguments], self.environment(), timeout_s)

    def succeeds(self, *arguments: str | Path, timeout_s: float = 60) -> bool:
        """Run podman and return whether it ended with status 0."""
        try:
            self.podman(*arguments, timeout_s=timeout_s)
        except EngineError:
            return False
        return True

    def find_missing(self) -> str:
        """Return what keeps podman from working here, and the way out; empty: nothing does."""
        if shutil.which("podman") is None:
            return f"podman is not here: install the packages {PACKAGES}"
        try:
            self.podman("info")
        except EngineError as error:
            return f"podman does not work here ({error}): install the packages {PACKAGES}"
        return ""

    def build(
        self, dockerfile: Path, *names: str, context: Path = REPOSITORY_PATH, arguments: Sequence[str] = ()
    ) -> None:
        """Build an image under all names, with build arguments `NAME=value`; layers that are there are taken.

        Raises:
            EngineError: It does not build.
        """
        options = ["--network", "host", *_pip_options(self.folder), "--file", dockerfile]
        options += [word for argument in arguments for word in ("--build-arg", argument)]
        tags = [word for name in names for word in ("--tag", name)]
        self.podman("build", *options, *tags, context, timeout_s=1200)


def _pip_options(folder: Path) -> list[str | Path]:
    """Return the mounts that let a build's pip do what pip does here: its settings, and the files that they name."""
    if shutil.which("pip") is None:
        return []
    lines = run_program(["pip", "config", "list"], {}, 60).splitlines()
    pairs = [(name.rpartition(".")[2], ast.literal_eval(value)) for name, _, value in (x.partition("=") for x in lines)]
    settings = {name: value for name, value in pairs if name in _PIP_SETTINGS}
    conf_path = folder / "pip.conf"
    conf_path.write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    # An index in files leads from its pages to folders beside them.
    indexes = [Path(path).parent for value in settings.values() for path in re.findall(r"file://(/\S+)", value)]
    files = [Path(value) for value in settings.values() if value.startswith("/") and Path(value).exists()]
    mounts = [f"{path}:{path}:ro" for path in dict.fromkeys([*indexes, *files])]
    return [word for mount in (f"{conf_path}:/etc/pip.conf:ro", *mounts) for word in ("--volume", mount)]

"""The local cloud as a package of its own: its wheel, and the quick start of its README without this checkout."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROJECT = ROOT / "packages" / "localcloud"
PACKAGE = PROJECT / "src" / "localcloud"
README = (PROJECT / "README.md").read_text(encoding="utf-8")
UV = shutil.which("uv") or str(ROOT / ".venv" / "uv" / "bin" / "uv")
READY_TIMEOUT_S = 60
AT_FIRST = dict(os.environ)  # before the local cloud of other tests is laid over it


def blocks(language: str) -> list[str]:
    """Return the README's blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def person(folder: Path | None = None) -> dict[str, str]:
    """Return the environment of a person's terminals: with a folder, its environment comes first on the PATH."""
    programs = f"{folder / 'venv' / 'bin'}:" if folder else ""
    kept = {name: value for name, value in AT_FIRST.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "LOCAL"))}
    return {**kept, "PATH": f"{programs}{AT_FIRST['PATH']}"}


def test_the_quick_start_is_short() -> None:
    """Ten lines, comments included: start, three clients, stop."""
    start, clients = blocks("sh")
    assert len((start + clients).splitlines()) <= 10
    ast.parse(blocks("python")[0])
    json.loads(blocks("json")[0])


def test_it_imports_nothing_of_this_repository() -> None:
    """Not even by name: what it knows of retraining is told to it with `--config`."""
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*") if path.suffix in (".py", ".json")}
    assert len(texts) > 100
    named = re.compile(r"(?i)\bretrain(?:ing)?\b|RETRAINING_|flight_delays|nycflights")
    assert not [str(path.relative_to(ROOT)) for path, text in texts.items() if named.search(text)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the folder alone."""
    source, out = tmp_path_factory.mktemp("source") / "localcloud", tmp_path_factory.mktemp("wheel")
    shutil.copytree(PROJECT, source, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    command = [UV, "build", "--quiet", "--wheel", "--python", sys.executable, "--out-dir", str(out), str(source)]
    subprocess.run(command, check=True, env=person(), capture_output=True, text=True, timeout=300)
    (made,) = out.glob("*.whl")
    return made


@pytest.mark.long
def test_the_wheel_has_all_that_runs(wheel: Path) -> None:
    """Every module, script and table of the folder, below the package's name, and no lock or page."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith("/")}
    files = {path.relative_to(PACKAGE) for suffix in ("py", "json", "js") for path in PACKAGE.rglob(f"*.{suffix}")}
    assert names == {f"localcloud/{path.as_posix()}" for path in (*files, Path("tuning-requirements.txt"))}


@pytest.fixture
def folder(wheel: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder with a fresh environment that has the wheel, and a local cloud started as the README says."""
    python = tmp_path / "venv" / "bin" / "python"
    for command in (
        [UV, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")],
        [UV, "pip", "install", "--quiet", "--python", str(python), str(wheel)],
    ):
        subprocess.run(command, check=True, env=person(), capture_output=True, text=True, timeout=600)
    (tmp_path / "quickstart.py").write_text(blocks("python")[0])
    (start,) = [line.split("#")[0] for line in blocks("sh")[0].splitlines() if line.startswith("localcloud ")]
    with (tmp_path / "up.log").open("w") as log:
        command = ["bash", "-c", f"exec {start}"]
        cloud = subprocess.Popen(command, cwd=tmp_path, env=person(tmp_path), stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while "ready " not in (tmp_path / "up.log").read_text():
            assert cloud.poll() is None, (tmp_path / "up.log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "up.log").read_text()
            time.sleep(0.2)
        yield tmp_path
    finally:
        cloud.terminate()
        cloud.wait(timeout=30)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_quick_start_works_without_this_checkout(folder: Path) -> None:
    """From the wheel in an environment of its own, which has nothing else: tables, storage, a job, a fault, the end."""
    script = "set -e\n" + blocks("sh")[1]
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=person(folder), text=True, capture_output=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hello from Cloud Storage" in done.stdout
    assert "JOB_STATE_SUCCEEDED" in done.stdout
    assert done.stdout.startswith("42\n")
    assert "refused, as asked for" in done.stdout
    assert done.stdout.rstrip().endswith("stopped")

"""docs/tutorial.md works as it is written: quickly that its pieces are valid, and at length that all of it does."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.system import LOCALCLOUD_PYTHON
from retraining.core.spec.files import load_query, load_spec
from tests.dev.demo.demonstrations import read_until
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "tutorial.md"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of the page: its language, its text, and the file that it is to be saved as, if any."""

    language: str
    text: str
    path: str | None


def blocks() -> list[Block]:
    """Return the page's blocks in order."""
    found = re.findall(r"(?:Save as `([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [Block(language=language, text=text, path=path or None) for path, language, text in found]


def commands() -> list[str]:
    """Return the shell blocks."""
    return [block.text for block in blocks() if block.language == "bash"]


class TestPieces:
    """What can be seen without running anything."""

    def test_every_block_is_run_or_saved(self) -> None:
        """No language that the long test would pass over, and no file without its place."""
        assert {(block.language, block.path is not None) for block in blocks()} == {
            ("bash", False),
            ("sql", True),
            ("yaml", True),
        }

    @pytest.mark.parametrize("text", commands(), ids=lambda text: text.splitlines()[0][:40])
    def test_shell_and_python_parse(self, text: str) -> None:
        """Bash reads each block, and Python each script in it."""
        subprocess.run(["bash", "-n"], input=text, text=True, check=True, timeout=30)
        for script in re.findall(r"python - <<'EOF'\n(.*?)^EOF$", text, re.MULTILINE | re.DOTALL):
            compile(script, str(PAGE), "exec")

    def test_airflow_knows_the_commands(self) -> None:
        """Each line that begins with `airflow` is one that its command line takes."""
        written = (line.removeprefix("until ") for text in commands() for line in text.splitlines())
        found = [part for line in written for part in line.split(" || ")]
        lines = [line for line in found if line.startswith("airflow ")]
        assert len(lines) > 5
        code = (
            "import shlex, sys\nfrom airflow.cli.cli_parser import get_parser\n"
            "for line in sys.stdin: get_parser().parse_args(shlex.split(line)[1:])"
        )
        subprocess.run([sys.executable, "-c", code], input="\n".join(lines), text=True, check=True, timeout=120)

    def test_the_model_is_valid_before_and_after_the_change(self, tmp_path: Path) -> None:
        """The YAML file, its query, and what `sed` makes of it."""
        for block in blocks():
            if block.path:
                path = tmp_path / block.path
                path.parent.mkdir(parents=True)
                path.write_text(block.text)
        spec_path = tmp_path / "include" / "models" / "parcels.yaml"
        before = load_spec(spec_path)
        query = load_query(before, tmp_path / "include")
        assert "@window_start" in query
        (change,) = [line for text in commands() for line in text.splitlines() if line.startswith("sed ")]
        subprocess.run(["bash", "-c", change], cwd=tmp_path, check=True, timeout=30)
        after = load_spec(spec_path)
        assert (after, load_query(after, tmp_path / "include")) != (before, query)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout's files, in which the page may write, with its environments."""
    path = tmp_path / "checkout"
    path.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
        timeout=60,
    )
    for name in filter(None, files.stdout.split("\0")):
        if (ROOT / name).is_file():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name)
            os.utime(path / name, (1, 1))  # older than the environments: make takes them as they are
    (path / ".venv").symlink_to((ROOT / ".venv").resolve())
    return path


@pytest.fixture
def shell_environment() -> dict[str, str]:
    """A person's, without what tests or another cloud set."""
    ours = ("AIRFLOW", "RETRAINING_", "LOCALCLOUD_", "PYTHONPATH", "GOOGLE_", "MAKE", "https_proxy", "HTTPS_PROXY")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.fixture
def demonstration(checkout: Path, shell_environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """What `make demo` runs, in the copy."""
    command = [str(LOCALCLOUD_PYTHON), "-m", "demo", "--port", str(free_port())]
    environment = {
        **shell_environment,
        "PYTHONPATH": f"{checkout}/dev:{checkout}/packages/laptop/src:{checkout}/packages/localcloud/src",
    }
    demo = subprocess.Popen(
        command,
        cwd=checkout,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield demo
    finally:
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=60)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_page_works_from_the_first_line_to_the_last(
    checkout: Path, shell_environment: dict[str, str], demonstration: subprocess.Popen[str]
) -> None:
    """Every block in order in one shell that ends at the first failure; what it prints is what the page says."""
    read_until(demonstration, "triggered for")
    done = subprocess.run(
        ["bash", "-c", as_script()], cwd=checkout, env=shell_environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-8000:]}"
    for words in ("9000 parcels", "parcels: ok", "200 answers"):
        assert words in done.stdout
    assert re.search(r"version \d serves again", done.stdout)
    in_python = re.search(r"\[[\d.]+, ([\d.]+)\] says version 1", done.stdout)
    by_curl = re.search(r'"predictions":\s*\[\s*([\d.]+)', done.stdout)
    assert in_python is not None, done.stdout
    assert by_curl is not None, done.stdout
    assert float(in_python[1]) == pytest.approx(float(by_curl[1]), abs=1e-6)
    assert not (checkout / "include" / "models" / "parcels.yaml").exists()
    assert demonstration.poll() is None


def as_script() -> str:
    """Return the page as one script for bash that ends at the first failure."""
    lines = ["set -euo pipefail"]
    for block in blocks():
        if block.path:
            lines += [f"mkdir -p {Path(block.path).parent}", f"cat > {block.path} <<'END OF FILE'"]
            lines += [f"{block.text}END OF FILE"]
        elif block.text.strip() != "make demo":  # runs already
            lines.append(block.text)
    return "\n".join(lines)

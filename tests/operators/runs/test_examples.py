"""Every example is a valid model, and a whole night of it makes a champion that answers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from retraining.core.catalog.check_models import main
from retraining.core.settings import include_path
from retraining.core.spec.files import load_query, load_spec
from retraining.core.spec.model import ModelSpec
from retraining.operators.planning import run_plan
from tests.support.scenes.whole_run import run_night

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
TRAINER_PYTHON = ROOT / ".venv" / "trainer" / "bin" / "python"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if (path / "models").is_dir())


@pytest.fixture
def examples_include(tmp_path: Path) -> Path:
    """A copy of `include` as DAGs read it, without its models."""
    for folder in ("containers", "prices", "regions", "contracts", "templates"):
        shutil.copytree(include_path() / folder, tmp_path / folder)
    return tmp_path


def spec_of(name: str, include: Path) -> ModelSpec:
    """The example's spec, once its files lie where the page says."""
    shutil.copytree(EXAMPLES / name, include, dirs_exist_ok=True)
    (path,) = (include / "models").glob("*.yaml")
    spec = load_spec(path)
    assert load_query(spec, include)
    return spec


def run_script(python: str, script: str, uri: str) -> None:
    """As the example's page says."""
    subprocess.run([python, str(EXAMPLES / script), uri], check=True, timeout=120)


def test_the_page_lists_every_example() -> None:
    """A row per folder, with the model's file."""
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in NAMES:
        (path,) = (EXAMPLES / name / "models").glob("*.yaml")
        assert f"| [{name}]({path.relative_to(EXAMPLES)}) |" in page


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid(name: str, examples_include: Path) -> None:
    """As `make check-models` says."""
    spec_of(name, examples_include)
    assert main([f"--include={examples_include}"]) == 0


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_a_night_of_it_makes_a_champion(name: str, examples_include: Path, local_cloud, make_run, monkeypatch) -> None:
    """Export to endpoint, on the demonstration's tables."""
    local_cloud.seed()
    if name == "text":
        run_script(str(TRAINER_PYTHON), "text/make_module.py", f"gs://{local_cloud.bucket}/modules/words")
    if name == "files":
        run_script(sys.executable, "files/make_files.py", f"gs://{local_cloud.bucket}/files/flights")
    spec = spec_of(name, examples_include)
    monkeypatch.setattr(run_plan, "include_path", lambda: examples_include)
    night = datetime(2013, 11, 20, 3, tzinfo=UTC)
    found = run_night(spec, make_run(run_id=f"manual__{spec.name}", logical_date=night))
    assert found["decision"]["verdict"] == "promote", found["decision"]["words"]
    assert found["deployment"]["deployed"]
    assert ("tuning" in found) == (name == "tuning")

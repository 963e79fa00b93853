"""The wheel installed into an environment of its own, with a team's repository and no file of this checkout."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from wheels.build import read_version

from .conftest import PYTHON, ROOT, run

READ = """
import json, sys
try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:
    from airflow.models.dagbag import DagBag
bag = DagBag(dag_folder=sys.argv[1], safe_mode=True)
files = sorted({getattr(module, "__file__", None) or "" for name, module in list(sys.modules.items())
                if name.partition(".")[0] in ("retraining", "retraining_plugin")})
print(json.dumps({"dags": sorted(bag.dags), "errors": bag.import_errors, "files": files, "path": sys.path,
                  "of": sorted({dag.fileloc for dag in bag.dags.values()})}))
"""


def freeze(uv: str, python: Path) -> set[str]:
    """Return what is installed."""
    listed = subprocess.run([uv, "pip", "freeze", "--python", python], text=True, capture_output=True, check=True)
    return set(listed.stdout.splitlines())


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("requirements", ["requirements-floor.txt", "requirements.txt"])
def test_a_team_installs_it(requirements: str, wheels: dict[str, Path], uv: str, tmp_path: Path) -> None:
    """On the oldest Airflow and the newest: nothing else moves, Airflow lists it, the repository's DAGs are there."""
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--no-project", "--python", PYTHON, tmp_path / "venv"], check=True)
    locked = [uv, "pip", "sync", "--quiet", "--require-hashes", "--python", python, ROOT / requirements]
    subprocess.run(locked, check=True)
    before = freeze(uv, python)
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, wheels["retraining"]], check=True)
    (added,) = freeze(uv, python) - before
    assert added.startswith("retraining @ file://")
    assert before < freeze(uv, python)

    environ = {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "team" / "dags"),
        "RETRAINING_INCLUDE": str(tmp_path / "team" / "include"),
    }
    run([str(python.with_name("retraining")), "init", "team"], tmp_path, **environ)
    checked = run([str(python.with_name("retraining")), "check-models"], tmp_path, **environ)
    assert checked.startswith("late: ok")

    read = run([str(python), "-c", READ, environ["AIRFLOW__CORE__DAGS_FOLDER"]], tmp_path, **environ)
    found = json.loads(read.splitlines()[-1])
    assert found["errors"] == {}
    of_model = ["monitor__late", "retrain__late", "rollback__late", "walk_forward__late"]
    assert found["dags"] == sorted([*of_model, "maintain", "notify_test", "rollback"])
    assert found["of"] == [str(tmp_path / "team" / "dags" / "retraining_models.py")]
    assert found["files"]
    assert all(file.startswith(str(tmp_path / "venv")) for file in found["files"])
    assert not [path for path in found["path"] if path.startswith(str(ROOT))]

    airflow = str(python.with_name("airflow"))
    listed = json.loads(run([airflow, "providers", "list", "--output", "json"], tmp_path, **environ))
    (provider,) = (each for each in listed if each["package_name"] == "retraining")
    assert provider["version"] == read_version()
    plugins = run([airflow, "plugins", "--output", "json"], tmp_path, **environ)
    (plugin,) = (each for each in json.loads(plugins[plugins.index("[") :]) if each["name"] == "retraining")
    assert f"retraining=={read_version()}" in plugin["source"]
    assert "EntryPoint" in plugin["source"]

"""What the packages have in them, and that they are the same bytes whoever builds them."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from airflow.providers_manager import ProvidersManager

import trainer
from retraining import __version__
from retraining.provider_info import get_provider_info
from wheels.build import WHEELS, BuildError, build_all, read_version

from .conftest import PYTHON, ROOT, run

DISTRIBUTIONS = {
    "airflow": "apache-airflow",
    "airflow.providers.google": "apache-airflow-providers-google",
    "airflow.providers.openlineage": "apache-airflow-providers-openlineage",
    "airflow.providers.smtp": "apache-airflow-providers-smtp",
    "airflow.providers.standard": "apache-airflow-providers-standard",
    "google.cloud.aiplatform_v1": "google-cloud-aiplatform",
    "google.cloud.bigquery": "google-cloud-bigquery",
    "google.cloud.logging_v2": "google-cloud-logging",
    "google.cloud.monitoring_v3": "google-cloud-monitoring",
    "google.cloud.storage": "google-cloud-storage",
    "click": "click",
    "croniter": "croniter",
    "jinja2": "jinja2",
    "jsonschema": "jsonschema",
    "openlineage": "apache-airflow-providers-openlineage",
    "pendulum": "pendulum",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "requests": "requests",
    "yaml": "pyyaml",
}
"""What the package imports: who brings it."""
BROUGHT_ALONG = {"attr", "fastapi", "google", "grpc", "pydantic_core", "starlette", "typing_extensions", "urllib3"}
"""By Airflow, pydantic and Google's clients, whose own interfaces are made of it."""


def names(wheel: Path) -> set[str]:
    """Return the files of a wheel, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/") and ".dist-info/" not in name}


def metadata(wheel: Path, name: str) -> str:
    """Return a file of a wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (path for path in archive.namelist() if path.endswith(f".dist-info/{name}"))
        return archive.read(path).decode()


def tracked(folder: str) -> set[str]:
    """Return the files of a folder that git tracks, from there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT / folder, text=True, capture_output=True, check=True)
    return {name for name in listed.stdout.split("\0") if name and (ROOT / folder / name).is_file()}


def test_two_builds_are_the_same_bytes(wheels: dict[str, Path], uv: str, tmp_path: Path, monkeypatch) -> None:
    """Also on a day, in a time zone and with file modes of another machine."""
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    before = os.umask(0o077)
    try:
        again = build_all(uv, tmp_path / "again")
    finally:
        os.umask(before)
    assert [path.name for path in again] == [path.name for path in wheels.values()]
    for first, second in zip(wheels.values(), again, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_all_have_one_version(wheels: dict[str, Path]) -> None:
    """That of pyproject.toml, and so have the modules."""
    version = read_version()
    assert version == __version__ == trainer.__version__
    for name, path in wheels.items():
        said = Parser().parsestr(metadata(path, "METADATA"))
        assert (said["Name"], said["Version"]) == (name, version)
        assert path.name == f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def test_retraining_has_its_package_whole(wheels: dict[str, Path]) -> None:
    """Every tracked file, data too, and nothing else: no tests, no models of this repository."""
    found = names(wheels["retraining"])
    assert found == {f"retraining/{name}" for name in tracked("plugins/retraining")}
    for example in ("templates/snapshot.sql.j2", "contracts/capabilities.json", "regions/hardware.json"):
        assert f"retraining/package_data/{example}" in found
    assert {name.split("/")[2] for name in found if name.startswith("retraining/package_data/")} == {
        "containers",
        "contracts",
        "prices",
        "regions",
        "templates",
    }


def test_the_others_have_theirs(wheels: dict[str, Path]) -> None:
    """Without what makes images and environments."""
    left_out = re.compile(r"Dockerfile|pyproject\.toml|overrides\.txt|requirements.*")
    expected = {f"trainer/{name}" for name in tracked("trainer") if not left_out.fullmatch(name)}
    assert names(wheels["retraining-trainer"]) == expected
    expected = {name for name in tracked("packages/localcloud/src") if not name.endswith(".in")}
    assert names(wheels["localcloud"]) == expected
    copied = {f"retraining_laptop/requirements/{name}.txt" for name in ("localcloud", "trainer")}
    assert names(wheels["retraining-laptop"]) == set(tracked("packages/laptop/src")) | copied


def test_airflow_is_told_where_things_are(wheels: dict[str, Path]) -> None:
    """Entry points of the provider, the plugin and the program lead to what there is."""
    entries = configparser.ConfigParser()
    entries.read_string(metadata(wheels["retraining"], "entry_points.txt"))
    assert set(entries.sections()) == {"apache_airflow_provider", "airflow.plugins", "console_scripts"}
    for section in entries.sections():
        for target in entries[section].values():
            module, _, name = target.partition(":")
            assert callable(getattr(__import__(module, fromlist=[name]), name))


def test_the_provider_says_what_is_true() -> None:
    """In Airflow's own schema: each module with operators, each link of a button."""
    info: dict[str, Any] = get_provider_info()
    ProvidersManager()._provider_schema_validator.validate(info)
    modules, links = set(), set()
    for path in (ROOT / "plugins" / "retraining" / "operators").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "plugins").with_suffix("").parts)
        classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
        modules |= {module for node in classes if node.name.endswith("Operator")}
        links |= {f"{module}.{node.name}" for node in classes if "ConsoleLink" in map(ast.unparse, node.bases)}
    assert set(info["operators"][0]["python-modules"]) == modules
    assert set(info["extra-links"]) == links
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert info["package-name"] == version["name"]


def test_what_is_imported_is_required() -> None:
    """Each import of the package is of a distribution that its metadata names, or that these bring along."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    required = {re.split(r"[^\w.-]", line)[0] for line in lines}
    needed = set()
    for path in (ROOT / "plugins" / "retraining").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            targets = (
                [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            )
            targets += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for target in targets:
                top = target.split(".")[0]
                if top in sys.stdlib_module_names or top == "retraining":
                    continue
                fits = [name for name in DISTRIBUTIONS if f"{target}.".startswith(f"{name}.")]
                assert fits or top in BROUGHT_ALONG, f"{path.name} imports {target}"
                needed |= {DISTRIBUTIONS[max(fits, key=len)]} if fits else set()
    assert needed == required


def test_it_runs_without_the_checkout(wheels: dict[str, Path], tmp_path: Path) -> None:
    """From the wheel's own files: a repository is made, its model checked, its query rendered, its DAGs built."""
    with zipfile.ZipFile(wheels["retraining"]) as archive:
        archive.extractall(tmp_path / "site")
    environ = {"PYTHONPATH": str(tmp_path / "site"), "AIRFLOW_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    printed = run([PYTHON, "-m", "retraining", "init", "team"], tmp_path, **environ)
    assert "wrote team/dags/retraining_models.py" in printed
    printed = run([PYTHON, "-m", "retraining", "check-models", "--include", "team/include"], tmp_path, **environ)
    assert printed.startswith("late: ok")
    code = """
import json, runpy, sys
found = runpy.run_path("team/dags/retraining_models.py")
from retraining.core.catalog.cost import load_prices
from retraining.core.settings import include_path
assert load_prices(include_path()) is not None
files = sorted({module.__file__ or "" for name, module in sys.modules.items() if name.startswith("retraining")})
print(json.dumps([[name for name in found if hasattr(found[name], "tasks")], files]))
"""
    dags, files = json.loads(run([PYTHON, "-c", code], tmp_path, **environ, RETRAINING_INCLUDE="team/include"))
    assert dags == [
        "retrain__late",
        "monitor__late",
        "walk_forward__late",
        "rollback",
        "rollback__late",
        "maintain",
        "notify_test",
    ]
    assert files
    assert all(file.startswith(str(tmp_path / "site")) for file in files)


def test_without_git_nothing_is_guessed(tmp_path: Path, uv: str) -> None:
    """What is tracked is not known there."""
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    with pytest.raises(BuildError, match="Expected a git checkout"):
        build_all(uv, tmp_path / "dist", tmp_path)


def test_a_failed_build_says_why(wheels: dict[str, Path], tmp_path: Path) -> None:
    """With the last lines of who built."""
    assert wheels
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(BuildError, match=r"pyproject\.toml: broken\. Expected a wheel"):
        build_all(str(program), tmp_path / "dist")
    assert set(WHEELS) == {"retraining", "retraining-trainer", "localcloud", "retraining-laptop"}

"""docker-compose.yaml is valid, names only what exists, and keeps secrets and ports to itself."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from containers.images import STAND_INS
from demo.checkout import PACKAGES_PATH

ROOT = Path(__file__).resolve().parents[3]
COMPOSE = ROOT / "dev" / "compose"
FILE = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
SECRET = re.compile(r"\$\{([A-Z_]+):\?[^}]+\}")


def commands() -> list[list[str]]:
    """Return what the containers run: their commands and health checks, split into words."""
    found = []
    for service in SERVICES.values():
        found += [service[key] for key in ("command", "entrypoint") if key in service]
        test = service.get("healthcheck", {}).get("test")
        if test:
            found.append(shlex.split(test[1]) if test[0] == "CMD-SHELL" else test[1:])
    return found


def environment() -> dict[str, str]:
    """Return the variables that the file sets in any container."""
    return {name: str(value) for service in SERVICES.values() for name, value in service.get("environment", {}).items()}


def test_obeys_the_compose_specification():
    """The file is what the Compose Specification's schema allows."""
    schema = json.loads((COMPOSE / "compose-spec.schema.json").read_text())
    known = {key: value for key, value in FILE.items() if key != "name"}  # a key younger than the vendored schema
    jsonschema.Draft7Validator(schema).validate(known)


def test_a_wrong_file_is_refused():
    """The check above can fail: an unknown key of a service is no Compose file."""
    schema = json.loads((COMPOSE / "compose-spec.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate({"services": {"x": {"image": "y", "prots": []}}})


@pytest.mark.parametrize("name", ["postgres", "localcloud", "api-server", "scheduler", "dag-processor", "triggerer"])
def test_every_server_has_a_health_check(name):
    """What others wait for says whether it is ready."""
    assert SERVICES[name]["healthcheck"]["test"]


def test_paths_exist_and_volumes_are_named():
    """Every mounted path, build context and Dockerfile is in the checkout; every named volume is declared."""
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in FILE["volumes"], (
                f"{name}: {volume}"
            )
        if build := service.get("build"):
            assert (ROOT / build["context"] / build["dockerfile"]).is_file()


@pytest.mark.parametrize("dockerfile", ["dev/compose/localcloud.Dockerfile", "trainer/Dockerfile"])
def test_dockerfiles_copy_what_is_in_the_context(dockerfile):
    """Every COPY source exists in the checkout, and .dockerignore lets it through; of the rest it lets nothing."""
    ignore = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignore[0] == "*"
    allowed = [line.removeprefix("!") for line in ignore if line.startswith("!")]
    assert ".env" not in allowed
    text = (ROOT / dockerfile).read_text()
    for argument, value in re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE):
        text = text.replace(f"${{{argument}}}", value)
    lines = text.splitlines()
    sources = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert sources
    for source in sources:
        assert list(ROOT.glob(source)), source
        assert any(source == folder or source.startswith(f"{folder}/") for folder in allowed), source


def test_images_start_from_one_python_that_has_a_stand_in():
    """A job in a container runs on the Python that the local cloud runs it on without one."""
    files = [
        COMPOSE / "localcloud.Dockerfile",
        ROOT / "trainer" / "Dockerfile",
        *(ROOT / "examples").rglob("Dockerfile"),
    ]
    (base,) = {re.search(r"^FROM (\S+)$", file.read_text(), re.MULTILINE)[1] for file in files}
    assert base in STAND_INS


def test_airflow_commands_exist():
    """Each `airflow …` is a command of the locked Airflow."""
    from airflow.cli.cli_config import core_commands

    known: dict[str, set[str]] = {
        command.name: {sub.name for sub in getattr(command, "subcommands", ())} for command in core_commands
    }
    found = [words for words in commands() if words[0] == "airflow"]
    assert len(found) > 5
    for words in found:
        assert words[1] in known, words
        assert not known[words[1]] or words[2] in known[words[1]], words


def test_localcloud_commands_exist():
    """Each `python -m localcloud …` and `python -m demo.seed …` parses, options included."""
    found = [words for words in commands() if words[:2] == ["python", "-m"]]
    assert len(found) == 3
    python = ROOT / ".venv" / "localcloud" / "bin" / "python"
    for words in found:
        done = subprocess.run(
            [python, *words[1:], "--help"], env={"PYTHONPATH": PACKAGES_PATH}, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        for option in (word for word in words if word.startswith("--")):
            assert option.encode() in done.stdout, option


def test_the_entry_point_needs_only_the_standard_library():
    """`localcloud env` runs in the Airflow image, which has nothing of the local cloud's environment."""
    script = (COMPOSE / "with-localcloud.sh").read_text()
    assert "python -m localcloud env" in script
    python = ROOT / ".venv" / "airflow" / "bin" / "python"
    command = [
        python,
        "-I",
        "-S",
        "-c",
        "import sys; sys.path.insert(0, 'packages/localcloud/src'); import localcloud.command.cli",
    ]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_airflow_variables_are_options_of_airflow():
    """Each AIRFLOW__SECTION__KEY is an option that the locked Airflow knows."""
    from airflow.configuration import conf

    known = conf.configuration_description
    names = [name for name in environment() if name.startswith("AIRFLOW__")]
    assert len(names) > 8
    for name in names:
        _, section, option = name.lower().split("__")
        assert option in known[section]["options"], name


def test_secrets_come_from_outside():
    """No password is in the file: each is asked for by name, refused when missing, and made by make_env.py."""
    asked = set(SECRET.findall((ROOT / "docker-compose.yaml").read_text()))
    spec = importlib.util.spec_from_file_location("make_env", COMPOSE / "make_env.py")
    assert spec is not None
    assert spec.loader is not None
    make_env = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_env)
    made, again = make_env.environment(), make_env.environment()
    assert set(made) == asked
    assert all(made[name] != again[name] for name in made)
    for name, value in environment().items():
        if re.search(r"PASSWORD$|SECRET|FERNET|_CONN$", name):
            assert SECRET.search(value), name


def test_ports_are_on_loopback_and_nobody_is_root():
    """What is published is published to this machine; the servers run as an ordinary user."""
    for name, service in SERVICES.items():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name}: {port}"
        if name not in {"postgres", "volume-owner"}:  # the first drops root by itself, the second only changes owners
            assert service["user"] == "50000:0", name


def test_images_are_pinned():
    """Every image has a tag that is not a moving one."""
    for name, service in SERVICES.items():
        if image := service.get("image"):
            assert re.search(r":\d+\.\d+", image), f"{name}: {image}"

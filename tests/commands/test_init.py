"""The command `init`: a team's repository, whose models, DAG file, tests and scripts work as they come."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from retraining import __version__
from retraining.__main__ import main
from retraining.core.team_repository import FILES, FLIGHTS_PATH

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = (".github/workflows/models.yaml", "cloudbuild/check.yaml", "cloudbuild/deploy.yaml")


@pytest.fixture
def team(tmp_path, capsys):
    """A repository as the command makes it."""
    assert main(["init", str(tmp_path / "team")]) == 0
    assert f"wrote {tmp_path}/team/include/models/late.yaml" in capsys.readouterr().out
    return tmp_path / "team"


def script(team, name, *arguments, **programs):
    """Run a script of the repository beside programs of these texts; returns status and what they were called with."""
    folder = team.parent / "programs"
    folder.mkdir(exist_ok=True)
    calls = team.parent / "calls"
    calls.write_text("")
    for program, text in programs.items():
        (folder / program).write_text(f'#!/bin/bash\necho "{program} $*" >> {calls}\n{text}\n')
        (folder / program).chmod(0o755)
    environ = {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", f"{team}/ci/{name}", *arguments], env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    return done, calls.read_text().splitlines()


def test_it_has_models_and_three_lines_and_no_software(team):
    found = {path.relative_to(team).as_posix() for path in team.rglob("*") if path.is_file()}
    assert found == {*FILES, FLIGHTS_PATH}
    own = {"dags/retraining_models.py", "include/gates/late.py", "tests/test_models.py"}
    assert {name for name in found if name.endswith(".py")} == own
    lines = (team / "dags" / "retraining_models.py").read_text().splitlines()
    assert len([line for line in lines if line]) == 3
    assert f"retraining=={__version__}\n" in (team / "requirements.txt").read_text()
    assert (team / "README.md").read_text().startswith("# team\n")
    assert not [name for name in found if re.search(r"\[\[|\]\]", (team / name).read_text().replace("[[ -", ""))]


def test_its_model_is_valid_and_its_test_passes(team, capsys):
    assert main(["check-models", "--include", str(team / "include")]) == 0
    ok = "ok (2 features, wide_deep, no schedule)"
    assert capsys.readouterr().out.splitlines() == [
        f"late: {ok}",
        "environments.yaml: dev (all models), staging (all models), production (the models as they are)",
        *(f"late in {stage}: {ok}" for stage in ("dev", "staging", "production")),
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(team), "tests"]
    done = subprocess.run(command, cwd=team, env=environ, capture_output=True, text=True, check=False, timeout=300)
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    broken = (team / "include" / "models" / "late.yaml").read_text().replace("label:", "lable:")
    (team / "include" / "models" / "late.yaml").write_text(broken)
    done = subprocess.run(command, cwd=team, env=environ, capture_output=True, text=True, check=False, timeout=300)
    assert "1 failed, 3 passed" in done.stdout
    assert "lable" in done.stdout


@pytest.mark.parametrize("there", ["notes.txt", ".env"])
def test_a_folder_that_has_something_is_refused_by_name(tmp_path, capsys, there):
    (tmp_path / there).write_text("mine")
    assert main(["init", str(tmp_path)]) == 1
    assert f"{tmp_path}: not empty: {there!r}. Expected a folder that is new or empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["init", str(tmp_path / "file")]) == 1
    assert "a file. Expected a folder" in capsys.readouterr().err


def test_an_empty_repository_of_git_is_taken(tmp_path):
    (tmp_path / ".git").mkdir()
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / "include" / "sql" / "late" / "examples.sql").is_file()


@pytest.mark.parametrize("path", WORKFLOWS)
def test_workflows_call_what_is_there(team, path):
    """Well-formed YAML, whose scripts and requirements are in the repository, and whose shell is well-formed too."""
    text = (team / path).read_text()
    named = set(re.findall(r"ci/\w+\.sh|requirements[\w-]*\.txt", text))
    assert named
    assert all((team / name).is_file() for name in named)
    shells = [block for block in _texts(yaml.safe_load(text)) if "\n" in block]
    for block in shells:
        done = subprocess.run(
            ["bash", "-n"], input=block.replace("$$", "$"), text=True, capture_output=True, check=False
        )
        assert not done.returncode, done.stderr


def _texts(value):
    if isinstance(value, dict | list):
        return [text for each in (value.values() if isinstance(value, dict) else value) for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def test_a_pull_request_is_checked_a_merge_goes_to_staging_and_a_tag_to_production(team):
    workflow = yaml.safe_load((team / WORKFLOWS[0]).read_text())
    check, deploy = (yaml.safe_dump(workflow["jobs"][name]) for name in ("check", "deploy"))
    assert workflow["jobs"]["check"]["if"] == "github.event_name == 'pull_request'"
    assert "retraining check-models" in check
    assert "ci/preview.sh" in check
    assert workflow["jobs"]["deploy"]["if"] == "github.event_name == 'push'"
    assert workflow[True]["push"] == {"branches": ["main"], "tags": ["v*"]}  # YAML takes `on` for true
    environment = workflow["jobs"]["deploy"]["environment"]
    assert environment == "${{ github.ref_type == 'tag' && 'production' || 'staging' }}"
    assert "ci/deploy.sh" in deploy


def test_only_models_that_changed_are_previewed(team):
    """By the files of a pull request, in the shell of the workflow; what is gone and what is no model's is not."""
    steps = yaml.safe_load((team / WORKFLOWS[0]).read_text())["jobs"]["check"]["steps"]
    (block,) = (step["run"] for step in steps if step.get("name") == "preview what changed")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(team)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    (team / "include" / "models" / "gone.yaml").write_text("name: gone\n")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    (team / "include" / "models" / "gone.yaml").unlink()
    (team / "include" / "models" / "other.yaml").write_text("name: other\n")
    with (team / "include" / "sql" / "late" / "examples.sql").open("a") as file:
        file.write("-- changed\n")
    (team / "README.md").write_text("changed\n")
    subprocess.run([*git, "checkout", "-qb", "change"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "second"], check=True)
    (team / "ci" / "preview.sh").write_text('echo "preview $*"\n')
    environ = {"PATH": os.environ["PATH"], "BASE": "main"}
    command = ["bash", "-euo", "pipefail", "-c", block]
    done = subprocess.run(command, cwd=team, env=environ, text=True, capture_output=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("preview late other\n", 0), done.stderr


def test_each_model_is_previewed_and_one_that_is_not_fit_fails_the_others_not(team):
    (team / "include" / "models" / "other.yaml").write_text("name: other\n")
    done, calls = script(team, "preview.sh", retraining='test "$2" = other')
    assert calls == ["retraining preview late", "retraining preview other"]
    assert done.returncode == 1
    assert done.stderr == "not fit to train on, or not to be read: late\n"
    done, calls = script(team, "preview.sh", "other", retraining='echo "$RETRAINING_INCLUDE"')
    assert (calls, done.returncode) == (["retraining preview other"], 0)
    assert f"{team}/include" in done.stdout


def test_models_are_brought_before_dags_and_to_a_bucket_that_is_named(team):
    done, calls = script(team, "deploy.sh", "composer-bucket", gcloud="")
    assert done.returncode == 0, done.stderr
    rsync = "gcloud storage rsync --recursive --delete-unmatched-destination-objects"
    assert calls == [
        f"{rsync} --exclude ^teams/ include gs://composer-bucket/dags/include",
        "gcloud storage cp dags/.airflowignore dags/retraining_models.py gs://composer-bucket/dags/",
    ]
    done, calls = script(team, "deploy.sh", "composer-bucket", gcloud="exit 1")
    assert (done.returncode, len(calls)) == (1, 1)
    done, calls = script(team, "deploy.sh", "composer-bucket", "growth", gcloud="")
    assert calls == [f"{rsync} include gs://composer-bucket/dags/include/teams/growth"]
    done, calls = script(team, "deploy.sh", "composer-bucket", "../growth", gcloud="")
    assert (done.returncode, calls) == (2, [])
    done, calls = script(team, "deploy.sh", gcloud="")
    assert done.returncode == 1
    assert "expected the name of a bucket" in done.stderr
    assert not calls


@pytest.mark.parametrize("path", WORKFLOWS)
def test_nothing_is_deployed_unchecked(team, path):
    """Where a workflow deploys, the models are checked in a step before it."""
    document = yaml.safe_load((team / path).read_text())
    jobs = document["jobs"].values() if "jobs" in document else [document]
    for job in jobs:
        texts = [text for step in job["steps"] for text in _texts(step)]
        first = next(text for text in texts if "retraining check" in text or "deploy.sh" in text)
        assert "retraining check-models --include include" in first

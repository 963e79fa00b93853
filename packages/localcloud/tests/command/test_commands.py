"""`localcloud exec` and `localcloud faults`, as a person types them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import storage

from localcloud.command import cli
from localcloud.command.fault_client import FaultClient
from localcloud.faults import FaultError
from localcloud.state import State
from tests.support.local_cloud import run_localcloud


def execute(local_cloud, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command by `localcloud exec`."""
    return run_localcloud("exec", "--state", str(local_cloud.state_path), "--", *words, check=False)


class TestExec:
    """The command runs as if it had been typed, in another environment."""

    def test_its_environment_leads_here(self, local_cloud):
        """With what is this cloud's, and without what must not be set."""
        script = "import json, os; print(json.dumps(dict(os.environ)))"
        environ = json.loads(execute(local_cloud, "python3", "-c", script).stdout)
        assert {name: environ.get(name, "") for name in local_cloud.env if name not in VARYING} == {
            name: value for name, value in local_cloud.env.items() if name not in VARYING
        }

    def test_its_words_and_its_exit_code_stay(self, local_cloud):
        """Also options and another `--`."""
        script = 'printf "%s\\n" "$@" >&2; exit 7'
        done = execute(local_cloud, "sh", "-c", script, "sh", "--json", "--", "a b")
        assert (done.returncode, done.stderr) == (7, "--json\n--\na b\n")

    def test_a_program_that_is_not_there(self, local_cloud):
        """Is named."""
        done = execute(local_cloud, "no-such-program")
        assert done.returncode == 2
        assert done.stderr.startswith("localcloud: exec no-such-program: no such program. Expected one on the PATH")

    @pytest.mark.parametrize("words", [["exec", "true"], ["faults"], ["faults", "add", "x", "error"]], ids=" ".join)
    def test_nothing_runs_without_a_cloud(self, tmp_path: Path, capsys, words: list[str]) -> None:
        """A clean refusal instead of a command that reaches the real cloud."""
        assert cli.main([words[0], "--state", str(tmp_path), *words[1:]]) == 2
        assert "Start it with `localcloud up`" in capsys.readouterr().err


# A token names its hour, and what stood before in these is kept behind.
VARYING = {"GOOGLE_AUTH_TOKEN_FOR_TESTING", "PYTHONPATH"}


@pytest.fixture
def no_faults(local_cloud) -> Iterator[None]:
    """What a test leaves in force is taken back."""
    yield
    local_cloud.run("faults", "remove")


@pytest.mark.usefixtures("no_faults")
class TestFaults:
    """The command line of `/faults`."""

    def test_added_listed_met_and_gone(self, local_cloud):
        """Its numbers are numbers, its defaults are filled in; a count later it is over."""
        target = "storage.buckets.get gs://faulty"
        words = ["faults", "add", target, "error", "code=PERMISSION_DENIED", "message=as asked", "--count", "1"]
        added = json.loads(local_cloud.run(*words).stdout)
        assert (added["target"], added["count"], added["skip"]) == (target, 1, 0)
        assert (added["action"]["kind"], added["action"]["seconds"]) == ("error", 0.0)
        assert [json.loads(line) for line in local_cloud.run("faults").stdout.splitlines()] == [added]
        client = storage.Client(project=local_cloud.project)
        with pytest.raises(exceptions.Forbidden, match="as asked"):
            client.get_bucket("faulty")
        with pytest.raises(exceptions.NotFound):
            client.get_bucket("faulty")
        assert local_cloud.run("faults", "list").stdout == ""

    def test_one_is_removed_or_all(self, local_cloud):
        """By number; without one, all of them."""
        numbers = [
            json.loads(local_cloud.run("faults", "add", f"Job.Start{index}", "delay", "seconds=0.5").stdout)["id"]
            for index in range(3)
        ]
        local_cloud.run("faults", "remove", str(numbers[1]))
        left = [json.loads(line) for line in local_cloud.run("faults", "list").stdout.splitlines()]
        assert [fault["id"] for fault in left] == [numbers[0], numbers[2]]
        assert left[0]["action"]["seconds"] == 0.5
        local_cloud.run("faults", "remove")
        assert local_cloud.run("faults", "list").stdout == ""

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["add", "x", "error", "secs=1"], "faults: unknown key 'secs'"),
            (["add", "x", "delay", "seconds=long"], "faults: 'seconds=long'. Expected a number behind seconds=."),
            (["add", "x", "error", "code=BAD"], "and code a name of google.rpc.Code"),
            (["add", "x", "explode"], "invalid choice: 'explode'"),
            (["remove", "123456"], "The fault 123456 does not exist"),
        ],
        ids=["key", "number", "code", "kind", "gone"],
    )
    def test_what_is_wrong_is_said(self, local_cloud, words, message):
        """And nothing is in force after it."""
        done = local_cloud.run("faults", *words, check=False)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert local_cloud.run("faults").stdout == ""

    def test_the_server_has_the_last_word(self, local_cloud):
        """What only it can know comes back as its message."""
        fault = {"target": "Job.Start", "filter": "nonsense(", "action": {"kind": "error"}}
        with pytest.raises(FaultError, match="nonsense"):
            FaultClient(State(local_cloud.state_path)).add(fault)

"""`python -m demo.shell`: the environment of a person's shell beside a running demonstration, for `eval`.

Comes in: the folder that the demonstration keeps its state in. Goes out: `export` lines: Google's clients talk to its
local cloud, `airflow` to its Airflow, and `python` is the one that has them.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from demo.checkout import REPOSITORY_PATH
from demo.system import AIRFLOW_ENVIRONMENT_PATH
from localcloud.environment.variables import client_environment, render_exports
from localcloud.errors import LocalCloudError
from retraining_laptop.airflow import SETTINGS_NAME


def main() -> int:
    """Print the lines; return the exit code."""
    parser = argparse.ArgumentParser(prog="demo.shell", description="Print the environment of the demonstration.")
    parser.add_argument("--home", type=Path, default=REPOSITORY_PATH / "build", help="folder of everything it keeps")
    home_path = parser.parse_args().home.absolute()
    settings_path = home_path / "airflow" / SETTINGS_NAME
    try:
        if not settings_path.exists():
            raise LocalCloudError(
                str(home_path),
                found="no demonstration was started here",
                expected="one that runs",
                way_out="Run `make demo` in another terminal and wait until it prints the login.",
            )
        state_path = Path(os.environ.get("LOCALCLOUD_STATE") or home_path / "localcloud")
        variables = {**client_environment(state_path), **json.loads(settings_path.read_text())}
    except LocalCloudError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(render_exports(variables))
    print(f'export PATH={shlex.quote(str(AIRFLOW_ENVIRONMENT_PATH / "bin"))}:"$PATH"')
    return 0


if __name__ == "__main__":
    sys.exit(main())

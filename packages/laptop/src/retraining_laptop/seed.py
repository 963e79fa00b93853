"""`python -m retraining_laptop.seed`: a folder's tables and objects, and the dataset of runs, into a local cloud."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from localcloud.command.seed import read_folder, seed
from localcloud.environment.variables import client_environment
from localcloud.errors import LocalCloudError
from localcloud.state import State


def main() -> int:
    """Load what is missing; return the exit code (2: refused)."""
    parser = argparse.ArgumentParser(prog="retraining_laptop.seed", description="Load a folder into a local cloud.")
    parser.add_argument("--state", type=Path, required=True, help="state directory")
    parser.add_argument("--data", type=Path, required=True, help="the folder")
    options = parser.parse_args()
    state = State(options.state)
    try:
        folder = read_folder(options.data)
        os.environ.update(client_environment(state.path))
        datasets = (*folder.datasets, os.environ["RETRAINING_DATASET"])
        for line in seed(replace(folder, datasets=tuple(dict.fromkeys(datasets))), state.read_settings()):
            print(line, flush=True)
    except LocalCloudError as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

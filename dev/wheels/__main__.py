"""`python -m wheels --uv UV --out DIR`: build every package, print the paths of the wheels."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from wheels.build import BuildError, build_all


def main(arguments: list[str] | None = None) -> int:
    """Build; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m wheels", description="Build the packages that others install.")
    parser.add_argument("--uv", required=True, help="the program uv")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder of the wheels (default: dist)")
    options = parser.parse_args(arguments)
    try:
        for path in build_all(options.uv, options.out):
            print(path)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Which Python environment stands for which container image, and which images run as containers.

Comes in: `images.json` here, and, laid over it, what `up --config` was given and `vertex/images.json` in the state
directory. An environment has the path of its `python`, and a `variable` that replaces it; without either it is the
local cloud's own. An `entrypoint` is the image's own; `python` in it is the environment's. An image of
`"runtime": "container"` has no environment: podman runs it. Goes out: an `Image` for a URI.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
import sys
from pathlib import Path
from typing import Any, Literal, get_args

Use = Literal["training", "serving"]
Runtime = Literal["process", "container"]
# Environments that are made beside the local cloud's own.
NEIGHBOURS_PATH = Path(sys.prefix).parent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Image:
    """What runs when an image is started.

    Args:
        pattern: Shell pattern that the URI fitted.
        runtime: What a replica, or a served model, is: a process of this machine, or the image's container.
        python: A process's interpreter; its folder comes first on the PATH.
        import_roots: Folders on the PYTHONPATH.
        entrypoint: What a process runs where its spec names no command; none: it must name one.
        healthy_within_s: How long a served model may take until its health route answers.
    """

    pattern: str
    use: Use
    runtime: Runtime
    python: Path
    import_roots: tuple[Path, ...]
    entrypoint: tuple[str, ...] = ()
    healthy_within_s: float = 120.0


class Images:
    """The table of images.

    Args:
        paths: Files of the same form as images.json, whose entries go first, those of the first path before the next's;
            they need not exist.

    Raises:
        ValueError: A file of the table cannot be used; the message says why.
    """

    def __init__(self, *paths: Path) -> None:
        files = [path for path in (*paths, Path(__file__).with_name("images.json")) if path.exists()]
        tables = [(path, json.loads(path.read_text())) for path in files]
        self._pythons: dict[str, Path] = {}
        for path, table in reversed(tables):
            environments = table.get("environments", {})
            self._pythons |= {name: _python(each, path.parent) for name, each in environments.items()}
        self._images = [self._read_image(entry, path) for path, table in tables for entry in table.get("images", [])]

    def find_image(self, uri: str, use: Use) -> Image | None:
        """Return what stands for an image, or None when the table does not know it."""
        return next(
            (image for image in self._images if image.use == use and fnmatch.fnmatchcase(uri, image.pattern)), None
        )

    def patterns(self, use: Use) -> list[str]:
        """Return patterns of a use, for messages."""
        return [image.pattern for image in self._images if image.use == use]

    def _read_image(self, entry: dict[str, Any], path: Path) -> Image:
        runtime = entry.get("runtime", "process")
        if runtime not in get_args(Runtime):
            raise ValueError(f"{path}: image {entry!r} has the runtime {runtime!r}. Expected process or container.")
        try:
            return Image(
                pattern=entry["pattern"],
                use=entry["use"],
                runtime=runtime,
                python=self._pythons[entry["environment"] if runtime == "process" else "own"],
                import_roots=tuple(path.parent / part for part in entry.get("import_roots", [])),
                entrypoint=tuple(_word(word, path.parent) for word in entry.get("entrypoint", [])),
                healthy_within_s=entry.get("healthy_within_s", Image.healthy_within_s),
            )
        except KeyError as error:
            raise ValueError(
                f"{path}: image {entry!r} has no {error}. Expected the form of the entries in processes/images.json."
            ) from error


def _word(word: str, folder: Path) -> str:
    """Return a word of an entry point; one that begins with ./ is a path from the table's folder."""
    return os.path.normpath(folder / word) if word.startswith("./") else word


def _python(environment: dict[str, str], folder: Path) -> Path:
    """Return an environment's interpreter, not resolved: a virtual environment's is a link whose own place matters."""
    return folder / (os.environ.get(environment.get("variable", "")) or environment.get("python") or sys.executable)

"""Container images without containers: which Python environment stands for which image.

Comes in: `images.json` here, and, laid over it, one in the state directory. Goes out: an `Image` for a URI.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
from pathlib import Path
from typing import Any, Literal

Use = Literal["training", "serving"]
REPOSITORY_PATH = Path(__file__).resolve().parents[3]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Image:
    """What runs when an image is started.

    Args:
        pattern: Shell pattern that the URI fitted.
        use: What the image is for.
        python: Interpreter; its folder comes first on the PATH.
        import_roots: Folders on the PYTHONPATH.
    """

    pattern: str
    use: Use
    python: Path
    import_roots: tuple[Path, ...]


class Images:
    """The table of images.

    Args:
        extra_path: A file of the same form as images.json whose entries go first; need not exist.
        root: What relative paths in the table start from.

    Raises:
        ValueError: A file of the table cannot be used; the message says why.
    """

    def __init__(self, extra_path: Path | None = None, root: Path = REPOSITORY_PATH) -> None:
        self._root = root
        files = [
            path for path in (extra_path, Path(__file__).with_name("images.json")) if path is not None and path.exists()
        ]
        tables = [(path, json.loads(path.read_text())) for path in files]
        self._environments: dict[str, Any] = {}
        for _, table in reversed(tables):
            self._environments.update(table.get("environments", {}))
        self._images = [self._read(entry, path) for path, table in tables for entry in table.get("images", [])]

    def find(self, uri: str, use: Use) -> Image | None:
        """What stands for an image, or None when the table does not know it."""
        return next(
            (image for image in self._images if image.use == use and fnmatch.fnmatchcase(uri, image.pattern)), None
        )

    def patterns(self, use: Use) -> list[str]:
        """Patterns of a use, for messages."""
        return [image.pattern for image in self._images if image.use == use]

    def _read(self, entry: dict[str, Any], path: Path) -> Image:
        try:
            environment = self._environments[entry["environment"]]
            python = os.environ.get(environment.get("variable", ""), "") or environment["python"]
            # Not resolved: a virtual environment's python is a link whose own place matters.
            return Image(
                pattern=entry["pattern"],
                use=entry["use"],
                python=self._root / python,
                import_roots=tuple(self._root / part for part in entry.get("import_roots", [])),
            )
        except KeyError as error:
            raise ValueError(
                f"{path}: image {entry!r} has no {error}. Expected the form of the entries in vertex/images.json."
            ) from error

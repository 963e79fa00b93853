"""What a local cloud knows of whom it serves: its bucket, more variables for its clients, its jobs' images.

In: a JSON file, named with `up --config`; every key is optional, paths start from the file's own folder. Out: the same
in the state directory, with whole paths, for the servers and for every later `up` without the option.

    {"bucket": "my-bucket",
     "variables": {"MY_FOLDER": "gs://$bucket/mine"},
     "environments": {"mine": {"python": "../.venv/bin/python", "variable": "MY_PYTHON"}},
     "images": [{"pattern": "*/my/image:*", "use": "training", "environment": "mine", "import_roots": [".."]}]}

`variables` know `$project`, `$region` and `$bucket`. `environments` and `images` are those of
`vertex/processes/images.json`.
"""

from __future__ import annotations

import json
import os
import string
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from localcloud.errors import LocalCloudError
from localcloud.state import Settings, State


@dataclass(frozen=True, kw_only=True)
class Config:
    """The file's content, its paths whole."""

    bucket: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    environments: dict[str, dict[str, str]] = field(default_factory=dict)
    images: list[dict[str, Any]] = field(default_factory=list)

    def client_variables(self, settings: Settings) -> dict[str, str]:
        """Return the variables with the cloud's own names in them."""
        names = {"project": settings.project, "region": settings.region, "bucket": settings.bucket}
        return {name: string.Template(value).safe_substitute(names) for name, value in self.variables.items()}


def read_config(path: Path) -> Config:
    """Read a file.

    Raises:
        LocalCloudError: it is not there, no JSON, or has other keys.
    """
    try:
        config = Config(**json.loads(path.read_text(encoding="utf-8")))
        return replace(
            config,
            environments={name: _with_whole_paths(each, path) for name, each in config.environments.items()},
            images=[_with_whole_paths(each, path) for each in config.images],
        )
    except (OSError, ValueError, TypeError, AttributeError) as error:  # no file, no JSON, an unknown key, no table
        raise LocalCloudError(
            str(path),
            found=str(error),
            expected=f"a JSON object with some of: {', '.join(each.name for each in fields(Config))}",
            way_out="README.md of the local cloud has an example",
        ) from error


def remember_config(state: State, path: Path) -> Config:
    """Keep a file's content in the state directory, in place of what was there; give it.

    Raises:
        LocalCloudError: as `read_config`.
    """
    config = read_config(path)
    state.path.mkdir(parents=True, exist_ok=True)
    temporary = state.config_path.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(config), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(state.config_path)
    return config


def remembered_config(state: State) -> Config:
    """Return what the state directory keeps; an empty one when `up` was never given any."""
    return read_config(state.config_path) if state.config_path.exists() else Config()


def _with_whole_paths(entry: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return an entry of either table; links stay, because a virtual environment's python is one."""
    folder, whole = path.absolute().parent, dict(entry)
    if "python" in whole:
        whole["python"] = os.path.normpath(folder / whole["python"])
    if "import_roots" in whole:
        whole["import_roots"] = [os.path.normpath(folder / root) for root in whole["import_roots"]]
    if "entrypoint" in whole:
        words = whole["entrypoint"]
        whole["entrypoint"] = [os.path.normpath(folder / word) if word.startswith("./") else word for word in words]
    return whole

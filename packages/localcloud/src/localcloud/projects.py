"""The projects that there are: their ids and numbers, and whose each bucket is.

In: the settings of a local cloud. Out: ids for numbers and the other way round (the service takes either wherever it
takes a project), and the owner of a bucket.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from localcloud.state import State

FIRST_NUMBER = 123456789012
_PREFIX = re.compile(r"(?P<before>^|/)projects/(?P<project>[0-9]+)(?=/|$)")


class Projects:
    """Ids and numbers.

    Args:
        ids: The projects' ids, the main one first; their order gives them their numbers.
        path: A JSON file with the owners of buckets; None: all belong to the main project.
    """

    def __init__(self, ids: list[str], path: Path | None = None) -> None:
        self.ids = ids
        self._numbers = {project: str(FIRST_NUMBER + index) for index, project in enumerate(ids)}
        self._path = path

    @classmethod
    def of(cls, state: State) -> Projects:
        """Read the projects of a local cloud."""
        settings = state.read_settings()
        return cls([settings.project, *settings.other_projects], state.path / "bucket-owners.json")

    @property
    def main(self) -> str:
        """The project that clients work in when they name none."""
        return self.ids[0]

    def find_id(self, project: str) -> str | None:
        """Return the id of a project named by id or number; None when there is none."""
        if project in self._numbers:
            return project
        return next((each for each, number in self._numbers.items() if number == project), None)

    def number(self, project: str | None) -> str:
        """Return a project's number, the main one's for None."""
        return self._numbers[self.find_id(project or self.main) or self.main]

    def with_ids(self, name: str) -> str:
        """Return a resource name with ids where it has numbers of these projects."""

        def replace(match: re.Match[str]) -> str:
            return f"{match['before']}projects/{self.find_id(match['project']) or match['project']}"

        return _PREFIX.sub(replace, name) if "projects/" in name else name

    def own(self, bucket: str, project: str) -> None:
        """Note whose a new bucket is."""
        if self._path is not None and self.find_id(project) != self.main:
            owners = {**self._owners(), bucket: self.find_id(project)}
            temporary = self._path.with_suffix(".new")
            temporary.write_text(json.dumps(owners, indent=2, sort_keys=True) + "\n")
            temporary.replace(self._path)

    def owner(self, bucket: str) -> str:
        """Return the id of the project that a bucket belongs to."""
        return self._owners().get(bucket, self.main)

    def _owners(self) -> dict[str, str]:
        if self._path is None or not self._path.exists():
            return {}
        owners: dict[str, str] = json.loads(self._path.read_bytes())
        return owners

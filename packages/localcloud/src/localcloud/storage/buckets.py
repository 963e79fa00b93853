"""Buckets: directories, with attributes beside them.

In: names, attributes. Out: resources of the JSON API. Whose a bucket is stands in `localcloud.projects`, where every
server looks.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from localcloud.projects import Projects
from localcloud.storage.attributes import BASE, merge_bucket, time_text
from localcloud.storage.calls import Document
from localcloud.storage.objects import Objects
from localcloud.storage.refusals import RefusedError, no_such_bucket

_REGION = r"(AFRICA|ASIA|AUSTRALIA|EUROPE|ME|NORTHAMERICA|SOUTHAMERICA|US)-[A-Z]+[0-9]+"
_MULTI_REGIONS = {"US", "EU", "ASIA"}
DEFAULT_LOCATION = "US"
"""https://cloud.google.com/storage/docs/json_api/v1/buckets: of a bucket that is made without one."""
_PLACE = re.compile(f"{_REGION}|US|EU|ASIA|NAM4|EUR[0-9]|ASIA1")


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A bucket, and what is kept of it."""

    name: str
    document: Document
    number: str

    @property
    def generation(self) -> int:
        """When it was made."""
        return int(self.document["created"])

    @property
    def metageneration(self) -> int:
        """How often its attributes were changed, from 1."""
        return int(self.document["metageneration"])

    @property
    def etag(self) -> str:
        """Its entity tag."""
        return f"{self.generation:x}-{self.metageneration:x}"

    def resource(self) -> Document:
        """Return the resource of the JSON API."""
        place = _location_type(self.document["attributes"])
        return {
            "kind": "storage#bucket",
            "id": self.name,
            "selfLink": f"{BASE}/b/{self.name}",
            "name": self.name,
            "projectNumber": self.number,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "etag": self.etag,
            "timeCreated": time_text(self.document["created"]),
            "updated": time_text(self.document["updated"]),
            "storageClass": "STANDARD",
            "locationType": place,
            **({} if place == "region" else {"rpo": "DEFAULT"}),
            "versioning": {"enabled": False},
            "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
            **self.document["attributes"],
        }


def _location_type(attributes: Document) -> str:
    if attributes.get("customPlacementConfig") or not re.fullmatch(_REGION, attributes["location"]):
        is_wide = attributes["location"] in _MULTI_REGIONS and not attributes.get("customPlacementConfig")
        return "multi-region" if is_wide else "dual-region"
    return "region"


def _with_times(old: Document, new: Document, now: int) -> Document:
    """Return attributes with what the service says beside them: since when a setting holds, and what it leaves out.

    https://cloud.google.com/storage/docs/json_api/v1/buckets: autoclass, softDeletePolicy.
    """
    filled = dict(new)
    if new.get("softDeletePolicy") and _settings(new, "softDeletePolicy") != _settings(old, "softDeletePolicy"):
        filled["softDeletePolicy"] = {**new["softDeletePolicy"], "effectiveTime": time_text(now)}
    if new.get("autoclass"):
        before, after = old.get("autoclass") or {}, dict(new["autoclass"])
        if after.get("enabled"):
            after.setdefault("terminalStorageClass", "NEARLINE")
        for name, time_name in (("enabled", "toggleTime"), ("terminalStorageClass", "terminalStorageClassUpdateTime")):
            if name in after:
                same = before.get(name) == after[name] and time_name in before
                after[time_name] = before[time_name] if same else time_text(now)
        filled["autoclass"] = after
    return filled


def _settings(attributes: Document, name: str) -> Document:
    """Return what a caller says in an attribute."""
    return {key: value for key, value in (attributes.get(name) or {}).items() if key != "effectiveTime"}


class Buckets:
    """All buckets.

    Args:
        location: Of the bucket that `up` makes; one of a caller's own is in DEFAULT_LOCATION unless it says.
    """

    def __init__(
        self, objects: Objects, projects: Projects, location: str, now: Callable[[], float] = time.time
    ) -> None:
        self._objects = objects
        self._projects = projects
        self._location = location
        self._now = now

    def find(self, name: str) -> Bucket | None:
        """Return a bucket, None where there is none."""
        path = self._objects.root / name
        if not path.is_dir():
            return None
        row = self._objects.connection.execute("SELECT document FROM buckets WHERE name = ?", (name,)).fetchone()
        if row is None:  # of an earlier release, or made by `up`
            document = self._document({}, int(path.stat().st_mtime_ns // 1000))
            self._write(name, document)
        else:
            document = json.loads(row[0])
        return Bucket(name=name, document=document, number=self._projects.number(self._projects.owner(name)))

    def require(self, name: str) -> Bucket:
        """Return a bucket.

        Raises:
            RefusedError: There is no such bucket.
        """
        bucket = self.find(name)
        if bucket is None:
            raise no_such_bucket()
        return bucket

    def list_all(self, project: str, prefix: str) -> list[Bucket]:
        """Return a project's buckets by name.

        Raises:
            RefusedError: There is no such project.
        """
        number = self._number(project)
        known = sorted(path.name for path in self._objects.root.iterdir() if path.is_dir())
        found = [self.find(name) for name in known if name.startswith(prefix)]
        return [bucket for bucket in found if bucket is not None and bucket.number == number]

    def create(self, name: str, project: str, attributes: Document) -> Bucket:
        """Make a bucket.

        Raises:
            RefusedError: There is one of that name, or no such project.
        """
        self._number(project)
        if self.find(name) is not None:
            message = "Your previous request to create the named bucket succeeded and you already own it."
            raise RefusedError(409, message)
        made = int(self._now() * 1_000_000)
        filled = _with_times({}, merge_bucket({"location": DEFAULT_LOCATION}, attributes), made)
        self._write(name, self._document(filled, made))
        if project:
            self._projects.own(name, project)
        (self._objects.root / name).mkdir()
        return self.require(name)

    def change(self, bucket: Bucket, attributes: Document) -> Bucket:
        """Return a bucket other attributes."""
        updated = int(self._now() * 1_000_000)
        filled = _with_times(bucket.document["attributes"], attributes, updated)
        changes = {"metageneration": bucket.metageneration + 1, "updated": updated, "attributes": filled}
        self._write(bucket.name, {**bucket.document, **changes})
        return self.require(bucket.name)

    def delete(self, bucket: Bucket) -> None:
        """Take an empty bucket away.

        Raises:
            RefusedError: There is an object in it, or a noncurrent generation of one.
        """
        if self._objects.walk(bucket.name) or self._objects.noncurrent.walk(bucket.name):
            message = "The bucket you tried to delete is not empty."
            raise RefusedError(409, message, xml_code="BucketNotEmpty")
        self._objects.forget_bucket(bucket.name)

    def _number(self, project: str) -> str:
        if project and self._projects.find_id(project) is None:
            raise RefusedError(400, f"Unknown project id: {project}")
        return self._projects.number(project or None)

    def _document(self, attributes: Document, created: int) -> Document:
        kept = {"location": self._location, **attributes}
        kept["location"] = str(kept["location"]).upper()
        if not _PLACE.fullmatch(kept["location"]):
            found = kept["location"][:100]
            raise RefusedError(400, f"The specified location constraint is not valid: {found!r}. Expected a region.")
        return {"metageneration": 1, "created": created, "updated": created, "attributes": kept}

    def _write(self, name: str, document: Document) -> None:
        self._objects.connection.execute("INSERT OR REPLACE INTO buckets VALUES (?, ?)", (name, json.dumps(document)))

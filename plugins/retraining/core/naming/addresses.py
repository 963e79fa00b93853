"""Addresses of objects and folders in buckets, taken apart: `gs://<bucket>/<path>`."""

from __future__ import annotations

from dataclasses import dataclass

SCHEME = "gs://"


@dataclass(frozen=True, kw_only=True)
class ObjectAddress:
    """An object's or a folder's place: its bucket, and its path in it (empty: the bucket itself)."""

    bucket: str
    path: str

    @classmethod
    def parse(cls, uri: str) -> ObjectAddress:
        """Read an address; the path of a folder keeps the slash at its end, where it has one."""
        bucket, _, path = uri.removeprefix(SCHEME).partition("/")
        return cls(bucket=bucket, path=path)

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """Last part of the path, without the ending of a document."""
        return self.name.removesuffix(".json")

    @property
    def folder_uri(self) -> str:
        """Address of the folder that it lies in, without a slash at the end."""
        return str(ObjectAddress(bucket=self.bucket, path=self.path.rpartition("/")[0])).rstrip("/")

    @property
    def fixed_path(self) -> str:
        """Path without a slash at its end; of one with a `*` that of the folder before it."""
        path, star, _ = self.path.partition("*")
        return (path.rpartition("/")[0] if star else path).strip("/")

    def is_below(self, folder_uri: str) -> bool:
        """Return whether it lies in a folder or below, by a path without steps up."""
        return str(self).startswith(f"{folder_uri}/") and ".." not in self.path.split("/")

    @property
    def first_folder(self) -> str:
        """First part of the path; empty where that is the last one too."""
        folder, slash, _ = self.path.partition("/")
        return folder if slash else ""

    @property
    def is_plain(self) -> bool:
        """Whether every folder has a name, and no part is `.` or `..`: storage means nothing by them, others do."""
        *folders, name = self.path.split("/")
        return all(folders) and not {*folders, name} & {".", ".."}

    @property
    def without_scheme(self) -> str:
        """`<bucket>/<path>`, as browsers' addresses have it."""
        return f"{self.bucket}/{self.path}"

    def __str__(self) -> str:
        """Return the address as text."""
        return f"{SCHEME}{self.without_scheme}"


def folder_of(uri: str) -> str:
    """Return the address of the folder that an object lies in, without a slash at the end."""
    return ObjectAddress.parse(uri).folder_uri

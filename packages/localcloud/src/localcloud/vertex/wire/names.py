"""Resource names: the one place that knows how they are put together.

`projects/p/locations/r/models/m@2` in, its parts out, and the other way round.
"""

from __future__ import annotations

import dataclasses
import re
import secrets

from localcloud.vertex.wire.errors import InvalidArgument

LOCATION = re.compile(r"projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Location:
    """A project's region, the parent of most resources."""

    project: str
    region: str

    def __str__(self) -> str:
        return f"projects/{self.project}/locations/{self.region}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelName:
    """A model, or one version of it when `version` is an id or an alias."""

    location: Location
    model_id: str
    version: str | None

    @property
    def model_name(self) -> str:
        """Name without version, as the service writes it in `Model.name`."""
        return f"{self.location}/models/{self.model_id}"


def parse_location(name: str, field: str = "parent") -> Location:
    """Return parts of `projects/{project}/locations/{location}`.

    Raises:
        InvalidArgument: The name has another form.
    """
    match = LOCATION.fullmatch(name)
    if match is None:
        raise _malformed(name, field, "projects/{project}/locations/{location}")
    return Location(project=match["project"], region=match["region"])


def location_of(name: str) -> Location | None:
    """Return the location that any resource name begins with, or None when it begins otherwise."""
    match = LOCATION.match(name)
    return Location(project=match["project"], region=match["region"]) if match else None


def collection_of(name: str) -> str:
    """Return the collection of a resource, or of what an operation works on (`models`); "" for a bare location."""
    match = LOCATION.match(name)
    return name[match.end() :].lstrip("/").partition("/")[0] if match else ""


def check_name(name: str, *collections: str, field: str = "name") -> str:
    """Return the name itself when it is `projects/*/locations/*/<collection>/*…`.

    Raises:
        InvalidArgument: The name has another form.
    """
    form = LOCATION.pattern + "".join(rf"/{collection}/[^/@]+" for collection in collections)
    if re.fullmatch(form, name) is None:
        expected = "".join(f"/{collection}/{{{collection.rstrip('s')}}}" for collection in collections)
        raise _malformed(name, field, "projects/{project}/locations/{location}" + expected)
    return name


def parse_model(name: str, field: str = "name") -> ModelName:
    """Return parts of a model's name, with or without `@version`.

    Raises:
        InvalidArgument: The name has another form.
    """
    match = re.fullmatch(LOCATION.pattern + r"/models/(?P<model>[^/@]+)(@(?P<version>[^/@]+))?", name)
    if match is None:
        raise _malformed(name, field, "projects/{project}/locations/{location}/models/{model}[@{version or alias}]")
    location = Location(project=match["project"], region=match["region"])
    return ModelName(location=location, model_id=match["model"], version=match["version"])


def last_part(name: str) -> str:
    """Return a resource's id: what stands behind the last slash."""
    return name.rsplit("/", 1)[-1]


def new_id(digits: int = 19) -> str:
    """Return a number such as the service gives to what the caller did not name."""
    return str(secrets.randbelow(9 * 10 ** (digits - 1)) + 10 ** (digits - 1))


def _malformed(name: str, field: str, expected: str) -> InvalidArgument:
    return InvalidArgument(
        f"Invalid resource name in field {field}: {name!r}. Expected the form {expected}.", field=field
    )

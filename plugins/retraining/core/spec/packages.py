"""Python packages that a model brings along: wheels in a bucket, or names with versions, each with its digests."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.spec.section import Section

WheelUri = Annotated[
    str,
    StringConstraints(
        max_length=1000, pattern=r"^gs://[^/\s]+/([^/\s]+/)*[A-Za-z0-9_.]+-[0-9][^/\s-]*(-[^/\s-]+){3,4}\.whl$"
    ),
]
PackageVersion = Annotated[
    str,
    StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[0-9][A-Za-z0-9.!+_-]*$"),
]
FileDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ModuleName = Annotated[
    str, StringConstraints(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$")
]

OF_THE_IMAGE = frozenset({"tensorflow", "tensorflow-cpu", "tf-keras", "keras", "numpy", "protobuf", "trainer"})


class Package(Section):
    """A package of the model: a wheel, or a name and version for the image's package index."""

    wheel: WheelUri | None = None
    """Address of a wheel, `gs://…/own_layers-1.0-py3-none-any.whl`; `null`: `requirement` is given."""
    requirement: PackageVersion | None = None
    """Name and version, `humanize==4.9.0`, from the package index that the image's pip is set to; `null`: `wheel` is
    given."""
    sha256: Annotated[tuple[FileDigest, ...], Field(min_length=1, max_length=100)]
    """SHA-256 of the wheel; of a `requirement` those of the wheels that may be taken."""
    imports: ModuleName | None = None
    """Module that is imported before a model is loaded, for its TensorFlow operations; `null`: none. The evaluation
    gets the packages only where one has it."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.wheel is None) == (self.requirement is None):
            raise ValueError(
                "a package is either a wheel (wheel: gs://…/name-1.0-py3-none-any.whl) or a name and version "
                "(requirement: name==1.0): give one of them"
            )
        return self

    @property
    def distribution(self) -> str:
        """Name of what is installed, in one spelling: lower case, `-` for `_` and `.`."""
        file = self.requirement or PurePosixPath(self.wheel or "").name
        name = re.split("==" if self.requirement else "-", file, maxsplit=1)[0]
        return re.sub("[-_.]+", "-", name).lower()


def packages_problem(packages: tuple[Package, ...]) -> str | None:
    """Say what is wrong with the packages of a model together, with the way out; None: nothing."""
    names = [package.distribution for package in packages]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        return f"package {twice!r} stands twice: keep one of them"
    own = next((name for name in names if name in OF_THE_IMAGE), None)
    if own:
        return (
            f"package {own!r} is the image's own, and the trainer is tried with that version alone: remove it, or "
            "name an image that has another one in runtime.image"
        )
    return None

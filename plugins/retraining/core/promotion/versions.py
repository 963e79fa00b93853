"""A version of a model, as the registry has it."""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.naming.storage import numbered_uri
from retraining.core.naming.vertex import RUN_LABEL, version_name


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version. `model_name` has no version in it, `version_name` ends in `@<version_id>`.

    `numbered`: its container is told `artifact_uri`, and looks for the model in a numbered folder there. `deployed`: on
    some endpoint.
    """

    model_name: str
    version_id: str
    aliases: tuple[str, ...]
    labels: dict[str, str]
    artifact_uri: str
    numbered: bool = False
    deployed: bool = False

    @property
    def model_uri(self) -> str:
        """Folder of the model itself."""
        return numbered_uri(self.artifact_uri) if self.numbered else self.artifact_uri

    @property
    def version_name(self) -> str:
        """Full name with the version."""
        return version_name(self.model_name, self.version_id)

    @property
    def run_key(self) -> str:
        """Key of the run that made it; empty for a version that no run made."""
        return self.labels.get(RUN_LABEL, "")

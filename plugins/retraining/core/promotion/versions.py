"""A version of a model, as the registry has it."""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.naming.vertex import RUN_LABEL, version_name


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version. `model_name` has no version in it, `version_name` ends in `@<version_id>`."""

    model_name: str
    version_id: str
    aliases: tuple[str, ...]
    labels: dict[str, str]
    artifact_uri: str

    @property
    def version_name(self) -> str:
        """Full name with the version."""
        return version_name(self.model_name, self.version_id)

    @property
    def run_key(self) -> str:
        """Key of the run that made it; empty for a version that no run made."""
        return self.labels.get(RUN_LABEL, "")

"""A version of a model, as the registry has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retraining.core.documents.plan import Plan
from retraining.core.naming.run_keys import RunKey
from retraining.core.naming.storage import numbered_uri
from retraining.core.naming.vertex import AS_OF_ALIAS, CHAMPION, RUN_LABEL, version_name


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


def find_met_by_backfill(plan: Plan, versions: Iterable[Version]) -> Version | None:
    """Return who would have been champion at a backfill's time, whom its challenger meets and may begin with.

    That is the newest of those before its time among the versions that other backfills registered, and the champion.
    Where none is, it is the champion, which is too new: the comparison says so. None: there is no champion either.

    Args:
        plan: The backfill.
        versions: All of the model.
    """
    versions = list(versions)
    serving = [version for version in versions if version.run_key and any(map(_has_office, version.aliases))]
    dated = [(RunKey.parse(version.run_key).as_of, int(version.version_id), version) for version in serving]
    earlier = [found for found in dated if found[0] < plan.as_of]
    if earlier:
        return max(earlier, key=lambda found: found[:2])[2]
    return next((version for version in versions if CHAMPION in version.aliases), None)


def _has_office(alias: str) -> bool:
    return alias == CHAMPION or alias.startswith(AS_OF_ALIAS)
